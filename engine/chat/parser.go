package chat

import (
	"slices"
	"strings"
	"unicode"
)

// maxTag bounds the text of a tag in bytes. An opening marker followed by more
// text than this, and no separator, was no tag.
const maxTag = 4096

// An element is a part of the reply that is open.
type element uint8

const (
	inThink element = iota + 1
	inResponse
	inTools
	inCall
	inArgument
	inJSON
)

// level is the depth an element belongs at.
func (e element) level() int {
	switch e {
	case inCall:
		return 2
	case inArgument, inJSON:
		return 3
	}
	return 1
}

// A Parser reads one reply, id by id. What the model does wrong it takes for
// what was most likely meant (spec 5.5):
//
//   - an element that opens ends everything open at its level or deeper, so
//     that a missing close is no matter;
//   - a close that fits nothing is ignored, except that a close of the response
//     while still thinking says that the text since the last think marker was
//     the answer (Relabel);
//   - text outside any element is the response;
//   - an opener of the element that is already open is ignored;
//   - the end of the message ends all that is open.
//
// A Parser is for one goroutine.
type Parser struct {
	m     Markers
	stack []element // what is open, outermost first; at most three

	tag     []byte // text of the tag being read
	inTag   bool
	closing bool // the tag began with the close marker

	gap string // white space outside any element, kept until text follows

	think     []byte
	thinkMark int // len(think) at the last think marker
	response  []byte
	calls     []ToolCall
	call      callText // of the last call
	callCut   bool

	over     bool // nothing more is read
	complete bool

	events []Event // of the Add under way
}

// NewParser returns a Parser for a reply to a prompt that was rendered with the
// given Thinking and with Generate: such a prompt has already opened the think
// or the response element.
func NewParser(m Markers, thinking bool) *Parser {
	p := &Parser{m: m}
	if thinking {
		p.stack = append(p.stack, inThink)
	} else {
		p.stack = append(p.stack, inResponse)
	}
	return p
}

// Add reads one id. text is what the streaming decoder gave for that id: it may
// be empty, complete earlier characters, or, for a special id, be what was still
// held back followed by the name. After the end of the message nothing more is
// read.
func (p *Parser) Add(id int, text string) []Event {
	p.events = nil
	if p.over {
		return nil
	}
	if id < p.m.Base {
		p.addText(text)
		return p.events
	}
	// Of a special id's text only a broken character before the name is text.
	name := strings.TrimLeft(text, "\uFFFD")
	p.addText(text[:len(text)-len(name)])
	switch {
	case id == p.m.Sep:
		p.endTag()
	case id == p.m.Open || id == p.m.Close:
		p.endTag() // the tag before lacks its separator
		p.tag, p.inTag, p.closing = p.tag[:0], !p.over, id == p.m.Close
	case id == p.m.EndOfMsg || slices.Contains(p.m.Stop, id):
		p.endTag()
		p.endMessage()
	}
	return p.events
}

// Text reads text that belongs to no id, such as the flush of a decoder.
func (p *Parser) Text(text string) []Event {
	p.events = nil
	if !p.over {
		p.addText(text)
	}
	return p.events
}

// Close ends a reply that was cut off. After the end of the message it does
// nothing.
func (p *Parser) Close() []Event {
	p.events = nil
	if p.over {
		return nil
	}
	p.inTag = false // a tag that was cut says nothing
	p.callCut = slices.Contains(p.stack, inCall)
	p.closeDown(1)
	p.over = true
	p.emit(Event{Kind: MessageEnd})
	return p.events
}

// Reply returns what has been read so far, copied: call it once at the end, or
// rarely.
func (p *Parser) Reply() Reply {
	r := Reply{
		Thinking: string(p.think), Response: string(p.response),
		ToolCalls: slices.Clone(p.calls), Complete: p.complete, CallCut: p.callCut,
	}
	if n := len(p.calls); n > 0 {
		r.ToolCalls[n-1].Arguments = string(p.call.json)
	}
	return r
}

func (p *Parser) emit(e Event) { p.events = append(p.events, e) }

// top is the innermost open element, or 0 between elements.
func (p *Parser) top() element {
	if len(p.stack) == 0 {
		return 0
	}
	return p.stack[len(p.stack)-1]
}

// endTag acts on the tag being read, if there is one.
func (p *Parser) endTag() {
	if !p.inTag {
		return
	}
	p.inTag = false
	p.gap = ""
	t := parseTag(string(p.tag))
	if p.closing {
		p.closeTag(t.name)
	} else {
		p.openTag(t)
	}
}

func (p *Parser) openTag(t tag) {
	switch t.name {
	case "think":
		if p.top() != inThink {
			p.closeDown(1)
			p.push(inThink)
		}
		p.thinkMark = len(p.think)
	case "response":
		if p.top() != inResponse {
			p.closeDown(1)
			p.push(inResponse)
		}
	case "tools":
		p.closeDown(1)
		p.push(inTools)
	case "call":
		p.openCall(t)
	case "argument":
		if p.within(inCall) {
			p.closeDown(3)
			p.push(inArgument)
			p.emitCall(p.call.openArgument(t.attr("key"), t.attr("type")))
		}
	case "json":
		if p.within(inCall) {
			p.closeDown(3)
			p.push(inJSON)
		}
	case "message":
		// A new turn ends this one; before anything was said it merely repeats
		// the opening that the prompt already has.
		if len(p.think)+len(p.response)+len(p.calls) > 0 {
			p.endMessage()
		}
	}
}

func (p *Parser) openCall(t tag) {
	if p.within(inTools) {
		p.closeDown(2)
	} else {
		p.closeDown(1)
		p.push(inTools)
	}
	p.keepArguments()
	p.push(inCall)
	p.call = callText{}
	n := len(p.calls)
	c := ToolCall{Name: t.attr("tool")}
	c.ID = callID(c.Name, n)
	p.calls = append(p.calls, c)
	p.emit(Event{Kind: ToolCallStart, Call: n, Name: c.Name, ID: c.ID})
}

// keepArguments stores the arguments of the last call before another begins.
func (p *Parser) keepArguments() {
	if n := len(p.calls); n > 0 {
		p.calls[n-1].Arguments = string(p.call.json)
	}
}

func (p *Parser) closeTag(name string) {
	var e element
	switch name {
	case "think":
		e = inThink
	case "response":
		if p.top() == inThink {
			p.relabel()
			return
		}
		e = inResponse
	case "tools":
		e = inTools
	case "call":
		e = inCall
	case "argument":
		e = inArgument
	case "json":
		e = inJSON
	case "message":
		p.endMessage()
		return
	}
	if p.within(e) {
		p.closeDown(e.level())
	}
}

// relabel moves the text since the last think marker into the response, and
// ends both.
func (p *Parser) relabel() {
	moved := string(p.think[p.thinkMark:])
	p.think = p.think[:p.thinkMark]
	p.response = append(p.response, moved...)
	if moved != "" {
		p.emit(Event{Kind: Relabel, Text: moved})
	}
	p.closeDown(1)
	p.emit(Event{Kind: ResponseEnd})
}

func (p *Parser) endMessage() {
	if p.over {
		return
	}
	p.closeDown(1)
	p.over, p.complete = true, true
	p.emit(Event{Kind: MessageEnd})
}

func (p *Parser) within(e element) bool { return slices.Contains(p.stack, e) }

func (p *Parser) push(e element) { p.stack = append(p.stack, e) }

// closeDown closes every open element at the level or deeper.
func (p *Parser) closeDown(level int) {
	for len(p.stack) > 0 && p.top().level() >= level {
		e := p.top()
		p.stack = p.stack[:len(p.stack)-1]
		switch e {
		case inThink:
			p.emit(Event{Kind: ThinkEnd})
		case inResponse:
			p.emit(Event{Kind: ResponseEnd})
		case inCall:
			p.emitCall(p.call.finish())
			p.emit(Event{Kind: ToolCallEnd, Call: len(p.calls) - 1})
		case inArgument:
			p.emitCall(p.call.closeArgument())
		}
	}
}

// emitCall reports text that was added to the arguments of the last call.
func (p *Parser) emitCall(delta string) {
	if delta != "" {
		p.emit(Event{Kind: ToolCallDelta, Call: len(p.calls) - 1, Text: delta})
	}
}

// addText puts text where it belongs.
func (p *Parser) addText(s string) {
	if s == "" {
		return
	}
	if p.inTag {
		if p.tag = append(p.tag, s...); len(p.tag) <= maxTag {
			return
		}
		// No tag is this long. Only the marker is dropped.
		p.inTag = false
		s = string(p.tag)
	}
	switch p.top() {
	case inThink:
		p.think = append(p.think, s...)
		p.emit(Event{Kind: ThinkDelta, Text: s})
	case inResponse:
		p.response = append(p.response, s...)
		p.emit(Event{Kind: ResponseDelta, Text: s})
	case inArgument:
		p.emitCall(p.call.addArgument(s))
	case inJSON:
		p.emitCall(p.call.addRaw(s))
	case inCall:
		// Arguments without an element around them. White space before them is
		// layout.
		if s = strings.TrimLeftFunc(s, unicode.IsSpace); s != "" {
			p.push(inJSON)
			p.emitCall(p.call.addRaw(s))
		}
	default:
		// White space between elements is layout, unless text follows.
		if p.gap += s; isSpace(p.gap) {
			return
		}
		s, p.gap = p.gap, ""
		p.closeDown(1)
		p.push(inResponse)
		p.response = append(p.response, s...)
		p.emit(Event{Kind: ResponseDelta, Text: s})
	}
}

func isSpace(s string) bool { return strings.TrimFunc(s, unicode.IsSpace) == "" }

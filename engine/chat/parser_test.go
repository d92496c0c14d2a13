package chat

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// testMarkers are the markers of a vocabulary with ordinary ids below 1000.
func testMarkers() Markers {
	return Markers{Base: 1000, EndOfMsg: 1002, Open: 1003, Close: 1004, Sep: 1005, Stop: []int{1001, 1009}}
}

// specialNames are the names of testMarkers and of two ids that are none.
func specialNames() map[int]string {
	return map[int]string{1000: "[BOS]", 1001: "[EOS]", 1002: markEndOfMsg, 1003: markOpen, 1004: markClose, 1005: markSep, 1009: "[EOT]", 1255: "[PAD]"}
}

var specialName = regexp.MustCompile(`<\|[a-z_]+\|>|\[[A-Z]+\]`)

// reader feeds a parser and checks what every reply must fulfil.
type reader struct {
	t      *testing.T
	p      *Parser
	events []Event

	// What a listener makes of the events.
	think, response string
	args            []string
	callsOpen       int
	ended           bool
}

func newReader(t *testing.T, thinking bool) *reader {
	return &reader{t: t, p: NewParser(testMarkers(), thinking)}
}

// feed reads a script in which the names of special ids stand for the ids, and
// all else is ordinary text that comes in bits of n bytes.
func (r *reader) feed(script string, n int) *reader {
	for script != "" {
		at := specialName.FindStringIndex(script)
		if at == nil {
			at = []int{len(script), len(script)}
		}
		for text := script[:at[0]]; text != ""; {
			k := min(n, len(text))
			r.take(r.p.Add(7, text[:k]))
			text = text[k:]
		}
		name := script[at[0]:at[1]]
		for id, is := range specialNames() {
			if is == name {
				r.take(r.p.Add(id, name))
			}
		}
		script = script[at[1]:]
	}
	return r
}

func (r *reader) take(events []Event) {
	r.t.Helper()
	r.events = append(r.events, events...)
	for _, e := range events {
		if r.ended {
			r.t.Errorf("%v after the end of the message", e.Kind)
		}
		switch e.Kind {
		case ThinkDelta:
			r.think += e.Text
		case ResponseDelta:
			r.response += e.Text
		case Relabel:
			if !strings.HasSuffix(r.think, e.Text) {
				r.t.Errorf("relabel of %q, but the thinking is %q", e.Text, r.think)
			}
			r.think = strings.TrimSuffix(r.think, e.Text)
			r.response += e.Text
		case ToolCallStart:
			if e.Call != len(r.args) || r.callsOpen != 0 {
				r.t.Errorf("call %d starts after %d calls, %d open", e.Call, len(r.args), r.callsOpen)
			}
			r.args = append(r.args, "")
			r.callsOpen++
		case ToolCallDelta:
			r.args[e.Call] += e.Text
		case ToolCallEnd:
			r.callsOpen--
		case MessageEnd:
			r.ended = true
		}
	}
	reply := r.p.Reply()
	if r.think != reply.Thinking || r.response != reply.Response || len(r.args) != len(reply.ToolCalls) {
		r.t.Errorf("events give thinking %q, response %q, %d calls; the reply has %+v", r.think, r.response, len(r.args), reply)
	}
	for i, c := range reply.ToolCalls {
		if c.Arguments != r.args[i] {
			r.t.Errorf("call %d: events give %q, the reply %q", i, r.args[i], c.Arguments)
		}
	}
}

// reply closes the parser and returns the reply.
func (r *reader) reply() Reply {
	r.t.Helper()
	r.take(r.p.Close())
	if !r.ended || r.callsOpen != 0 {
		r.t.Errorf("after Close: ended %v, %d calls open", r.ended, r.callsOpen)
	}
	return r.p.Reply()
}

// tags writes markers short: <x y> opens, </x> closes, <.> ends the message.
func tags(s string) string {
	s = strings.ReplaceAll(s, "<.>", markEndOfMsg)
	s = regexp.MustCompile(`</([a-z]+)>`).ReplaceAllString(s, markClose+"$1"+markSep)
	return regexp.MustCompile(`<([a-z]+(?: [^<>]*)?)>`).ReplaceAllString(s, markOpen+"$1"+markSep)
}

func TestReplies(t *testing.T) {
	call := func(name string, n int, args string) ToolCall {
		return ToolCall{ID: callID(name, n), Name: name, Arguments: args}
	}
	const end = "</message><.>"
	for _, c := range []struct {
		name, script string
		plain        bool // without thinking
		want         Reply
	}{
		{name: "as it should be", script: "why</think><response>yes</response>" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "without thinking", plain: true, script: "yes</response>" + end, want: Reply{Response: "yes", Complete: true}},
		{name: "empty", script: "</think><response></response>" + end, want: Reply{Complete: true}},
		{name: "all white space inside is kept", script: "\n why \n</think><response>\n yes\n</response>" + end, want: Reply{Thinking: "\n why \n", Response: "\n yes\n", Complete: true}},
		{
			name: "tool calls",
			script: `t</think><response>r</response><tools><call tool="beta" index="1"><argument key="z" type="number">1e2</argument><argument key="a" type="string">x "y"` + "\n" +
				`</argument></call><call tool="al&quot;pha&amp;quot;" index="2"></call></tools>` + end,
			want: Reply{Thinking: "t", Response: "r", ToolCalls: []ToolCall{call("beta", 0, `{"z":1e2,"a":"x \"y\"\n"}`), call(`al"pha&quot;`, 1, `{}`)}, Complete: true},
		},
		{
			name:   "all types of arguments",
			script: `</think><tools><call tool="f"><argument key="b" type="boolean">true</argument><argument key="n" type="null">null</argument><argument key="o" type="object">{"q": [1]}</argument><argument key="a" type="array"> [1, 2] </argument><argument key="s" type="string">1</argument><argument key="?">2</argument></call></tools>` + end,
			want:   Reply{ToolCalls: []ToolCall{call("f", 0, `{"b":true,"n":null,"o":{"q": [1]},"a":[1, 2],"s":"1","?":"2"}`)}, Complete: true},
		},
		{
			name:   "what is no JSON becomes a string",
			script: `</think><tools><call tool="f"><argument key="n" type="number">about 5</argument><argument key="m" type="object"></argument></call></tools>` + end,
			want:   Reply{ToolCalls: []ToolCall{call("f", 0, `{"n":"about 5","m":""}`)}, Complete: true},
		},
		{
			name:   "a json element is the arguments as they stand",
			script: `</think><tools><call tool="f"><json type="object">{"a": 1}</json></call><call tool="g"><json type="object">oops</json></call></tools>` + end,
			want:   Reply{ToolCalls: []ToolCall{call("f", 0, `{"a": 1}`), call("g", 1, "oops")}, Complete: true},
		},
		{
			name:   "arguments without an element",
			script: "</think><tools>\n<call tool=\"f\">\n{\"a\":1}</call>\n</tools>" + end,
			want:   Reply{ToolCalls: []ToolCall{call("f", 0, `{"a":1}`)}, Complete: true},
		},

		{name: "(a) no think close, response opens", script: "why<response>yes</response>" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(a) no think close, tools open", script: `why<tools><call tool="f"></call></tools>` + end, want: Reply{Thinking: "why", ToolCalls: []ToolCall{call("f", 0, "{}")}, Complete: true}},
		{name: "(a) no think close, prose, orphan response close", script: "yes</response>" + end, want: Reply{Response: "yes", Complete: true}},
		{
			name: "(a) orphan response close, then tools", script: `yes</response><tools><call tool="f"></call></tools>` + end,
			want: Reply{Response: "yes", ToolCalls: []ToolCall{call("f", 0, "{}")}, Complete: true},
		},
		{name: "(a) only the text since the last think marker is the answer", script: "why<think>yes</response>" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(b) no response close", script: "why</think><response>yes" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(b) no close at all but the message's", script: "why" + end, want: Reply{Thinking: "why", Complete: true}},
		{name: "(c) no response element, tools", script: `why</think><tools><call tool="f"></call></tools>` + end, want: Reply{Thinking: "why", ToolCalls: []ToolCall{call("f", 0, "{}")}, Complete: true}},
		{name: "(c) no response element, prose", script: "why</think>\n yes" + end, want: Reply{Thinking: "why", Response: "\n yes", Complete: true}},
		{name: "(c) prose outside, closed as a response", script: "why</think>yes</response>" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(c) layout between elements is not text", script: "why</think>\n\n<response>yes</response>\n" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(d) second think opener", script: "<think>why</think><response>yes</response>" + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(d) the whole opening again", script: `<message role="assistant"><think>why</think><response>yes</response>` + end, want: Reply{Thinking: "why", Response: "yes", Complete: true}},
		{name: "(e) cut while thinking", script: "why", want: Reply{Thinking: "why"}},
		{name: "(e) cut in the response", script: "why</think><response>ye", want: Reply{Thinking: "why", Response: "ye"}},
		{name: "(e) cut in a tag", script: "why" + markClose + "thi", want: Reply{Thinking: "why"}},
		{
			name: "(e) cut in a string", script: `</think><tools><call tool="f"><argument key="a" type="string">x`,
			want: Reply{ToolCalls: []ToolCall{call("f", 0, `{"a":"x"}`)}, CallCut: true},
		},
		{
			name: "(e) cut in an array", script: `</think><tools><call tool="f"></call><call tool="g"><argument key="a" type="array">[1,`,
			want: Reply{ToolCalls: []ToolCall{call("f", 0, "{}"), call("g", 1, `{"a":"[1,"}`)}, CallCut: true},
		},
		{name: "(e) cut after a call", script: `</think><tools><call tool="f"></call>`, want: Reply{ToolCalls: []ToolCall{call("f", 0, "{}")}}},

		{name: "thinking again after the answer began", script: "a</think><response>b<think>c</think><response>d</response>" + end, want: Reply{Thinking: "ac", Response: "bd", Complete: true}},
		{name: "thinking though not asked to", plain: true, script: "<think>a</think><response>b</response>" + end, want: Reply{Thinking: "a", Response: "b", Complete: true}},
		{name: "response opened twice", plain: true, script: "<response>b</response>" + end, want: Reply{Response: "b", Complete: true}},
		{name: "orphan closes", script: "a</tools></call></argument>b</think><response>c</think>d</response></response>" + end, want: Reply{Thinking: "ab", Response: "cd", Complete: true}},
		{name: "unknown elements: their text stays", script: "a</think><response>b<note x=\"1\">c</note>d</response>" + end, want: Reply{Thinking: "a", Response: "bcd", Complete: true}},
		{name: "missing separators", script: "a" + markClose + "think" + markOpen + "response" + markSep + "b" + markClose + "response" + markEndOfMsg, want: Reply{Thinking: "a", Response: "b", Complete: true}},
		{name: "a separator alone", script: "a" + markSep + "b", want: Reply{Thinking: "ab"}},
		{name: "closes of the inner elements missing", script: `a</think><tools><call tool="f"><argument key="a" type="number">1<argument key="b">x<call tool="g"><argument key="c">y</tools>` + end, want: Reply{Thinking: "a", ToolCalls: []ToolCall{call("f", 0, `{"a":1,"b":"x"}`), call("g", 1, `{"c":"y"}`)}, Complete: true}},
		{name: "a call without tools around it", script: `a<call tool="f"></call>` + end, want: Reply{Thinking: "a", ToolCalls: []ToolCall{call("f", 0, "{}")}, Complete: true}},
		{name: "an answer after the tools", script: `a</think><tools><call tool="f"></call></tools><response>b</response>` + end, want: Reply{Thinking: "a", Response: "b", ToolCalls: []ToolCall{call("f", 0, "{}")}, Complete: true}},
		{name: "arguments and json: the first counts", script: `</think><tools><call tool="f"><argument key="a">x</argument><json>{}</json></call><call tool="g"><json>{"q":1}</json><argument key="a">x</argument></call></tools>` + end, want: Reply{ToolCalls: []ToolCall{call("f", 0, `{"a":"x"}`), call("g", 1, `{"q":1}`)}, Complete: true}},
		{name: "other stop ids", script: "a</think><response>b[EOS]", want: Reply{Thinking: "a", Response: "b", Complete: true}},
		{name: "names of special ids are never text", script: "a[PAD]b[BOS]</think><response>c[PAD]</response>" + end, want: Reply{Thinking: "ab", Response: "c", Complete: true}},
		{name: "a new turn ends this one", script: "a</think><response>b<message role=\"user\">hello", want: Reply{Thinking: "a", Response: "b", Complete: true}},
		{name: "nothing is read after the end", script: "a</think><response>b</response></message> c<.>d<response>e", want: Reply{Thinking: "a", Response: "b", Complete: true}},
		{name: "an opener that was no tag", script: "a" + markOpen + strings.Repeat("b", maxTag+1) + "</think>", want: Reply{Thinking: "a" + strings.Repeat("b", maxTag+1)}},
	} {
		for _, bits := range []int{1, 3, 1000} {
			t.Run(fmt.Sprintf("%s/%d", c.name, bits), func(t *testing.T) {
				got := newReader(t, !c.plain).feed(tags(c.script), bits).reply()
				if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", c.want) {
					t.Errorf("got  %+v\nwant %+v", got, c.want)
				}
			})
		}
	}
}

// TestTextThatLooksLikeAMarker: ids decide.
func TestTextThatLooksLikeAMarker(t *testing.T) {
	p := NewParser(testMarkers(), false)
	for _, s := range []string{"<|close|>", "response", "<|sep|>", "<|end_of_msg|>"} {
		p.Add(5, s)
	}
	if got := p.Reply(); got.Response != "<|close|>response<|sep|><|end_of_msg|>" || got.Complete {
		t.Errorf("reply %+v", got)
	}
}

// TestBrokenCharacterBeforeAMarker: a decoder gives it together with the name.
func TestBrokenCharacterBeforeAMarker(t *testing.T) {
	p := NewParser(testMarkers(), true)
	p.Add(5, "a")
	p.Add(1004, "\uFFFD<|close|>")
	p.Add(5, "think")
	p.Add(1005, "<|sep|>")
	p.Text("\uFFFD")
	if got := p.Reply(); got.Thinking != "a\uFFFD" || got.Response != "\uFFFD" {
		t.Errorf("reply %+v", got)
	}
}

func TestEventOrder(t *testing.T) {
	for _, c := range []struct {
		script string
		want   string
	}{
		{"a</think><response>b</response></message><.>", "ThinkDelta ThinkEnd ResponseDelta ResponseEnd MessageEnd"},
		{"a</response><.>", "ThinkDelta Relabel ThinkEnd ResponseEnd MessageEnd"},
		{`<tools><call tool="f"><argument key="k">v</argument></call></tools><.>`, "ThinkEnd ToolCallStart ToolCallDelta ToolCallDelta ToolCallDelta ToolCallDelta ToolCallEnd MessageEnd"},
		{"a", "ThinkDelta ThinkEnd MessageEnd"},
	} {
		r := newReader(t, true).feed(tags(c.script), 1000)
		r.reply()
		var kinds []string
		for _, e := range r.events {
			kinds = append(kinds, e.Kind.String())
		}
		if got := strings.Join(kinds, " "); got != c.want {
			t.Errorf("%s: %s, want %s", c.script, got, c.want)
		}
	}
	for k := ThinkDelta; k <= MessageEnd; k++ {
		if strings.HasPrefix(k.String(), "Kind(") {
			t.Errorf("kind %d has no name", k)
		}
	}
}

// TestNanoReplies reads what the demonstration model wrote, up to the end of
// its message or of the recording.
func TestNanoReplies(t *testing.T) {
	enc := loadBPE(t, nanoDir)
	words := enc.words()
	m, err := FindMarkers(enc)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name     string `json:"name"`
		Thinking bool   `json:"thinking"`
		Greedy   *struct {
			IDs  []int  `json:"ids"`
			Text string `json:"text"`
		} `json:"greedy"`
	}
	readJSON(t, "testdata/golden.json", &cases)
	whole := 0
	for _, c := range cases {
		if c.Greedy == nil {
			continue
		}
		// These replies are orderly, so cutting their text tells what is in them.
		var want Reply
		text, _, ended := strings.Cut(c.Greedy.Text, markEndOfMsg)
		if c.Thinking {
			want.Thinking, text, _ = strings.Cut(text, "<|close|>think<|sep|><|open|>response<|sep|>")
		}
		want.Response, _, _ = strings.Cut(text, "<|close|>response<|sep|>")
		want.Complete = ended
		p := NewParser(m, c.Thinking)
		for _, id := range c.Greedy.IDs {
			p.Add(id, words[id]) // ASCII: no token ends inside a character
		}
		p.Close()
		if got := p.Reply(); fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, want %+v", c.Name, got, want)
		}
		if ended {
			whole++
		}
	}
	if whole < 2 {
		t.Errorf("%d replies reach their end, want at least 2", whole)
	}
}

// TestReplayIsExact: an assistant turn that is rendered, read and rendered again
// has the same segments, so that a cache of the prompt stays good.
func TestReplayIsExact(t *testing.T) {
	enc := loadBPE(t, nanoDir)
	words := enc.words()
	m, err := FindMarkers(enc)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(3, 4))
	texts := []string{"", "x", " two words\n", "<|open|>tools<|sep|>", `q"&quot;&amp;`, "{\"a\": 1}", "1e2"}
	values := []string{`1e2`, `-0.0`, `[1,2]`, `[1, 2]`, `{"b": {"c":1}}`, `true`, `null`, `"x\u0041\n"`, `""`, `"<|close|>"`}
	pick := func(from []string) string { return from[rng.IntN(len(from))] }
	for range 300 {
		turn := Message{Role: Assistant, Reasoning: strings.TrimSpace(pick(texts)), Content: pick(texts)}
		for i := range rng.IntN(3) {
			args := "{"
			for j := range rng.IntN(4) {
				if j > 0 {
					args += " , "
				}
				args += quote(pick(texts)) + ": " + pick(values)
			}
			turn.ToolCalls = append(turn.ToolCalls, ToolCall{Name: fmt.Sprint("t&\"", i), Arguments: args + "}"})
		}
		p := &Prompt{Thinking: rng.IntN(2) == 0, Generate: true}
		if !p.Thinking {
			turn.Reasoning = ""
		}
		opening, err := Render(p)
		if err != nil {
			t.Fatal(err)
		}
		p.Generate = false
		p.Messages = []Message{turn}
		segs, err := Render(p)
		if err != nil {
			t.Fatal(err)
		}
		ids, err := Encode(enc, segs[len(opening):])
		if err != nil {
			t.Fatal(err)
		}
		parser := NewParser(m, p.Thinking)
		for _, id := range ids {
			parser.Add(id, words[id])
		}
		reply := parser.Reply()
		if !reply.Complete {
			t.Fatalf("%+v is not complete", reply)
		}
		for _, c := range reply.ToolCalls {
			if !json.Valid([]byte(c.Arguments)) {
				t.Fatalf("arguments %q are not JSON", c.Arguments)
			}
		}
		p.Messages = []Message{reply.Message()}
		again, err := Render(p)
		if err != nil || !slices.Equal(again, segs) {
			t.Fatalf("replayed:\n%s\nwas:\n%s\n%v", Text(again), Text(segs), err)
		}
	}
}

// FuzzParser: whatever ids come, nothing panics, the events tell the same story
// as the reply, and no name of a special id becomes text.
func FuzzParser(f *testing.F) {
	f.Add(true, []byte("a\x04think\x05\x03response\x05b\x04response\x05\x04message\x05\x02"))
	f.Add(false, []byte("b\x04response\x05\x03tools\x05\x03call tool=\"f\"\x05\x03argument key=\"k\" type=\"number\"\x05 1 \x04argument\x05\x04call"))
	f.Add(true, []byte("yes\x04response\x05\x03call\x05x\x03json\x05{}\x03argument\x05y\x03think\x05z\x01"))
	f.Add(true, []byte("\x03\x03\x04\x05\x06\x07\x00\xff"))
	words := []string{"think", "response", "tools", "call", "argument", "json", "message", ` key="k"`, ` type="object"`, ` tool="t"`, "text", " ", "\n", "é"}
	f.Fuzz(func(t *testing.T, thinking bool, script []byte) {
		r := newReader(t, thinking)
		names := specialNames()
		for _, b := range script {
			switch name, ok := names[1000+int(b)]; {
			case ok && b < 16:
				r.take(r.p.Add(1000+int(b), name))
			case b < 16:
				r.take(r.p.Add(1000+int(b), fmt.Sprintf("<|reserved_token_%d|>", b)))
			case b >= 0x80:
				r.take(r.p.Add(int(b), words[int(b)%len(words)]))
			case b == '|' || b == '[':
				// Left out of ordinary text, so that finding one in the reply means
				// that a name got there.
			default:
				r.take(r.p.Add(int(b), string(rune(b))))
			}
		}
		reply := r.reply()
		all := reply.Thinking + reply.Response
		for _, c := range reply.ToolCalls {
			all += c.Name + c.Arguments
		}
		if strings.ContainsAny(all, "|[") {
			t.Fatalf("the name of a special id is in the reply %+v", reply)
		}
	})
}

package md

import (
	"strings"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// mostPainted is the longest code, in bytes, that is coloured: lexers of regular
// expressions take about a second for a megabyte.
const mostPainted = 128 << 10

// code lays out a code block: two cells of indent, the rest of the row in the
// background of code. Long lines go on below: code that is cut cannot be read.
func (l *layout) code(lang, body string) {
	l.hasCode = true
	s := text.Clean(strings.TrimRight(body, "\n"))
	f := &flow{b: []byte(s)}
	if l.paint && len(s) <= mostPainted {
		f.spans = colours(l.th, lang, s)
	}
	if f.spans == nil {
		f.mark(l.th.Code)
	}
	s = f.snap()
	l.codeRows(f, s, 0)
}

// codeRows lays out s[from:], whole lines.
func (l *layout) codeRows(f *flow, s string, from int) {
	const margin = 2
	l.push("  ", "  ", margin)
	fill := !l.th.Code.Plain()
	span := 0
	for start := from; ; {
		end := strings.IndexByte(s[start:], '\n')
		if end < 0 {
			end = len(s)
		} else {
			end += start
		}
		for _, r := range hardWrap(s[start:end], l.room) {
			l.lead()
			r.Start, r.End = r.Start+start, r.End+start
			l.buf, span = f.row(l.buf, s, r, span)
			if fill {
				l.buf = l.th.Code.Append(l.buf, text.Spaces(l.room-r.Width))
			}
			l.end()
		}
		if end == len(s) {
			break
		}
		start = end + 1
	}
	l.pop()
}

// hardWrap breaks a line of code into parts of at most w cells wherever they are
// full. It has at least one part.
func hardWrap(s string, w int) []text.Range {
	if len(s) <= w && text.Width(s) == len(s) {
		return []text.Range{{End: len(s), Width: len(s)}}
	}
	var out []text.Range
	r := text.Range{}
	for i := 0; i < len(s); {
		n, cw := text.Next(s[i:])
		if cw > w { // no room will ever be enough
			if i > r.Start {
				out = append(out, r)
			}
			i += n
			r = text.Range{Start: i, End: i}
			continue
		}
		if r.Width+cw > w {
			out = append(out, r)
			r = text.Range{Start: i, End: i}
		}
		i += n
		r.End, r.Width = i, r.Width+cw
	}
	if r.End > r.Start || len(out) == 0 {
		out = append(out, r)
	}
	return out
}

// colours returns the spans of program text, nil if the language is not known.
func colours(t *theme.Theme, lang, s string) []span {
	if lang == "" || t.Profile == theme.NoColour && t.Keyword.Plain() {
		return nil
	}
	lexer := lexers.Get(lang)
	if lexer == nil {
		return nil
	}
	it, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, s)
	if err != nil {
		return nil
	}
	f := flow{b: make([]byte, 0, len(s))}
	for tok := it(); tok != chroma.EOF; tok = it() {
		if tok.Value == "" {
			continue
		}
		f.b = append(f.b, tok.Value...)
		f.mark(tokenStyle(t, tok.Type))
	}
	// Some lexers end the text with a line break of their own. Anything else that
	// differs would show what was not written.
	if got := strings.TrimRight(string(f.b), "\n"); got != strings.TrimRight(s, "\n") || len(f.spans) == 0 {
		return nil
	}
	for i := range f.spans {
		f.spans[i].end = min(f.spans[i].end, len(s))
	}
	f.spans[len(f.spans)-1].end = len(s)
	return f.spans
}

func tokenStyle(t *theme.Theme, k chroma.TokenType) theme.Style {
	switch {
	case k.InCategory(chroma.Comment):
		return t.Comment
	case k.InCategory(chroma.Keyword):
		return t.Keyword
	case k.InSubCategory(chroma.LiteralNumber):
		return t.Number
	case k.InCategory(chroma.Literal):
		return t.Literal
	case k == chroma.NameFunction, k == chroma.NameBuiltin, k == chroma.NameClass, k == chroma.NameTag:
		return t.Function
	case k.InCategory(chroma.Operator):
		return t.Operator
	}
	return t.Code
}

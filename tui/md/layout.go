package md

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	gtext "github.com/yuin/goldmark/text"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// markdown is the parser: CommonMark with tables, strikethrough and tasks. It is
// safe for use by several goroutines.
var markdown = sync.OnceValue(func() parser.Parser {
	return goldmark.New(goldmark.WithExtensions(extension.Table, extension.Strikethrough, extension.TaskList)).Parser()
})

// A layout turns one segment into rows.
type layout struct {
	th    *theme.Theme
	base  theme.Style
	width int
	paint bool // colour code
	src   []byte

	out      []string
	prefixes []prefix
	room     int // cells right of the prefixes
	buf      []byte
	ranges   []text.Range
	hasCode  bool
}

// A prefix stands before every row of a container: a list's marker, then its
// indent, or the edge of a quotation.
type prefix struct {
	first, rest string
	width       int
	used        bool
}

// push enters a container. Where its prefix would take the room from the text, it
// is left out: a narrow window shows the words first.
func (l *layout) push(first, rest string, w int) int {
	if l.room-w < max(1, min(8, l.width/2)) {
		first, rest, w = "", "", 0
	}
	l.prefixes = append(l.prefixes, prefix{first: first, rest: rest, width: w})
	l.room -= w
	return w
}

func (l *layout) pop() {
	n := len(l.prefixes) - 1
	l.room += l.prefixes[n].width
	l.prefixes = l.prefixes[:n]
}

// lead starts a row in l.buf with the prefixes.
func (l *layout) lead() {
	l.buf = l.buf[:0]
	for i := range l.prefixes {
		p := &l.prefixes[i]
		if p.used {
			l.buf = append(l.buf, p.rest...)
			continue
		}
		p.used = true
		l.buf = append(l.buf, p.first...)
	}
}

// end finishes the row in l.buf.
func (l *layout) end() { l.out = append(l.out, string(l.buf)) }

// gap is a blank row between blocks, with the edges of quotations.
func (l *layout) gap() {
	l.lead()
	l.buf = bytes.TrimRight(l.buf, " ")
	l.end()
}

func (l *layout) row(s string) {
	l.lead()
	l.buf = append(l.buf, s...)
	l.end()
}

// markdownRows lays out a segment that goldmark parses.
func (l *layout) markdownRows(src []byte) {
	l.src, l.room = src, l.width
	if simple(src) {
		l.plainParagraph(src)
		return
	}
	l.blocks(markdown().Parse(gtext.NewReader(src)), false)
}

// blocks lays out the children of a container.
func (l *layout) blocks(n ast.Node, tight bool) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		before := len(l.out)
		gap := c.PreviousSibling() != nil && !tight && before > 0
		if gap {
			l.gap()
		}
		mark := len(l.out)
		l.block(c)
		if gap && len(l.out) == mark {
			l.out = l.out[:before] // the block shows nothing
		}
	}
}

func (l *layout) block(n ast.Node) {
	switch n := n.(type) {
	case *ast.Heading:
		f := &flow{}
		f.add(strings.Repeat("#", n.Level)+" ", l.th.Dim)
		l.children(f, n, l.th.Heading.Over(l.base))
		l.flow(f)
	case *ast.Paragraph, *ast.TextBlock:
		f := &flow{}
		l.children(f, n, l.base)
		l.flow(f)
	case *ast.ThematicBreak:
		l.row(l.th.Border.Render(strings.Repeat(l.th.Glyphs.Horizontal, l.room)))
	case *ast.FencedCodeBlock:
		l.code(string(n.Language(l.src)), lines(n, l.src))
	case *ast.CodeBlock:
		l.code("", lines(n, l.src))
	case *ast.HTMLBlock:
		raw := lines(n, l.src)
		if n.HasClosure() {
			raw += string(n.ClosureLine.Value(l.src))
		}
		l.verbatim(raw)
	case *ast.List:
		l.list(n)
	case *ast.Blockquote:
		edge := l.th.Quote.Render(l.th.Glyphs.Quote) + " "
		l.push(edge, edge, 2)
		base := l.base
		l.base = l.th.Quote.Over(base)
		l.blocks(n, false)
		l.base = base
		l.pop()
	case *east.Table:
		l.table(n)
	case *ast.LinkReferenceDefinition:
	default:
		l.blocks(n, false)
	}
}

// lines returns the text of a block's lines.
func lines(n ast.Node, src []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		b.Write(seg.Value(src))
	}
	return b.String()
}

// flow wraps running text.
func (l *layout) flow(f *flow) {
	s := f.snap()
	if s == "" {
		return
	}
	l.ranges = text.WrapRanges(l.ranges[:0], s, l.room)
	from := 0
	for _, r := range l.ranges {
		l.lead()
		l.buf, from = f.row(l.buf, s, r, from)
		l.end()
	}
}

// verbatim shows lines as they are, dimmed: HTML.
func (l *layout) verbatim(raw string) {
	for line := range strings.SplitSeq(strings.TrimRight(text.Clean(raw), "\n"), "\n") {
		for _, r := range hardWrap(line, l.room) {
			l.row(l.th.Dim.Over(l.base).Render(line[r.Start:r.End]))
		}
	}
}

func (l *layout) list(n *ast.List) {
	num := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		marker := l.th.Glyphs.Bullet
		if n.IsOrdered() {
			marker = strconv.Itoa(num) + string(n.Marker)
			num++
		}
		if c.PreviousSibling() != nil && !n.IsTight {
			l.gap()
		}
		w := text.Width(marker) + 1
		l.push(l.th.Accent.Over(l.base).Render(marker)+" ", text.Spaces(w), w)
		mark := len(l.out)
		l.blocks(c, n.IsTight)
		if len(l.out) == mark {
			l.gap() // an empty item still has its marker
		}
		l.pop()
	}
}

// simple says whether a segment is one paragraph without any mark: most prose is,
// and goldmark would only copy it.
func simple(src []byte) bool {
	start := true // of a line
	for i, c := range src {
		if start {
			if !(c|0x20 >= 'a' && c|0x20 <= 'z' || c == '(' || c == '"' || c == '\'') {
				return false
			}
			start = false
			continue
		}
		switch c {
		case '\n':
			if src[i-1] == ' ' {
				return false
			}
			start = i+1 < len(src)
			if start && src[i+1] == '\n' {
				// Blank lines at the end of the segment.
				return len(bytes.Trim(src[i:], "\n")) == 0
			}
		case '\\', '`', '*', '_', '[', '<', '&', '~', '|':
			return false
		default:
			if c < 0x20 || c >= 0x7f {
				return false
			}
		}
	}
	return len(src) > 0 && src[len(src)-1] != ' '
}

// plainParagraph lays out what simple has accepted.
func (l *layout) plainParagraph(src []byte) {
	s := strings.ReplaceAll(string(bytes.TrimRight(src, "\n")), "\n", " ")
	l.ranges = text.WrapRanges(l.ranges[:0], s, l.room)
	for _, r := range l.ranges {
		l.out = append(l.out, l.base.Render(s[r.Start:r.End]))
	}
}

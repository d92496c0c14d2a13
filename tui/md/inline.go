package md

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// A flow is the text of a paragraph or cell, clean, with the ends of the parts
// that look alike.
type flow struct {
	b     []byte
	spans []span
}

// A span reaches from the end of the one before to end.
type span struct {
	end   int
	style theme.Style
}

// add appends text that is not yet clean.
func (f *flow) add(s string, st theme.Style) {
	if s == "" {
		return
	}
	f.b = append(f.b, text.CleanLine(s)...)
	f.mark(st)
}

// mark gives what was appended last a style.
func (f *flow) mark(st theme.Style) {
	if n := len(f.spans); n > 0 && f.spans[n-1].style == st {
		f.spans[n-1].end = len(f.b)
		return
	}
	f.spans = append(f.spans, span{len(f.b), st})
}

// snap moves the ends of spans to the ends of grapheme clusters: a colour between
// a letter and its accent would give the accent a cell of its own.
func (f *flow) snap() string {
	s := string(f.b)
	if len(f.spans) < 2 {
		return s
	}
	i := 0
	for k := range f.spans[:len(f.spans)-1] {
		end := f.spans[k].end
		if end >= len(s) || s[end] < utf8.RuneSelf && s[end-1] < utf8.RuneSelf {
			i = max(i, end)
			f.spans[k].end = i
			continue
		}
		// Clusters start at a line break for certain, and where the last end was.
		for i < end {
			if s[i] == '\n' {
				i++
				continue
			}
			n, _ := text.Next(s[i:])
			i += n
		}
		f.spans[k].end = i
	}
	f.spans[len(f.spans)-1].end = len(s)
	return s
}

// row appends the part r of s, styled over base, to dst. from is the span to look
// at first; the one to look at next is returned.
func (f *flow) row(dst []byte, s string, r text.Range, from int) ([]byte, int) {
	at := r.Start
	for from < len(f.spans) && at < r.End {
		sp := f.spans[from]
		if sp.end <= at {
			from++
			continue
		}
		end := min(sp.end, r.End)
		dst = sp.style.Append(dst, s[at:end])
		at = end
	}
	return dst, from
}

// children flattens the inline children of n.
func (l *layout) children(f *flow, n ast.Node, st theme.Style) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		l.inline(f, c, st)
	}
}

func (l *layout) inline(f *flow, n ast.Node, st theme.Style) {
	t := l.th
	switch n := n.(type) {
	case *ast.Text:
		v := n.Value(l.src)
		if n.IsRaw() {
			f.add(string(v), st)
		} else {
			f.add(unescape(v), st)
		}
		switch {
		case n.HardLineBreak():
			f.b = append(f.b, '\n')
			f.mark(st)
		case n.SoftLineBreak():
			l.soft(f, n, st)
		}
	case *ast.String:
		f.add(string(n.Value), st)
	case *ast.CodeSpan:
		var b bytes.Buffer
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if tx, ok := c.(*ast.Text); ok {
				b.Write(tx.Value(l.src))
			}
		}
		f.add(b.String(), t.CodeSpan.Over(st))
	case *ast.Emphasis:
		a := theme.Italic
		if n.Level >= 2 {
			a = theme.Bold
		}
		l.children(f, n, st.With(a))
	case *east.Strikethrough:
		l.children(f, n, st.With(theme.Strike))
	case *east.TaskCheckBox:
		box := t.Glyphs.Unchecked
		if n.IsChecked {
			box = t.Glyphs.Checked
		}
		f.add(box+" ", t.Accent.Over(st))
	case *ast.Link:
		l.link(f, n, string(n.Destination), st)
	case *ast.Image:
		f.add("image: ", t.Dim.Over(st))
		l.link(f, n, string(n.Destination), st)
	case *ast.AutoLink:
		f.add(string(n.Label(l.src)), t.Link.Over(st))
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			f.add(string(seg.Value(l.src)), t.Dim.Over(st))
		}
	default:
		l.children(f, n, st)
	}
}

// link shows what the link says and where it leads, once if both are the same.
func (l *layout) link(f *flow, n ast.Node, dest string, st theme.Style) {
	from := len(f.b)
	l.children(f, n, l.th.Link.Over(st))
	if shown := string(f.b[from:]); dest != "" && shown != text.CleanLine(dest) {
		if shown != "" {
			f.add(" ", st)
		}
		f.add("("+dest+")", l.th.URL.Over(st))
	}
}

// soft is a line break of the source: a space, but nothing between two wide
// letters, whose scripts have no spaces.
func (l *layout) soft(f *flow, n *ast.Text, st theme.Style) {
	before, _ := utf8.DecodeLastRune(f.b)
	if before >= 0x2e80 {
		if next, ok := n.NextSibling().(*ast.Text); ok {
			after, _ := utf8.DecodeRune(next.Value(l.src))
			if after >= 0x2e80 && after != utf8.RuneError && text.Width(string(before)) == 2 && text.Width(string(after)) == 2 {
				return
			}
		}
	}
	f.b = append(f.b, ' ')
	f.mark(st)
}

// unescape resolves backslash escapes and character references, which goldmark
// leaves to the renderer.
func unescape(v []byte) string {
	if bytes.IndexByte(v, '\\') < 0 && bytes.IndexByte(v, '&') < 0 {
		return string(v)
	}
	var b strings.Builder
	for i := 0; i < len(v); {
		switch c := v[i]; {
		case c == '\\' && i+1 < len(v) && util.IsPunct(v[i+1]):
			b.WriteByte(v[i+1])
			i += 2
		case c == '&':
			end := bytes.IndexByte(v[i:], ';')
			if end < 0 || end > 40 {
				b.WriteByte(c)
				i++
				break
			}
			ref := v[i : i+end+1]
			b.Write(util.ResolveEntityNames(util.ResolveNumericReferences(ref)))
			i += end + 1
		default:
			b.WriteByte(c)
			i++
		}
	}
	return b.String()
}

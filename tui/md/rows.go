package md

import (
	"bytes"
	"strings"

	"deltafin/tui/text"
)

// Rows returns the exact number of rows, laying out whatever is not. A block that
// shows something is followed by a blank row if another such block follows.
func (d *Doc) Rows() int {
	d.sync()
	n := 0
	for i := range d.segs {
		n = d.join(n, d.height(i))
	}
	return n
}

// join adds a block's rows to those above it.
func (d *Doc) join(n, h int) int {
	if n > 0 && h > 0 {
		n++
	}
	return n + h
}

// Estimate returns about how many rows there are without laying anything out:
// exact for blocks that are, and by the length of the source for others. It is
// for scroll bars.
func (d *Doc) Estimate() int {
	d.sync()
	n := 0
	for i := range d.segs {
		s := &d.segs[i]
		from, to, _ := d.span(i)
		if s.rows != nil && s.width == d.width && s.upTo == to {
			n = d.join(n, len(s.rows))
			continue
		}
		n = d.join(n, 1+(to-from)/d.width)
	}
	return n
}

// Slice returns the rows from number from, n at most. It lays out the blocks up to
// there.
func (d *Doc) Slice(from, n int) []Line {
	d.sync()
	if from < 0 {
		n, from = n+from, 0
	}
	if n <= 0 {
		return nil
	}
	out := make([]Line, 0, min(n, 256))
	at := 0 // number of the next row
	for i := range d.segs {
		h := d.height(i)
		if h == 0 {
			continue
		}
		if at > 0 {
			if at >= from {
				out = append(out, Line{Block: i - 1})
			}
			at++
		}
		if len(out) < n && at+h > from {
			rows := d.visible(i)
			for k := max(from-at, 0); k < h && len(out) < n; k++ {
				out = append(out, Line{rows[k], i})
			}
		}
		at += h
		if len(out) >= n {
			return out[:n]
		}
	}
	return out
}

// Tail returns n rows at most, the last of which has skip rows below it. It lays
// out from the end, so a long document opens there at once. A skip beyond the
// beginning gives none.
func (d *Doc) Tail(skip, n int) []Line {
	d.sync()
	skip = max(skip, 0)
	if n <= 0 {
		return nil
	}
	var rev []Line
	below := 0 // rows below the next one upwards
	for i := len(d.segs) - 1; i >= 0 && len(rev) < n; i-- {
		h := d.height(i)
		if h == 0 {
			continue
		}
		if below > 0 {
			if below >= skip {
				rev = append(rev, Line{Block: i})
			}
			below++
		}
		if below+h > skip {
			rows := d.visible(i)
			for k := h - 1 - max(skip-below, 0); k >= 0 && len(rev) < n; k-- {
				rev = append(rev, Line{rows[k], i})
			}
		}
		below += h
	}
	for a, b := 0, len(rev)-1; a < b; a, b = a+1, b-1 {
		rev[a], rev[b] = rev[b], rev[a]
	}
	return rev
}

// height returns the rows of segment i, laying it out without colours if need be.
func (d *Doc) height(i int) int {
	s := &d.segs[i]
	if i < d.first {
		return len(s.rows)
	}
	from, to, final := d.span(i)
	if s.rows == nil || s.width != d.width || s.upTo != to || s.final != final {
		d.layout(i, from, to, final, false)
	}
	if final && i == d.first {
		d.first++
	}
	return len(s.rows)
}

// visible returns the rows of segment i, whose height is known, as they are to be
// shown: code with its colours once it is closed.
func (d *Doc) visible(i int) []string {
	s := &d.segs[i]
	if s.hasCode && !s.painted && (s.final || s.fence && s.closed) {
		d.layout(i, s.start, s.upTo, s.final, true)
	}
	return s.rows
}

// layout lays out segment i.
func (d *Doc) layout(i, from, to int, final, paint bool) {
	s := &d.segs[i]
	l := layout{th: d.opt.Theme, base: d.opt.Base, width: d.width, room: d.width, paint: paint}
	if s.fence && !paint {
		d.openFence(i, &l, to, final)
	} else if s.fence {
		info, code := d.fenceParts(i)
		lang, _, _ := strings.Cut(info, " ")
		l.code(lang, code)
		s.rows, s.hasCode = l.out, true
	} else {
		l.markdownRows(d.src[from:to])
		s.rows, s.hasCode = l.out, l.hasCode
	}
	if s.rows == nil {
		s.rows = []string{}
	}
	s.width, s.upTo, s.final, s.painted = d.width, to, final, paint
}

// openFence lays out a fence without colours. Code grows by a line at a time and
// may be long: rows of whole lines are kept.
func (d *Doc) openFence(i int, l *layout, to int, final bool) {
	s := &d.segs[i]
	s.hasCode = true
	if s.rows == nil || s.width != d.width || s.painted || s.closed || final || s.stableTo == 0 {
		_, code := d.fenceParts(i)
		if s.closed || final {
			l.code("", code)
			s.rows, s.stable, s.stableTo = l.out, 0, 0
			return
		}
		s.rows, s.stable = nil, 0
		s.stableTo = s.start + firstLine(d.src[s.start:to])
	}
	whole := s.stableTo + bytes.LastIndexByte(d.src[s.stableTo:to], '\n') + 1
	l.out = s.rows[:s.stable]
	if whole > s.stableTo {
		l.codeText(d.body(s, s.stableTo, whole-1))
		s.stable, s.stableTo = len(l.out), whole
	}
	if rest := d.body(s, whole, to); rest != "" || s.stable == 0 {
		l.codeText(rest)
	}
	s.rows = l.out
}

// codeText lays out whole lines of code without colours.
func (l *layout) codeText(code string) {
	f := &flow{b: []byte(text.Clean(code))}
	f.mark(l.th.Code)
	l.codeRows(f, string(f.b), 0)
}

// firstLine returns the length of the first line with its break.
func firstLine(b []byte) int {
	if n := bytes.IndexByte(b, '\n'); n >= 0 {
		return n + 1
	}
	return len(b)
}

// fenceParts returns what stands behind the fence of segment i, and the code.
func (d *Doc) fenceParts(i int) (info, code string) {
	s := &d.segs[i]
	from, to, _ := d.span(i)
	n := firstLine(d.src[from:to])
	_, rest := indent(bytes.TrimRight(d.src[from:from+n], "\n"))
	if len(rest) > 0 {
		info = unescape(bytes.TrimSpace(bytes.TrimLeft(rest, string(rest[0]))))
	}
	end := to
	if s.closed {
		// The closing fence is the last line that is not blank.
		end = from + len(bytes.TrimRight(d.src[from:to], " \t\n"))
		end = max(from+bytes.LastIndexByte(d.src[from:end], '\n')+1, from+n)
	}
	return info, d.body(s, from+n, end)
}

// body returns lines of code without the indent of their fence and without the
// last break.
func (d *Doc) body(s *segment, from, to int) string {
	if from >= to {
		return ""
	}
	code := strings.TrimSuffix(string(d.src[from:to]), "\n")
	if s.indent == 0 {
		return code
	}
	lines := strings.Split(code, "\n")
	for i, l := range lines {
		n := 0
		for n < s.indent && n < len(l) && l[n] == ' ' {
			n++
		}
		if n < s.indent && n < len(l) && l[n] == '\t' {
			// A tab reaches beyond the indent: what is left of it are spaces.
			lines[i] = text.Spaces(4-s.indent) + l[n+1:]
			continue
		}
		lines[i] = l[n:]
	}
	return strings.Join(lines, "\n")
}

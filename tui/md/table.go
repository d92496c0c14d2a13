package md

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// narrowest is the least width of a table's column. A table with less is shown as
// a list of its cells.
const narrowest = 6

// A cell is a table's cell before it has a width.
type cell struct {
	flow *flow
	s    string
}

func (l *layout) cell(n ast.Node, st theme.Style) cell {
	f := &flow{}
	l.children(f, n, st)
	return cell{f, f.snap()}
}

// table lays out a table: columns as wide as their widest cell, or less by
// wrapping the widest where the room is short.
func (l *layout) table(n *east.Table) {
	var head []cell
	var rows [][]cell
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		st := l.base
		_, isHead := c.(*east.TableHeader)
		if isHead {
			st = st.With(theme.Bold)
		}
		var row []cell
		for d := c.FirstChild(); d != nil; d = d.NextSibling() {
			row = append(row, l.cell(d, st))
		}
		if isHead {
			head = row
		} else {
			rows = append(rows, row)
		}
	}
	cols := len(head)
	if cols == 0 {
		return
	}
	widths := make([]int, cols)
	for _, r := range append([][]cell{head}, rows...) {
		for i := range min(cols, len(r)) {
			widths[i] = max(widths[i], 1, text.Width(r[i].s))
		}
	}
	// "| " before each column, " " behind it, and the last "|".
	room := l.room - 3*cols - 1
	if room < cols*narrowest && sum(widths) > room {
		l.records(head, rows)
		return
	}
	fit(widths, room)
	l.tableRow(head, widths, n.Alignments)
	g := l.th.Glyphs
	var b strings.Builder
	for i, w := range widths {
		edge := g.Cross
		if i == 0 {
			edge = g.TeeRight
		}
		b.WriteString(edge + strings.Repeat(g.Horizontal, w+2))
	}
	l.row(l.th.Border.Render(b.String() + g.TeeLeft))
	for _, r := range rows {
		l.tableRow(r, widths, n.Alignments)
	}
}

func sum(v []int) int {
	n := 0
	for _, x := range v {
		n += x
	}
	return n
}

// fit lowers the widest columns to one height until all fit the room.
func fit(widths []int, room int) {
	if sum(widths) <= room {
		return
	}
	lo, hi := 1, max(room, 1) // the greatest cap that fits lies in [lo, hi)
	total := func(limit int) int {
		n := 0
		for _, w := range widths {
			n += min(w, limit)
		}
		return n
	}
	for lo+1 < hi {
		if mid := (lo + hi) / 2; total(mid) <= room {
			lo = mid
		} else {
			hi = mid
		}
	}
	left := room - total(lo)
	for i, w := range widths {
		widths[i] = min(w, lo)
		if w > lo && left > 0 {
			widths[i]++
			left--
		}
	}
}

// tableRow lays out one row, as high as its highest cell.
func (l *layout) tableRow(row []cell, widths []int, align []east.Alignment) {
	bar := l.th.Border.Render(l.th.Glyphs.Vertical)
	wrapped := make([][]text.Range, len(widths))
	height := 1
	for i := range wrapped {
		if i < len(row) {
			wrapped[i] = text.WrapRanges(nil, row[i].s, widths[i])
			height = max(height, len(wrapped[i]))
		}
	}
	spans := make([]int, len(widths))
	for y := range height {
		l.lead()
		for i, w := range widths {
			l.buf = append(append(l.buf, bar...), ' ')
			pad := w
			if y < len(wrapped[i]) {
				r := wrapped[i][y]
				pad = w - r.Width
				before := 0
				switch {
				case i >= len(align):
				case align[i] == east.AlignRight:
					before = pad
				case align[i] == east.AlignCenter:
					before = pad / 2
				}
				l.buf = append(l.buf, text.Spaces(before)...)
				l.buf, spans[i] = row[i].flow.row(l.buf, row[i].s, r, spans[i])
				pad -= before
			}
			l.buf = append(append(l.buf, text.Spaces(pad)...), ' ')
		}
		l.buf = append(l.buf, bar...)
		l.end()
	}
}

// records shows a table that is too wide as one list per row: "header: cell".
func (l *layout) records(head []cell, rows [][]cell) {
	for k, r := range append([][]cell{}, rows...) {
		if k > 0 {
			l.gap()
		}
		for i, c := range r {
			f := &flow{}
			if i < len(head) {
				f.join(head[i])
				f.add(": ", l.base)
			}
			f.join(c)
			l.flow(f)
		}
	}
	if len(rows) == 0 {
		for _, c := range head {
			l.flow(c.flow)
		}
	}
}

// join appends a cell.
func (f *flow) join(c cell) {
	at := 0
	for _, sp := range c.flow.spans {
		f.b = append(f.b, c.s[at:sp.end]...)
		f.mark(sp.style)
		at = sp.end
	}
}

package tui

import (
	"slices"

	"deltafin/session"
)

// An anchor is a row of the thread that stays where it is on the screen while text
// arrives below. It is found from the end of the thread, so that a long one costs what
// was scrolled through.
type anchor struct {
	turn session.ID
	part int  // of the turn
	row  int  // of the part: from its beginning if it grows, else rows from there to its end
	live bool // it grows
	skip int  // rows below the window when it was last drawn there
}

// draw returns the rows seen, h at most, and whether there are more below. A window
// that does not follow keeps its first row, unless it was scrolled since it was drawn
// last.
func (r *transcript) draw(h int) (rows []string, below bool) {
	if r.skip > 0 && r.skip == r.held.skip {
		if n, ok := r.below(&r.held); ok {
			r.skip = max(0, n-h)
		} else {
			r.held = anchor{}
		}
	}
	rows, below = r.window(h)
	if r.held.skip != r.skip || r.skip == 0 {
		r.hold(len(rows))
	}
	return rows, below
}

// hold makes the first row of a window of h rows the anchor.
func (r *transcript) hold(h int) {
	r.held = anchor{}
	if r.skip == 0 || h == 0 {
		return
	}
	parts, left := r.all(), r.skip+h
	for i := len(parts) - 1; i >= 0; i-- {
		p := &parts[i]
		if len(p.tail(left-1, 1)) == 0 {
			left -= p.rows()
			continue
		}
		r.held = anchor{turn: p.turn, row: left, live: i >= len(r.parts), skip: r.skip}
		if r.held.live {
			r.held.row = p.rows() - left
		}
		for j := i - 1; j >= 0 && parts[j].turn == p.turn; j-- {
			r.held.part++
		}
		return
	}
}

// below counts the rows from the anchor to the end of the thread; ok is false when
// the thread no longer has it.
func (r *transcript) below(a *anchor) (n int, ok bool) {
	parts := r.all()
	at := slices.IndexFunc(parts, func(p part) bool { return p.turn == a.turn })
	if at += a.part; at < a.part || at >= len(parts) || parts[at].turn != a.turn {
		return 0, false
	}
	for i := at + 1; i < len(parts); i++ {
		n += parts[i].rows()
	}
	if a.live {
		return n + max(1, parts[at].rows()-a.row), true
	}
	return n + a.row, true
}

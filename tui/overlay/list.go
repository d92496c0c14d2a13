package overlay

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"deltafin/tui/pane"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// An Item is a row of a List.
type Item struct {
	Label string
	Right string // a key, or a state
	Value int    // of the caller
}

// A List offers rows, filtered by what is typed. With Prompt it is a line to fill
// in and has no rows.
type List struct {
	Title  string
	Items  []Item
	Filter string
	At     int // row chosen, among those that fit the filter
	Prompt bool
	Empty  string // said when nothing fits
}

// Shown returns the rows that fit the filter.
func (l *List) Shown() []Item {
	if l.Filter == "" || l.Prompt {
		return l.Items
	}
	var out []Item
	for _, it := range l.Items {
		if fits(it.Label+" "+it.Right, l.Filter) {
			out = append(out, it)
		}
	}
	return out
}

// fits reports whether the letters of query occur in s in their order.
func fits(s, query string) bool {
	rest := []rune(strings.ToLower(query))
	for _, r := range strings.ToLower(s) {
		if len(rest) > 0 && r == rest[0] {
			rest = rest[1:]
		}
	}
	return len(rest) == 0
}

// Key takes a key by name, or typed letters. done says that the overlay closes,
// ok that something was chosen rather than given up.
func (l *List) Key(name, typed string) (done, ok bool) {
	n := len(l.Shown())
	switch name {
	case "esc", "ctrl+c":
		return true, false
	case "enter":
		if l.Prompt {
			return true, strings.TrimSpace(l.Filter) != ""
		}
		return n > 0, n > 0
	case "up", "shift+tab":
		l.At--
	case "down", "tab":
		l.At++
	case "pgup":
		l.At -= 10
	case "pgdown":
		l.At += 10
	case "backspace":
		_, size := utf8.DecodeLastRuneInString(l.Filter)
		l.Filter, l.At = l.Filter[:len(l.Filter)-size], 0
	case "ctrl+u":
		l.Filter, l.At = "", 0
	default:
		if typed != "" {
			l.Filter, l.At = l.Filter+text.CleanLine(typed), 0
		}
	}
	l.At = max(0, min(l.At, len(l.Shown())-1))
	return false, false
}

// Chosen returns the row chosen; ok is false without one.
func (l *List) Chosen() (it Item, ok bool) {
	if s := l.Shown(); l.At < len(s) {
		return s[l.At], true
	}
	return it, false
}

// hintRows is the height from which the last row says the keys.
const hintRows = 8

// Draw draws the overlay as exactly h lines of w cells.
func (l *List) Draw(t *theme.Theme, w, h int) []string {
	in, g := w-4, t.Glyphs
	lines := []string{text.CutLeft("> "+l.Filter+g.Cursor, max(in, 0))}
	shown := l.Shown()
	rows, hint := max(1, h-3), h >= hintRows
	if hint {
		rows--
	}
	from := max(0, min(l.At-rows/2, len(shown)-rows))
	for i := from; i < len(shown) && i < from+rows; i++ {
		row := "  "
		if i == l.At {
			row = g.Mark + " "
		}
		row = text.Join(row+text.CleanLine(shown[i].Label), shown[i].Right, max(in, 0), g.Ellipsis)
		if i == l.At {
			row = t.Selected.Render(row)
		}
		lines = append(lines, row)
	}
	answer := ""
	if !l.Prompt {
		answer = fmt.Sprint(len(shown))
	}
	if len(shown) == 0 && l.Empty != "" {
		lines = append(lines, text.Wrap(l.Empty, max(in, 1))...)
	}
	if hint {
		for len(lines) < h-3 {
			lines = append(lines, "")
		}
		keys := "type to filter   up/down choose   enter takes it   esc closes"
		if l.Prompt {
			keys = "enter takes it   esc closes"
		}
		lines = append(lines[:h-3], t.Dim.Render(text.Elide(keys, max(in, 0), g.Ellipsis)))
	}
	return pane.Box(t, l.Title, answer, lines, w, h, true)
}

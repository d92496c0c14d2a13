package tui

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"deltafin/tui/text"
)

// A paste longer than this becomes a chip: laying out a long text at every key
// would cost more than the answer's tokens.
const (
	chipRunes = 1000
	chipLines = 15
)

// An input is the text being written. at is the cursor, in bytes.
type input struct {
	text    string
	at      int
	pastes  []string
	history []written
	back    int // place in history, counted from its end; 0 is the text itself
}

// A written text is one of the history, with what its chips stand for.
type written struct {
	text   string
	pastes []string
}

// keep adds a text to the history.
func (e *input) keep(w written) {
	if strings.TrimSpace(w.text) != "" {
		e.history = append(e.history, w)
	}
}

func (e *input) set(s string) { e.text, e.at = s, len(s) }

func (e *input) clear() { *e = input{history: e.history} }

// drop empties the input; Up brings the text back.
func (e *input) drop() {
	e.keep(written{e.text, e.pastes})
	e.clear()
}

func (e *input) insert(s string) {
	e.text = e.text[:e.at] + s + e.text[e.at:]
	e.at += len(s)
	e.back = 0
}

// paste inserts what was pasted, as a chip if it is long.
func (e *input) paste(s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if lines := strings.Count(s, "\n") + 1; utf8.RuneCountInString(s) > chipRunes || lines > chipLines {
		e.pastes = append(e.pastes, s)
		s = chip(len(e.pastes), lines)
	}
	e.insert(s)
}

func chip(n, lines int) string { return fmt.Sprintf("[paste %d, %d lines]", n, lines) }

// full returns what is sent: the whole text without blanks around it.
func (e *input) full() string { return strings.TrimSpace(e.whole()) }

// whole returns the text with the pastes in the place of their chips.
func (e *input) whole() string {
	s := e.text
	for i, p := range e.pastes {
		s = strings.Replace(s, chip(i+1, strings.Count(p, "\n")+1), p, 1)
	}
	return s
}

// asWritten is a text as the input holds it: a long one as a chip.
func asWritten(s string) written {
	var e input
	e.paste(s)
	return written{e.text, e.pastes}
}

// remember fills an empty history with the questions that wait from an earlier run.
func (m *model) remember() {
	if len(m.in.history) > 0 {
		return
	}
	for i := range m.s.Queue {
		m.in.keep(asWritten(m.s.Queue[i].Text))
	}
}

// recalled reports whether the text is one of the history, as it was.
func (e *input) recalled() bool {
	return e.back > 0 && e.text == e.history[len(e.history)-e.back].text
}

// recall goes through what was sent before, by +1 back and by -1 forward.
func (e *input) recall(by int) {
	back := max(0, min(e.back+by, len(e.history)))
	if back == e.back {
		return
	}
	if back == 0 {
		e.set("")
		e.pastes = nil
	} else {
		w := e.history[len(e.history)-back]
		e.set(w.text)
		e.pastes = slices.Clone(w.pastes)
	}
	e.back = back
}

// key edits the text; it reports whether it knew the key.
func (e *input) key(name string) bool {
	before, after := e.text[:e.at], e.text[e.at:]
	switch name {
	case "left", "ctrl+b":
		e.at -= lastLetter(before)
	case "right", "ctrl+f":
		if after != "" {
			n, _ := text.Next(after)
			e.at += n
		}
	case "backspace", "ctrl+h":
		n := lastLetter(before)
		e.text, e.at = before[:len(before)-n]+after, e.at-n
	case "delete", "ctrl+d":
		if after != "" {
			n, _ := text.Next(after)
			e.text = before + after[n:]
		}
	case "ctrl+a":
		e.at = strings.LastIndexByte(before, '\n') + 1
	case "ctrl+e":
		if i := strings.IndexByte(after, '\n'); i >= 0 {
			e.at += i
		} else {
			e.at = len(e.text)
		}
	case "ctrl+u":
		i := strings.LastIndexByte(before, '\n') + 1
		e.text, e.at = before[:i]+after, i
	case "ctrl+k":
		i := strings.IndexByte(after, '\n')
		if i < 0 {
			i = len(after)
		}
		e.text = before + after[i:]
	case "ctrl+w", "alt+backspace":
		i := strings.LastIndexAny(strings.TrimRight(before, " \n"), " \n") + 1
		e.text, e.at = before[:i]+after, i
	case "alt+b", "alt+left", "ctrl+left":
		e.at = strings.LastIndexAny(strings.TrimRight(before, " \n"), " \n") + 1
	case "alt+f", "alt+right", "ctrl+right":
		rest := strings.TrimLeft(after, " \n")
		if i := strings.IndexAny(rest, " \n"); i >= 0 {
			e.at = len(e.text) - len(rest) + i
		} else {
			e.at = len(e.text)
		}
	default:
		return false
	}
	return true
}

// lastLetter is the length of the last letter as people count them: a letter with its
// accents, a whole emoji.
func lastLetter(s string) int {
	if strings.HasSuffix(s, "\n") {
		return 1
	}
	n := 0
	for i := strings.LastIndexByte(s, '\n') + 1; i < len(s); i += n {
		n, _ = text.Next(s[i:])
	}
	return n
}

// vertical moves the cursor to the line above or below, in its column if that line is
// long enough; it reports whether there is one.
func (e *input) vertical(by int) bool {
	start := strings.LastIndexByte(e.text[:e.at], '\n') + 1
	column := text.Width(e.text[start:e.at])
	if by < 0 {
		if start == 0 {
			return false
		}
		start = strings.LastIndexByte(e.text[:start-1], '\n') + 1
	} else {
		i := strings.IndexByte(e.text[e.at:], '\n')
		if i < 0 {
			return false
		}
		start = e.at + i + 1
	}
	e.at = start
	for e.at < len(e.text) && e.text[e.at] != '\n' {
		n, cells := text.Next(e.text[e.at:])
		if column -= cells; column < 0 {
			break
		}
		e.at += n
	}
	return true
}

// draw returns the lines of the text, w cells wide at most, and where the cursor
// is. Letters are broken anywhere: what is typed stays in its place.
func (e *input) draw(w int) (lines []string, x, y int) {
	w = max(w, 2)
	line, width := "", 0
	flush := func() { lines, line, width = append(lines, line), "", 0 }
	for i := 0; i < len(e.text); {
		if i == e.at {
			x, y = width, len(lines)
		}
		if e.text[i] == '\n' {
			flush()
			i++
			continue
		}
		n, cells := text.Next(e.text[i:])
		if width+cells > w-1 { // the last cell is left to the cursor
			flush()
			if i == e.at {
				x, y = 0, len(lines)
			}
		}
		if i < e.at && e.at < i+n { // within a letter that what was typed has joined
			x, y = width, len(lines)
		}
		line, width = line+e.text[i:i+n], width+cells
		i += n
	}
	if e.at >= len(e.text) {
		x, y = width, len(lines)
	}
	return append(lines, line), x, y
}

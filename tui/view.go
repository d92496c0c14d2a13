package tui

import (
	"fmt"
	"strings"
	"time"

	"deltafin/tui/chart"
	"deltafin/tui/pane"
	"deltafin/tui/text"
)

// View draws the frame.
func (m *model) View() string {
	if m.frozen != "" {
		return m.frozen
	}
	if m.drawn == "" {
		m.drawn, m.drawnAt = m.frame(), m.elapsed()
	}
	return m.drawn
}

// elapsed is what the header's clock shows, in whole seconds.
func (m *model) elapsed() time.Duration { return m.now().Sub(m.s.Began).Truncate(time.Second) }

func (m *model) frame() string {
	return strings.Join(m.rows(), "\n")
}

func (m *model) layout() layout {
	lines, _, _ := m.in.draw(max(1, m.width-3))
	panels := m.panels
	if m.zoom {
		panels = panelsOff
	}
	return arrange(m.width, m.height, len(lines), panels)
}

func (m *model) textRows() int { return m.layout().body }

// rows returns exactly height rows of width cells.
func (m *model) rows() []string {
	l := m.layout()
	if l.tiny {
		line := fmt.Sprintf("%s  Window %dx%d; needs %dx%d.", verb(&m.s), m.width, m.height, minWidth, minHeight)
		return text.Clamp(text.Wrap(line, max(1, m.width)), max(0, m.width), max(0, m.height))
	}
	rule := m.t.Border.Render(strings.Repeat(m.t.Glyphs.Horizontal, l.w))
	out := []string{m.header(l.w)}
	if l.rules {
		out = append(out, rule)
	}
	out = append(out, m.body(l)...)
	if l.strip > 0 {
		if l.rules {
			out = append(out, rule)
		}
		out = append(out, text.Clamp(m.strip(l.w), l.w, l.strip)...)
	}
	if l.rules {
		out = append(out, rule)
	}
	out = append(out, text.Clamp(m.inputRows(l), l.w, l.input)...)
	return m.cover(text.Clamp(append(out, m.foot(l.w)), l.w, l.h))
}

// body is the text between the columns; an overlay takes the text's place.
func (m *model) body(l layout) []string {
	if m.zoom && m.focus != textPane && m.what == nothing {
		return m.zoomed(l)
	}
	if l.instead && m.what == nothing {
		for i, h := range panelHeights(l.body) {
			if h == 0 && pane.All()[i].Name == m.focus {
				return m.zoomed(l)
			}
		}
		return m.column(l.w, l.body)
	}
	m.rewrap(l)
	mid := text.Clamp(m.middle(l), l.text, l.body)
	if l.panels == 0 && l.sidebar == 0 {
		return mid
	}
	var left, right []string
	if l.sidebar > 0 {
		left = m.sidebar(l.sidebar, l.body)
	}
	right = m.column(l.panels, l.body)
	out := make([]string, l.body)
	for i := range out {
		if left != nil {
			out[i] = left[i]
		}
		out[i] += mid[i] + right[i]
	}
	return out
}

// sidebar is the column of threads.
func (m *model) sidebar(w, h int) []string {
	return pane.Box(m.t, "sessions", fmt.Sprint(len(m.threads)), pane.Threads(m.t, m.threads, m.threadRow(), &m.s, w-4, h-2), w, h, m.focus == threadsPane)
}

// panel draws a panel, the queue with the row chosen.
func (m *model) panel(p pane.Panel, w, h int) []string {
	if p.Name == queuePane && m.focus == queuePane {
		return pane.Queue(m.t, &m.s, m.queued(), w, h)
	}
	return p.Draw(m.t, &m.s, w, h, p.Name == m.focus)
}

// zoomed is the pane with the focus over the whole window.
func (m *model) zoomed(l layout) []string {
	if m.focus == threadsPane {
		return m.sidebar(l.w, l.body)
	}
	for _, p := range pane.All() {
		if p.Name == m.focus {
			return m.panel(p, l.w, l.body)
		}
	}
	return nil
}

// column draws the panels below one another.
func (m *model) column(w, h int) []string {
	var out []string
	heights := panelHeights(h)
	for i, p := range pane.All() {
		if heights[i] > 0 {
			out = append(out, m.panel(p, w, heights[i])...)
		}
	}
	return text.Clamp(out, w, h)
}

// middle is what the text's place shows.
func (m *model) middle(l layout) []string {
	if m.what != nothing {
		return m.over.Draw(m.t, l.text, l.body)
	}
	below := m.messages(l.text-2, l.body)
	room := l.body - len(below)
	if m.r.thread == 0 || len(m.r.parts) == 0 && m.r.live == 0 {
		if len(below) == 0 || len(m.r.parts) == 0 && !m.s.State.Busy() && m.shownCard() == nil {
			if len(below) > 0 {
				below = append([]string{""}, below...)
			}
			below = append(m.welcome(l.text-2), below...)
		}
		return indented(below)
	}
	if room <= 0 { // a small window: what there is to say comes first
		return indented(below)
	}
	rows, more := m.r.draw(room)
	if more {
		hint := text.PadLeft("more below, press End to follow "+m.t.Glyphs.Down+" ", l.text)
		rows = append(rows[:len(rows)-1], m.t.Dim.Render(hint))
	}
	edge := " "
	if m.focus == textPane {
		edge = m.t.Accent.Render(m.t.Glyphs.Vertical)
	}
	for i := range rows {
		rows[i] = edge + rows[i]
	}
	return append(rows, indented(below)...)
}

func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = " " + l
	}
	return out
}

// shownCard is the Sample's card unless the user has put it away.
func (m *model) shownCard() *pane.Card {
	if m.s.Card == nil || m.s.Card.Text == m.away {
		return nil
	}
	return m.s.Card
}

// place puts the terminal's cursor into the input, where input methods open.
func (m *model) place() {
	if m.w == nil {
		return
	}
	l := m.layout()
	_, x, y := m.in.draw(max(1, m.width-3))
	first := max(0, y-l.input+1)
	m.w.SetCursor(3+x, l.h-l.footRows-l.input+y-first, !l.tiny && m.what == nothing && m.focus == "" && m.frozen == "")
}

// inputRows draws the input, the line with the cursor always among them.
func (m *model) inputRows(l layout) []string {
	if m.in.text == "" {
		hint := "ask something; add files with @"
		switch {
		case m.s.State == pane.Setup:
			hint = "folder of a model; Enter alone takes the demonstration model"
		case m.s.State.Busy():
			hint = "ask a follow-up (enter queues it while the model works)"
			if l.w >= 110 {
				hint = "ask a follow-up (enter queues it while the model works; ctrl+s breaks in now)"
			}
		case m.stands():
			hint = "Enter goes on where it stopped"
		case m.queueWaits():
			hint = "Enter begins with the questions that wait"
		}
		return []string{" > " + m.t.Dim.Render(hint)}
	}
	lines, _, y := m.in.draw(max(1, m.width-3))
	first := max(0, y-l.input+1)
	var out []string
	for i := first; i < len(lines); i++ {
		mark := "   "
		if i == 0 {
			mark = " > "
		}
		out = append(out, mark+text.Clean(lines[i]))
	}
	return out
}

// foot is the last line: what the question will cost, or the keys.
func (m *model) foot(w int) string {
	switch {
	case m.cost != nil && m.cost.err != nil:
		return " " + text.CleanLine(m.cost.err.Error())
	case m.cost != nil && m.in.text != "":
		s := fmt.Sprintf(" %s tok", pane.Count(int64(m.cost.cost.Tokens)))
		if d := m.cost.cost.Time.Likely; d > 0 {
			s += "   about " + pane.Took(d)
		}
		if d := m.cost.cost.First; d > 0 {
			s += "   first word in " + pane.Took(d)
		}
		return text.Join(s, m.sendHint(), w, m.t.Glyphs.Ellipsis)
	}
	return m.t.Dim.Render(m.footer(w))
}

// strip is the panels in two lines.
func (m *model) strip(w int) []string {
	var parts []string
	if n := len(m.s.Drives); n > 0 {
		now, ceiling := m.s.Totals()
		u := pane.UnitFor(pane.Fastest(m.s.Drives))
		name := "1 drive"
		if n > 1 {
			name = fmt.Sprintf("%d drives", n)
		}
		d := fmt.Sprintf("%s %s %s/s", name, u.Of(now), u.Name)
		switch {
		case m.s.AtRest():
			d = name + " idle"
		case ceiling > 0:
			d += " (" + pane.Percent(now/ceiling) + ")"
		}
		parts = append(parts, d)
	}
	if m.s.Prefetch.Uses() > 0 {
		parts = append(parts, "hit "+pane.Percent(m.s.Prefetch.HitRate()))
	}
	if e := m.s.Experts; e.Budget > 0 {
		u := pane.UnitFor(float64(e.Budget))
		parts = append(parts, fmt.Sprintf("cache %s/%s %s", u.Of(float64(e.Held)), u.Of(float64(e.Budget)), u.Name))
	}
	if m.s.Memory.Total > 0 {
		used := pane.UnitFor(float64(m.s.Memory.Used)) // the program alone may be a thousandth of the machine
		parts = append(parts, fmt.Sprintf("RAM %.0f %s/%.0f GB", float64(m.s.Memory.Used)/used.Bytes, used.Name, float64(m.s.Memory.Total)/1e9))
	}
	bar := " waiting for the first token"
	switch m.s.State {
	case pane.Setup, pane.Loading:
		parts, bar = []string{"no model is open"}, " the panels fill when one is"
	}
	if len(parts) == 0 {
		parts = []string{"all experts are in memory"}
	}
	if m.s.Layers > 0 {
		tail := fmt.Sprintf(" L %d/%d", m.s.Layer, m.s.Layers)
		if m.s.Token.Took > 0 {
			tail += "  " + pane.Each(m.s.Token.Took)
		}
		bar = " " + chart.Bar(m.t, float64(m.s.Layer)/float64(m.s.Layers), max(1, w-2-len(tail))) + tail
	}
	out := []string{" " + strings.Join(parts, " | "), bar}
	if m.s.AtRest() {
		for i := range out {
			out[i] = pane.Freeze(m.t, out[i])
		}
	}
	return out
}

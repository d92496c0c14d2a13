package tui

import (
	"deltafin/tui/text"
)

// What lies over the last rows of the window for a moment: the menu behind Ctrl+X,
// or the paths that an @ may mean. Nothing else moves for it.

// cover lays the menu that is open over the end of the rows.
func (m *model) cover(rows []string) []string {
	var lines []string
	end := len(rows)
	switch {
	case m.menu:
		lines = m.leaderMenu(m.width)
	case m.choices.names != nil && m.what == nothing:
		l := m.layout()
		end -= l.footRows + l.input // what is typed stays in sight
		lines = m.choices.draw(m, m.width, end-1)
	}
	lines = lines[:min(len(lines), max(end-1, 0))] // the header stays
	copy(rows[end-len(lines):], text.Clamp(lines, m.width, len(lines)))
	return rows
}

// leaderMenu names the keys behind Ctrl+X, in as many rows as they need at w cells.
func (m *model) leaderMenu(w int) []string {
	const head, gap = " ctrl+x", "  "
	lines, line := []string(nil), head
	for i := range m.keys {
		k := &m.keys[i]
		if k.lead == "" || !k.fits(m.s.State.Busy()) {
			continue
		}
		entry := gap + k.lead + " " + k.name
		if text.Width(line)+text.Width(entry) >= w {
			lines, line = append(lines, line), text.Spaces(len(head))
		}
		line += entry
	}
	lines = append(lines, line)
	for i, l := range lines {
		lines[i] = m.t.Accent.Render(text.Pad(text.Cut(l, w), w))
	}
	return lines
}

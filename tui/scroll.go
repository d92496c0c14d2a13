package tui

import tea "github.com/charmbracelet/bubbletea"

// top scrolls to the beginning of the thread; in a text that is being written it goes
// to the beginning of the line.
func (m *model) top() tea.Cmd {
	if m.focus == "" && m.in.text != "" {
		m.in.key("ctrl+a")
		return nil
	}
	if rows, _ := m.r.edges(); len(rows) > 0 {
		m.r.skip = max(0, rows[0]-m.textRows())
	}
	return nil
}

// bottom goes to the end of the line that is being written, else it follows the newest
// text.
func (m *model) bottom() tea.Cmd {
	if m.focus == "" && m.r.skip == 0 && m.in.text != "" {
		m.in.key("ctrl+e")
		return nil
	}
	return m.follow()
}

package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// setLook draws everything in another theme from now on, until the program ends.
func (m *model) setLook(name string) tea.Cmd {
	if m.o.Look == nil {
		m.note = "this screen has one theme: start with --theme " + name
		return nil
	}
	t, err := m.o.Look(name)
	if err != nil {
		m.note = text.CleanLine(err.Error())
		return nil
	}
	m.t = t
	m.r.setTheme(t)
	m.note = "theme " + t.Name + "; --theme " + t.Name + " starts with it"
	if t.Name != name { // NO_COLOR, or a terminal that has none
		m.note = "this terminal shows no colours (see NO_COLOR and TERM), so the theme is " + t.Name
	}
	return nil
}

// setTheme gives a theme to what is laid out already.
func (r *transcript) setTheme(t *theme.Theme) {
	r.t = t
	if r.think != nil {
		r.think.SetTheme(t, t.Thinking)
	}
	if r.answer != nil {
		r.answer.SetTheme(t, t.Text)
	}
	r.build()
}

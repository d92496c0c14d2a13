package tui

import (
	"slices"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/overlay"
)

// keysFor is the table of keys for a screen: taking over is of no use where the
// engine is.
func keysFor(o *Options) []binding {
	bs := bindings()
	if o.TakeOver != nil {
		return bs
	}
	return slices.DeleteFunc(bs, func(b binding) bool { return b.name == "take-over" })
}

// openTakeOver asks before the other window is asked: its answer pauses and its
// screen ends.
func (m *model) openTakeOver() tea.Cmd {
	return m.show(forTakeOver, overlay.List{Title: "take the engine over?", Items: []overlay.Item{
		{Label: "no, go on watching"},
		{Label: "yes: the other window pauses, saves and ends, and the engine comes here", Value: 1},
	}, Empty: "Nothing fits. Esc goes on watching."})
}

package tui

import (
	"time"

	tea "github.com/charmbracelet/bubbletea"
)

// resizeLag is how long a window must have kept its size before the thread is laid
// out for it: while an edge is dragged every frame has the window's size at once,
// and the text is cut or padded until the hand rests.
const resizeLag = 80 * time.Millisecond

// A settledMsg says that no other size has followed the one of that number.
type settledMsg int

// resize takes the window's size. The first one has no text to keep.
func (m *model) resize(w, h int) tea.Cmd {
	first := m.width == 0
	widths := m.width != w
	m.width, m.height = w, h
	if first || !widths {
		return nil
	}
	m.sizes++
	m.sizing = m.sizes
	at := m.sizes
	return m.wait(tea.Tick(resizeLag, func(time.Time) tea.Msg { return settledMsg(at) }))
}

// settled lays the thread out, unless the size has changed again.
func (m *model) settled(at int) {
	if at == m.sizing {
		m.sizing = 0
	}
}

// rewrap lays the thread out for the window, once its size rests.
func (m *model) rewrap(l layout) {
	if m.sizing == 0 || m.r.width == 0 {
		m.r.setWidth(max(1, l.text-1))
	}
}

package tui

import (
	"context"
	"fmt"
	"slices"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui/frame"
	"deltafin/tui/md"
	"deltafin/tui/pane"
	"deltafin/tui/text"
)

// The panes that are no panel of package pane, and the one with keys of its own.
const (
	textPane    = "text"
	threadsPane = "sessions"
	queuePane   = "queue"
)

// panes returns what Tab goes through, "" for the input first. Only what is on the
// screen can be reached; a pane over the whole window hides the others and not the
// way to them.
func (m *model) panes() []string {
	out := []string{""}
	l := arrange(m.width, m.height, 1, m.panels)
	if l.tiny {
		return out
	}
	if l.sidebar > 0 {
		out = append(out, threadsPane)
	}
	if !l.instead {
		out = append(out, textPane)
	}
	if l.panels > 0 || l.instead {
		for i, h := range panelHeights(l.body) {
			if h > 0 || l.instead { // there the focus alone shows one that has no room
				out = append(out, pane.All()[i].Name)
			}
		}
	}
	return out
}

// turnFocus gives the focus to the next pane, or the one before.
func (m *model) turnFocus(by int) tea.Cmd {
	ps := m.panes()
	at := max(0, slices.Index(ps, m.focus)) + by
	m.focus = ps[(at+len(ps))%len(ps)]
	if m.focus == "" {
		m.zoom = false
	}
	return nil
}

// refocus gives the focus back to the input when its pane is no longer shown.
func (m *model) refocus() {
	if !slices.Contains(m.panes(), m.focus) {
		m.focus, m.zoom = "", false
	}
}

// paneKey takes a key that is in no table while a pane has the focus.
func (m *model) paneKey(name, typed string) tea.Cmd {
	by := 0
	switch name {
	case "up":
		by = -1
	case "down":
		by = 1
	case "esc":
		m.focus, m.zoom = "", false
		return nil
	default:
		if typed != "" {
			m.note = "letters are keys in a pane: ? lists them, esc goes back to the input"
		}
		return nil
	}
	switch m.focus {
	case queuePane:
		if n := len(m.s.Queue); n > 0 {
			m.picked = m.s.Queue[max(0, min(m.queued()+by, n-1))].ID
		}
	case threadsPane:
		m.row = max(0, min(m.threadRow()+by, len(m.threads)-1))
	case textPane:
		m.r.scroll(by, m.textRows())
	}
	return nil
}

// threadRow is the row marked among the threads: the one chosen while they have the
// focus, else that of the thread shown; -1 for none.
func (m *model) threadRow() int {
	if m.focus == threadsPane && m.row >= 0 {
		return min(m.row, len(m.threads)-1)
	}
	return slices.IndexFunc(m.threads, func(th session.ThreadInfo) bool { return th.ID == m.r.thread })
}

func (m *model) openChosen() tea.Cmd {
	i := m.threadRow()
	if i < 0 {
		return nil
	}
	m.focus, m.row, m.zoom = "", -1, false
	return m.openThread(m.threads[i].ID)
}

// queued is the row in the queue that its keys are about: the one chosen, else the
// last; -1 in an empty queue.
func (m *model) queued() int {
	for i := range m.s.Queue {
		if m.s.Queue[i].ID == m.picked {
			return i
		}
	}
	return len(m.s.Queue) - 1
}

func (m *model) unqueue() tea.Cmd {
	i := m.queued()
	if i < 0 {
		m.note = "nothing waits in the queue"
		return nil
	}
	it := m.s.Queue[i]
	m.in.keep(asWritten(it.Text))
	return m.ask("taken out of the queue; press up to edit it", 0, func(ctx context.Context) error { return m.o.Backend.Remove(ctx, it.ID) })
}

func (m *model) sooner() tea.Cmd { return m.move(-1) }
func (m *model) later() tea.Cmd  { return m.move(1) }

// move moves a question in the queue by one place; it stays the one chosen.
func (m *model) move(by int) tea.Cmd {
	i, n := m.queued(), len(m.s.Queue)
	if n < 2 {
		m.note = "the queue has no order to change"
		return nil
	}
	it := m.s.Queue[i]
	m.picked = it.ID
	if i+by < 0 || i+by >= n {
		m.note = [...]string{"it is the first already", "", "it is the last already"}[by+1]
		return nil
	}
	return m.ask(fmt.Sprintf("it is number %d now", i+by+1), 0, func(ctx context.Context) error { return m.o.Backend.Move(ctx, it.ID, by) })
}

func (m *model) toggleZoom() tea.Cmd {
	if m.focus == "" {
		m.note = "tab chooses a pane to zoom"
		return nil
	}
	m.zoom = !m.zoom
	return nil
}

// turn scrolls to the beginning of the turn before or behind.
func (m *model) turn(by int) tea.Cmd {
	m.r.turn(by, m.textRows())
	return nil
}

// copyBlock copies the source of the lowest block on the screen: scroll until it is
// the one wanted.
func (m *model) copyBlock() tea.Cmd {
	b, ok := m.r.lowest(m.textRows() - len(m.messages(m.layout().text-2, m.textRows())))
	src := b.Source
	if b.Fenced {
		src = b.Code // a program is pasted without its fence
	}
	if !ok || src == "" {
		m.note = "there is no block of an answer on the screen"
		return nil
	}
	seq, err := frame.Copy(src)
	if err != nil {
		m.note = err.Error() + "; Y copies the whole answer, to a file if need be"
		return nil
	}
	m.emit(seq)
	first, _, _ := strings.Cut(strings.TrimSpace(src), "\n")
	m.note = fmt.Sprintf("%s characters sent to the terminal's clipboard: %s", pane.Count(int64(len([]rune(src)))), text.Elide(text.CleanLine(first), 40, m.t.Glyphs.Ellipsis))
	return nil
}

// edges returns how many rows there are from each turn's first row to the end of
// the thread, the oldest turn first.
func (r *transcript) edges() (rows []int, turns []session.ID) {
	parts := r.all()
	n := 0
	for i := len(parts) - 1; i >= 0; i-- {
		n += parts[i].rows()
		if i == 0 || parts[i-1].turn != parts[i].turn {
			rows, turns = append(rows, n), append(turns, parts[i].turn)
		}
	}
	slices.Reverse(rows)
	slices.Reverse(turns)
	return rows, turns
}

// turn puts the beginning of the turn before (-1) or behind (+1) the window's first
// row there, as far as the thread goes.
func (r *transcript) turn(by, h int) {
	rows, _ := r.edges()
	top := r.skip + h
	if by > 0 {
		for _, n := range rows {
			if n < top {
				r.skip = max(0, n-h)
				return
			}
		}
		r.skip = 0
		return
	}
	for i := len(rows) - 1; i >= 0; i-- {
		if rows[i] > top {
			r.skip = rows[i] - h
			return
		}
	}
}

// show scrolls to a turn; it reports whether the thread shown has it.
func (r *transcript) show(turn session.ID, h int) bool {
	rows, turns := r.edges()
	i := slices.Index(turns, turn)
	if i >= 0 {
		r.skip = max(0, rows[i]-h)
	}
	return i >= 0
}

// land scrolls to the turn in which a search has found something.
func (m *model) land(th *session.Thread) {
	turn := m.jump
	m.jump = 0
	if turn == 0 {
		return
	}
	m.r.setWidth(max(1, m.layout().text-1))
	if !m.r.show(turn, m.textRows()) {
		m.note = "what was found is on another branch of this thread: deltafin show " + th.ID.Short() + " --all shows it"
	}
}

// lowest returns the lowest block of a window of h rows.
func (r *transcript) lowest(h int) (md.Block, bool) {
	parts, skip := r.all(), r.skip
	for i := len(parts) - 1; i >= 0 && h > 0; i-- {
		p := &parts[i]
		n := p.rows()
		if skip >= n {
			skip -= n
			continue
		}
		if p.doc != nil {
			if lines := p.doc.Tail(max(0, skip-1), h); len(lines) > 0 {
				return p.doc.Block(lines[len(lines)-1].Block), true
			}
		}
		h -= n - skip
		skip = 0
	}
	return md.Block{}, false
}

// tab completes the path behind an @, else it goes to the next pane.
func (m *model) tab() tea.Cmd {
	if cmd, ok := m.mentionKey(); ok {
		return cmd
	}
	return m.turnFocus(1)
}

package tui

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui/overlay"
	"deltafin/tui/pane"
	"deltafin/tui/text"
)

// show opens an overlay.
func (m *model) show(what purpose, l overlay.List) tea.Cmd {
	m.what, m.over = what, l
	return nil
}

func (m *model) openPalette() tea.Cmd {
	var items []overlay.Item
	for i := range m.keys {
		if b := &m.keys[i]; b.fits(m.s.State.Busy()) && b.name != "commands" {
			items = append(items, overlay.Item{Label: b.title(), Right: b.label(), Value: i})
		}
	}
	return m.show(forCommand, overlay.List{Title: "commands", Items: items, Empty: "No command fits. Esc closes."})
}

func (m *model) openHelp() tea.Cmd {
	var items []overlay.Item
	for _, k := range Keys() {
		label := k.Help
		if k.When != "" {
			label += " (" + k.When + ")"
		}
		items = append(items, overlay.Item{Label: label, Right: k.Keys})
	}
	return m.show(forHelp, overlay.List{Title: "help", Items: items, Empty: "No key fits. Esc closes."})
}

// openPaneHelp lists the keys of the pane with the focus.
func (m *model) openPaneHelp() tea.Cmd {
	var items []overlay.Item
	for i := range m.keys {
		if b := &m.keys[i]; b.at >= inPane && b.at.has(m.focus) {
			key, _, _ := strings.Cut(b.label(), " (")
			items = append(items, overlay.Item{Label: b.help, Right: key})
		}
	}
	items = append(items, overlay.Item{Label: "scroll, or choose a row", Right: "up, down"}, overlay.Item{Label: "back to the input", Right: "esc"})
	return m.show(forHelp, overlay.List{Title: "keys of " + m.focus, Items: items, Empty: "No key fits. Esc closes."})
}

func (m *model) openThreads() tea.Cmd { return m.readThreads(true) }

func (m *model) showThreads() {
	var items []overlay.Item
	for i, th := range m.threads {
		title := th.Title
		if title == "" {
			title = th.ID.Short()
		}
		items = append(items, overlay.Item{Label: title, Right: m.threadFacts(&th), Value: i})
	}
	empty := "No title fits. Esc closes; ctrl+x / searches all texts."
	if len(items) == 0 {
		empty = "Nothing asked yet. Esc closes."
		if m.s.State == pane.Setup || m.s.State == pane.Loading {
			empty = "What was asked before is here once a model is open. Esc closes."
		}
	}
	m.show(forThread, overlay.List{Title: "sessions", Items: items, Empty: empty})
}

func (m *model) openSearch() tea.Cmd {
	return m.show(forSearch, overlay.List{Title: "search all texts", Prompt: true})
}

// threadFacts is what the list says of a thread behind its title.
func (m *model) threadFacts(th *session.ThreadInfo) string {
	s := string(th.Status)
	if th.BranchCount > 1 {
		s = fmt.Sprintf("%d branches  %s", th.BranchCount, s)
	}
	if th.Updated.IsZero() {
		return s
	}
	at, now := th.Updated.Local(), m.now().Local()
	form := "2 Jan 2006"
	switch {
	case at.Year() == now.Year() && at.YearDay() == now.YearDay():
		form = "15:04"
	case at.Year() == now.Year():
		form = "2 Jan"
	}
	return s + "  " + text.PadLeft(at.Format(form), 6)
}

func (m *model) showHits(query string, hits []session.Hit) {
	m.hits = hits
	var items []overlay.Item
	for i, h := range hits {
		items = append(items, overlay.Item{Label: h.Title + ": " + strings.TrimSpace(h.Line), Value: i})
	}
	m.show(forHit, overlay.List{Title: "found", Items: items, Empty: fmt.Sprintf("Nothing in titles and texts fits %q. Esc closes; ctrl+x / searches again.", text.CleanLine(query))})
}

func (m *model) openRename() tea.Cmd {
	if m.r.thread == 0 {
		m.note = errNoThread.Error()
		return nil
	}
	return m.show(forRename, overlay.List{Title: "title", Prompt: true, Filter: m.r.title})
}

func (m *model) openExport() tea.Cmd {
	if m.r.thread == 0 {
		m.note = errNoThread.Error()
		return nil
	}
	return m.show(forExport, overlay.List{Title: "export to file", Prompt: true, Filter: m.r.thread.Short() + ".md"})
}

// overKey gives a key to the overlay and does what was chosen.
func (m *model) overKey(name, typed string) tea.Cmd {
	done, ok := m.over.Key(name, typed)
	if !done {
		return nil
	}
	what := m.what
	m.what = nothing
	if !ok {
		return nil
	}
	it, _ := m.over.Chosen()
	line, thread := strings.TrimSpace(m.over.Filter), m.r.thread
	switch what {
	case forCommand:
		return m.keys[it.Value].do(m)
	case forThread:
		return m.openThread(m.threads[it.Value].ID)
	case forHit:
		h := m.hits[it.Value]
		cmd := m.openThread(h.Thread)
		m.jump = h.Turn
		return cmd
	case forTakeOver:
		if it.Value == 0 {
			return nil
		}
		return m.ask("", 0, m.o.TakeOver)
	case forSearch:
		return func() tea.Msg {
			hits, err := m.o.Backend.Search(m.ctx, line)
			return hitsMsg{line, hits, err}
		}
	case forRename:
		return m.ask("renamed", thread, func(ctx context.Context) error { return m.o.Backend.Rename(ctx, thread, line) })
	case forExport:
		where := line
		if abs, err := filepath.Abs(line); err == nil && !strings.HasPrefix(line, "~") {
			where = abs
		}
		return m.ask("exported to "+where, 0, func(ctx context.Context) error { return m.o.Backend.Export(ctx, thread, line) })
	}
	return nil
}

func (m *model) openThread(id session.ID) tea.Cmd {
	m.jump = 0
	m.fresh = false
	m.r = transcript{t: m.t, width: m.r.width, open: m.r.open}
	return m.readThread(id)
}

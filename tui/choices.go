package tui

import (
	"fmt"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/complete"
	"deltafin/tui/text"
)

// mostChoices is how many paths are shown at once.
const mostChoices = 6

// mostListings bounds the goroutines that a disk without an answer can hold.
const mostListings = 4

// The choices are what the path at the cursor may become; none when names is empty.
type choices struct {
	from  *complete.Listing
	names []string
	at    int
}

// A pathsMsg is a folder's listing.
type pathsMsg struct {
	dir string
	l   *complete.Listing
	err error
}

// completePath looks for what the path behind the @ at the cursor may become. The
// folder is read off the screen's loop: on a slow disk one types on meanwhile.
func (m *model) completePath(at mention) tea.Cmd {
	if m.listings >= mostListings {
		m.note = "the disk has not answered yet; type on, or try tab later"
		return nil
	}
	m.listings++
	dir, _ := complete.Split(at.path)
	return func() tea.Msg {
		l, err := complete.List(m.ctx, dir)
		return pathsMsg{dir, l, err}
	}
}

// listed offers what a listing has for the path at the cursor. A path that has become
// another meanwhile is left alone.
func (m *model) listed(msg pathsMsg) tea.Cmd {
	m.listings--
	at, ok := mentioned(m.in.text, m.in.at)
	dir, base := complete.Split(at.path)
	if !ok || dir != msg.dir || m.focus != "" {
		return nil
	}
	if msg.err != nil {
		m.note = "no completion: " + text.CleanLine(msg.err.Error())
		return nil
	}
	names := msg.l.Match(base)
	more := ""
	if msg.l.Partial {
		more = fmt.Sprintf("; the folder has more than the first %d names", len(msg.l.Names))
	}
	switch len(names) {
	case 0:
		m.note = fmt.Sprintf("nothing in %s begins with %s%s", text.CleanLine(orHere(dir)), text.CleanLine(orAnything(base)), more)
		return nil
	case 1:
		m.in.complete(at, dir+names[0])
		return m.edited()
	}
	if more != "" {
		m.note = more[2:]
	}
	m.choices, m.cost = choices{from: msg.l, names: names}, nil
	if common := complete.Common(names); len(common) > len(base) {
		m.in.complete(at, dir+common)
		return m.edited()
	}
	return nil
}

func orHere(dir string) string {
	if dir == "" {
		return "this folder"
	}
	return dir
}

func orAnything(base string) string {
	if base == "" {
		return "anything"
	}
	return base
}

// choiceKey takes a key while paths are offered; took is false for one that is not
// about them.
func (m *model) choiceKey(name string) (cmd tea.Cmd, took bool) {
	n := len(m.choices.names)
	switch name {
	case "tab", "down":
		m.choices.at = (m.choices.at + 1) % n
	case "shift+tab", "up":
		m.choices.at = (m.choices.at + n - 1) % n
	case "enter":
		return m.choose(), true
	case "esc":
		m.choices = choices{}
	default:
		return nil, false
	}
	return nil, true
}

// choose takes the path chosen; a folder is looked into at once.
func (m *model) choose() tea.Cmd {
	c := m.choices
	m.choices = choices{}
	at, ok := mentioned(m.in.text, m.in.at)
	if !ok {
		return nil
	}
	p := c.from.Dir + c.names[c.at]
	m.in.complete(at, p)
	cmd := m.edited()
	if p[len(p)-1] != '/' {
		return cmd
	}
	if at, ok = mentioned(m.in.text, m.in.at); !ok {
		return cmd
	}
	return tea.Batch(cmd, m.completePath(at))
}

// narrow keeps the choices that fit what is typed by now, none when the cursor has
// left the folder.
func (m *model) narrow() {
	if m.choices.names == nil {
		return
	}
	at, ok := mentioned(m.in.text, m.in.at)
	dir, base := complete.Split(at.path)
	if !ok || dir != m.choices.from.Dir {
		m.choices = choices{}
		return
	}
	names := m.choices.from.Match(base)
	if len(names) == 0 || len(names) == 1 && names[0] == base {
		m.choices = choices{}
		return
	}
	if len(names) != len(m.choices.names) {
		m.choices.names, m.choices.at = names, 0
	}
}

// draw draws the paths around the one chosen, and what one can do with them.
func (c *choices) draw(m *model, w, h int) []string {
	n := min(len(c.names), mostChoices, h-1)
	if n < 1 {
		return nil
	}
	from := max(0, min(c.at-n/2, len(c.names)-n))
	var out []string
	for i := from; i < from+n; i++ {
		row := text.Elide("   "+c.names[i], w-2, m.t.Glyphs.Ellipsis)
		if i == c.at {
			row = m.t.Selected.Render(text.Pad(" "+m.t.Glyphs.Mark+" "+row[3:], w-2))
		}
		out = append(out, row)
	}
	hint := fmt.Sprintf(" %d of %d: tab next, enter takes it, esc closes", c.at+1, len(c.names))
	return append(out, m.t.Dim.Render(text.Cut(hint, w)))
}

// mentionKey is Tab in the input: the path behind an @, if the cursor stands there.
func (m *model) mentionKey() (tea.Cmd, bool) {
	if m.focus != "" {
		return nil, false
	}
	at, ok := mentioned(m.in.text, m.in.at)
	if !ok {
		return nil, false
	}
	return m.completePath(at), true
}

package tui

import (
	"strings"

	tea "github.com/charmbracelet/bubbletea"
)

// when says in which state a binding is of use.
type when int

const (
	always when = iota
	atRest
	working
)

// A binding is a key and what it does. Footer, help, command palette and Keys are
// made from the table below, so none of them can say anything else than what
// happens.
type binding struct {
	name string // in the palette, and behind a slash in the input
	key  string // as bubbletea names it; "" for none
	lead string // the key behind Ctrl+X; "" for none
	help string
	when when
	foot bool // shown in the footer where there is room
	do   func(*model) tea.Cmd
}

// bindings returns the table. Keys of plain editing are not in it.
func bindings() []binding {
	return []binding{
		{"send", "enter", "", "send", atRest, true, (*model).send},
		{"queue", "enter", "", "queue", working, false, (*model).send},
		{"newline", "alt+enter", "", "new line (also ctrl+j)", always, false, newline},
		{"pause", "ctrl+c", "", "pause after this token", working, true, (*model).pause},
		{"clear", "ctrl+c", "", "clear; twice on an empty line quits", atRest, true, (*model).clearOrQuit},
		{"break-in", "ctrl+s", "", "break in now", working, true, (*model).breakIn},
		{"resume", "ctrl+r", "", "go on", atRest, true, (*model).resume},
		{"commands", "ctrl+p", "", "commands", always, true, (*model).openPalette},
		{"panels", "f2", "", "panels", always, true, (*model).cyclePanels},
		{"sessions", "f3", "l", "sessions", always, true, (*model).openThreads},
		{"search", "", "/", "search all texts", always, false, (*model).openSearch},
		{"rename", "f4", "r", "rename", always, false, (*model).openRename},
		{"new", "", "n", "new thread", always, false, (*model).newThread},
		{"fork", "", "f", "fork here", always, false, (*model).fork},
		{"regenerate", "", "g", "answer once more with another seed", always, false, (*model).regenerate},
		{"undo", "", "u", "leave the last question out", always, false, (*model).undo},
		{"redo", "", "U", "take it in again", always, false, (*model).redo},
		{"thinking", "", "t", "open or fold the thinking", always, false, (*model).toggleThinking},
		{"copy", "", "y", "copy the answer's source", always, false, (*model).copyAnswer},
		{"export", "", "x", "export (md, json, html, txt)", always, false, (*model).openExport},
		{"unqueue", "", "k", "take the last question out of the queue", always, false, (*model).unqueue},
		{"sooner", "ctrl+up", "", "move the last queued question to the front", always, false, (*model).sooner},
		{"detach", "", "d", "leave; the job goes on", always, false, (*model).detach},
		{"mouse", "f6", "m", "mouse on or off", always, false, (*model).toggleMouse},
		{"freeze", "f7", "", "freeze the screen until a key", always, false, (*model).freeze},
		{"page up", "pgup", "", "scroll up", always, false, func(m *model) tea.Cmd { return m.page(-1) }},
		{"page down", "pgdown", "", "scroll down", always, false, func(m *model) tea.Cmd { return m.page(1) }},
		{"follow", "end", "", "follow the newest text", always, false, (*model).follow},
		{"repaint", "ctrl+l", "", "repaint", always, false, func(*model) tea.Cmd { return tea.ClearScreen }},
		{"suspend", "ctrl+z", "", "why the program is not stopped", always, false, (*model).noSuspend},
		{"help", "f1", "", "help", always, true, (*model).openHelp},
		{"quit", "", "q", "pause, save and quit", always, false, (*model).quit},
	}
}

// label writes a binding's key as people read it.
func (b *binding) label() string {
	switch {
	case b.key != "" && b.lead != "":
		return b.key + ", ctrl+x " + b.lead
	case b.lead != "":
		return "ctrl+x " + b.lead
	}
	return b.key
}

// fits reports whether a binding is of use now.
func (b *binding) fits(busy bool) bool {
	return b.when == always || busy == (b.when == working)
}

// find returns the binding of a key, of a key behind Ctrl+X, or of a name.
func find(bs []binding, busy bool, is func(*binding) bool) *binding {
	for i := range bs {
		if b := &bs[i]; b.fits(busy) && is(b) {
			return b
		}
	}
	return nil
}

// A Key is a row of the table of keys.
type Key struct{ Name, Keys, Help, When string }

// Keys returns the table of keys, for help outside the screen.
func Keys() []Key {
	var out []Key
	for _, b := range bindings() {
		k := Key{Name: b.name, Keys: b.label(), Help: b.help}
		switch b.when {
		case atRest:
			k.When = "at rest"
		case working:
			k.When = "while the model works"
		}
		out = append(out, k)
	}
	return out
}

// footer names the keys that matter now, as many as fit in w cells.
func footer(bs []binding, busy, paused bool, w int) string {
	var b strings.Builder
	for i := range bs {
		k := &bs[i]
		if !k.foot || !k.fits(busy) || k.name == "resume" && !paused || k.name == "clear" {
			continue
		}
		s := " " + k.key + " " + k.help + " "
		if b.Len()+len(s) > w {
			break
		}
		b.WriteString(s)
	}
	return b.String()
}

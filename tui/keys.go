package tui

import (
	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/theme"
)

// when says in which state a binding is of use.
type when int

const (
	always when = iota
	atRest
	working
)

// place says where a key works: letters are keys only while a pane has the focus.
type place int

const (
	anywhere place = iota
	inInput
	inPane // in every pane
	inText
	inQueue
	inThreads
)

// has reports whether the pane with the focus, "" for the input, is of the place.
func (p place) has(focus string) bool {
	switch p {
	case inInput:
		return focus == ""
	case inPane:
		return focus != ""
	case inText:
		return focus == textPane
	case inQueue:
		return focus == queuePane
	case inThreads:
		return focus == threadsPane
	}
	return true
}

// String says the place as the help does.
func (p place) String() string {
	return [...]string{"", "", "in a pane", "in the text", "in the queue", "in the sessions"}[p]
}

// A binding is a key and what it does. Footer, help, command palette and Keys are
// made from the table below, so none of them can say anything else than what
// happens.
type binding struct {
	name string // in the palette, and behind a slash in the input
	key  string // as bubbletea names it; "" for none
	lead string // the key behind Ctrl+X; "" for none
	help string
	when when
	at   place // where the key works; the leader and the name work everywhere
	foot int   // place among the keys of the footer, the first stay longest; 0 for none
	do   func(*model) tea.Cmd
}

// bindings returns the table. Keys of plain editing are not in it.
func bindings() []binding {
	return []binding{
		{"send", "enter", "", "send", atRest, inInput, 1, (*model).send},
		{"queue", "enter", "", "queue", working, inInput, 1, (*model).send},
		{"newline", "alt+enter", "", "new line (also ctrl+j)", always, anywhere, 0, newline},
		{"pause", "ctrl+c", "", "pause after this token", working, anywhere, 1, (*model).pause},
		{"clear", "ctrl+c", "", "clear; twice on an empty line quits", atRest, anywhere, 0, (*model).clearOrQuit},
		{"break-in", "ctrl+s", "", "break in now", working, anywhere, 6, (*model).breakIn},
		{"resume", "ctrl+r", "", "go on", atRest, anywhere, 1, (*model).resume},
		{"commands", "ctrl+p", "", "commands", always, anywhere, 3, (*model).openPalette},
		{"panels", "f2", "", "panels", always, anywhere, 5, (*model).cyclePanels},
		{"sessions", "f3", "l", "sessions", always, anywhere, 7, (*model).openThreads},
		{"search", "", "/", "search all texts", always, anywhere, 8, (*model).openSearch},
		{"rename", "f4", "r", "rename", always, anywhere, 0, (*model).openRename},
		{"new", "", "n", "new thread", always, anywhere, 0, (*model).newThread},
		{"fork", "", "f", "fork here", always, anywhere, 0, (*model).fork},
		{"regenerate", "", "g", "answer once more with another seed", always, anywhere, 0, (*model).regenerate},
		{"undo", "", "u", "leave the last question out", always, anywhere, 0, (*model).undo},
		{"redo", "", "U", "take it in again", always, anywhere, 0, (*model).redo},
		{"thinking", " ", "t", "open or fold the thinking", always, inText, 0, (*model).toggleThinking},
		{"copy", "Y", "y", "copy the answer's source", always, inText, 10, (*model).copyAnswer},
		{"export", "", "x", "export (md, json, html, txt)", always, anywhere, 11, (*model).openExport},
		{"unqueue", "delete", "k", "take a question out of the queue (the last, or the one chosen)", always, inQueue, 0, (*model).unqueue},
		{"sooner", "ctrl+up", "", "move that question one place forward", always, anywhere, 0, (*model).sooner},
		{"later", "ctrl+down", "", "move that question one place back", always, anywhere, 0, (*model).later},
		{"take-over", "", "o", "ask the window that drives the engine to hand it over", always, anywhere, 0, (*model).openTakeOver},
		{"detach", "", "d", "leave; the job goes on", always, anywhere, 0, (*model).detach},
		{"editor", "", "e", "edit the text in your editor ($VISUAL, $EDITOR)", always, anywhere, 0, (*model).edit},
		{"mouse", "f6", "m", "mouse on or off", always, anywhere, 0, (*model).toggleMouse},
		{"theme-dark", "", "", "dark theme", always, anywhere, 0, func(m *model) tea.Cmd { return m.setLook(theme.Dark) }},
		{"theme-light", "", "", "light theme", always, anywhere, 0, func(m *model) tea.Cmd { return m.setLook(theme.Light) }},
		{"theme-mono", "", "", "theme without colours", always, anywhere, 0, func(m *model) tea.Cmd { return m.setLook(theme.Mono) }},
		{"freeze", "f7", "", "freeze the screen until a key", always, anywhere, 0, (*model).freeze},
		{"page up", "pgup", "", "scroll up", always, anywhere, 0, func(m *model) tea.Cmd { return m.page(-1) }},
		{"page down", "pgdown", "", "scroll down", always, anywhere, 0, func(m *model) tea.Cmd { return m.page(1) }},
		{"top", "home", "", "scroll to the beginning", always, anywhere, 0, (*model).top},
		{"follow", "end", "", "follow the newest text", always, anywhere, 0, (*model).bottom},
		{"repaint", "ctrl+l", "", "repaint", always, anywhere, 0, func(*model) tea.Cmd { return tea.ClearScreen }},
		{"suspend", "ctrl+z", "", "why the program is not stopped", always, anywhere, 0, (*model).noSuspend},
		{"help", "f1", "", "help", always, anywhere, 2, (*model).openHelp},
		{"next pane", "tab", "", "next pane; completes a path behind @", always, anywhere, 9, (*model).tab},
		{"previous pane", "shift+tab", "", "previous pane", always, anywhere, 0, func(m *model) tea.Cmd { return m.turnFocus(-1) }},
		{"zoom", "z", "", "pane over the whole window, and back", always, inPane, 0, (*model).toggleZoom},
		{"previous turn", "[", "", "previous turn", always, inText, 0, func(m *model) tea.Cmd { return m.turn(-1) }},
		{"next turn", "]", "", "next turn", always, inText, 0, func(m *model) tea.Cmd { return m.turn(1) }},
		{"copy block", "y", "", "copy the source of the lowest block on the screen", always, inText, 0, (*model).copyBlock},
		{"open", "enter", "", "open the thread chosen", always, inThreads, 0, (*model).openChosen},
		{"filter", "/", "", "find a session by its title", always, inThreads, 0, (*model).openThreads},
		{"pane help", "?", "", "keys of this pane", always, inPane, 0, (*model).openPaneHelp},
		{"quit", "", "q", "pause, save and quit", always, anywhere, 0, (*model).quit},
	}
}

// label writes a binding's key as people read it.
func (b *binding) label() string {
	key := b.key
	if key == " " {
		key = "space"
	}
	if p := b.at.String(); p != "" && b.lead != "" {
		key += " (" + p + ")"
	}
	switch {
	case b.key != "" && b.lead != "":
		return key + ", ctrl+x " + b.lead
	case b.lead != "":
		return "ctrl+x " + b.lead
	case b.key == "": // the input and the palette have it
		return "/" + b.name
	}
	return key
}

// title is a binding in a list: its name, and what it does if that says more.
func (b *binding) title() string {
	if b.name == b.help {
		return b.name
	}
	return b.name + ": " + b.help
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
		if p := b.at.String(); p != "" && b.lead == "" {
			k.When = p
		}
		if b.name == "take-over" {
			k.When = "while watching another window"
		}
		out = append(out, k)
	}
	return out
}

package tui

import (
	"strings"

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
	foot bool  // shown in the footer where there is room
	do   func(*model) tea.Cmd
}

// bindings returns the table. Keys of plain editing are not in it.
func bindings() []binding {
	return []binding{
		{"send", "enter", "", "send", atRest, inInput, true, (*model).send},
		{"queue", "enter", "", "queue", working, inInput, false, (*model).send},
		{"newline", "alt+enter", "", "new line (also ctrl+j)", always, anywhere, false, newline},
		{"pause", "ctrl+c", "", "pause after this token", working, anywhere, true, (*model).pause},
		{"clear", "ctrl+c", "", "clear; twice on an empty line quits", atRest, anywhere, true, (*model).clearOrQuit},
		{"break-in", "ctrl+s", "", "break in now", working, anywhere, true, (*model).breakIn},
		{"resume", "ctrl+r", "", "go on", atRest, anywhere, true, (*model).resume},
		{"commands", "ctrl+p", "", "commands", always, anywhere, true, (*model).openPalette},
		{"panels", "f2", "", "panels", always, anywhere, true, (*model).cyclePanels},
		{"sessions", "f3", "l", "sessions", always, anywhere, true, (*model).openThreads},
		{"search", "", "/", "search all texts", always, anywhere, false, (*model).openSearch},
		{"rename", "f4", "r", "rename", always, anywhere, false, (*model).openRename},
		{"new", "", "n", "new thread", always, anywhere, false, (*model).newThread},
		{"fork", "", "f", "fork here", always, anywhere, false, (*model).fork},
		{"regenerate", "", "g", "answer once more with another seed", always, anywhere, false, (*model).regenerate},
		{"undo", "", "u", "leave the last question out", always, anywhere, false, (*model).undo},
		{"redo", "", "U", "take it in again", always, anywhere, false, (*model).redo},
		{"thinking", " ", "t", "open or fold the thinking", always, inText, false, (*model).toggleThinking},
		{"copy", "Y", "y", "copy the answer's source", always, inText, false, (*model).copyAnswer},
		{"export", "", "x", "export (md, json, html, txt)", always, anywhere, false, (*model).openExport},
		{"unqueue", "delete", "k", "take a question out of the queue (the last, or the one chosen)", always, inQueue, false, (*model).unqueue},
		{"sooner", "ctrl+up", "", "move that question one place forward", always, anywhere, false, (*model).sooner},
		{"later", "ctrl+down", "", "move that question one place back", always, anywhere, false, (*model).later},
		{"take-over", "", "o", "ask the window that drives the engine to hand it over", always, anywhere, false, (*model).openTakeOver},
		{"detach", "", "d", "leave; the job goes on", always, anywhere, false, (*model).detach},
		{"editor", "", "e", "edit the text in your editor ($VISUAL, $EDITOR)", always, anywhere, false, (*model).edit},
		{"mouse", "f6", "m", "mouse on or off", always, anywhere, false, (*model).toggleMouse},
		{"theme-dark", "", "", "dark theme", always, anywhere, false, func(m *model) tea.Cmd { return m.setLook(theme.Dark) }},
		{"theme-light", "", "", "light theme", always, anywhere, false, func(m *model) tea.Cmd { return m.setLook(theme.Light) }},
		{"theme-mono", "", "", "theme without colours", always, anywhere, false, func(m *model) tea.Cmd { return m.setLook(theme.Mono) }},
		{"freeze", "f7", "", "freeze the screen until a key", always, anywhere, false, (*model).freeze},
		{"page up", "pgup", "", "scroll up", always, anywhere, false, func(m *model) tea.Cmd { return m.page(-1) }},
		{"page down", "pgdown", "", "scroll down", always, anywhere, false, func(m *model) tea.Cmd { return m.page(1) }},
		{"follow", "end", "", "follow the newest text", always, anywhere, false, (*model).follow},
		{"repaint", "ctrl+l", "", "repaint", always, anywhere, false, func(*model) tea.Cmd { return tea.ClearScreen }},
		{"suspend", "ctrl+z", "", "why the program is not stopped", always, anywhere, false, (*model).noSuspend},
		{"help", "f1", "", "help", always, anywhere, true, (*model).openHelp},
		{"next pane", "tab", "", "next pane; completes a path behind @", always, anywhere, false, (*model).tab},
		{"previous pane", "shift+tab", "", "previous pane", always, anywhere, false, func(m *model) tea.Cmd { return m.turnFocus(-1) }},
		{"zoom", "z", "", "pane over the whole window, and back", always, inPane, false, (*model).toggleZoom},
		{"previous turn", "[", "", "previous turn", always, inText, false, func(m *model) tea.Cmd { return m.turn(-1) }},
		{"next turn", "]", "", "next turn", always, inText, false, func(m *model) tea.Cmd { return m.turn(1) }},
		{"copy block", "y", "", "copy the source of the lowest block on the screen", always, inText, false, (*model).copyBlock},
		{"open", "enter", "", "open the thread chosen", always, inThreads, false, (*model).openChosen},
		{"pane help", "?", "", "keys of this pane", always, inPane, false, (*model).openPaneHelp},
		{"quit", "", "q", "pause, save and quit", always, anywhere, false, (*model).quit},
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

// footer names the keys that matter now, as many as fit in w cells.
func footer(bs []binding, busy, paused bool, focus string, w int) string {
	var b strings.Builder
	if focus != "" {
		b.WriteString(" [" + focus + "]  esc input ")
	}
	for i := range bs {
		k := &bs[i]
		if focus != "" && k.at >= inPane && k.at.has(focus) {
			key, _, _ := strings.Cut(k.label(), " (")
			if s := " " + key + " " + k.name + " "; b.Len()+len(s) <= w {
				b.WriteString(s)
			}
			continue
		}
		if focus != "" || !k.foot || !k.fits(busy) || k.name == "resume" && !paused || k.name == "clear" {
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

package tui

import (
	"fmt"
	"os"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/outside"
	"deltafin/tui/text"
)

// Messages on the way of the input's text to an editor and back.
type (
	draftMsg struct { // its file is there
		d   *outside.Draft
		err error
	}
	editedMsg struct { // the editor has ended
		d   *outside.Draft
		err error
	}
	editorMsg struct { // and left this
		text    string
		changed bool
		note    string
	}
)

// edit opens the text of the input, pastes and all, in the user's editor.
func (m *model) edit() tea.Cmd {
	editor := ""
	if m.o.Environ != nil {
		if editor = m.o.Environ("VISUAL"); editor == "" {
			editor = m.o.Environ("EDITOR")
		}
	}
	if editor == "" {
		m.note = "no editor is named: set EDITOR before the next start, for example to nano"
		return nil
	}
	written := m.in.whole()
	return func() tea.Msg {
		d, err := outside.NewDraft(editor, written)
		return draftMsg{d, err}
	}
}

// drafted gives the terminal to the editor.
func (m *model) drafted(msg draftMsg) tea.Cmd {
	if msg.err != nil {
		m.note = text.CleanLine(msg.err.Error()) + "; your text is as it was"
		return nil
	}
	if msg.d.Before() != m.in.whole() { // typed on meanwhile
		return tea.Batch(m.edit(), drop(msg.d))
	}
	c := msg.d.Command(m.ctx)
	// The terminal itself: behind the writer of frames the editor would find a pipe.
	if f, ok := m.o.In.(*os.File); ok {
		c.Stdin = f
	}
	if f, ok := m.o.Out.(*os.File); ok {
		c.Stdout, c.Stderr = f, f
	}
	return tea.ExecProcess(c, func(err error) tea.Msg { return editedMsg{msg.d, err} })
}

// drop removes a file that holds nothing which is not in the input.
func drop(d *outside.Draft) tea.Cmd {
	return func() tea.Msg {
		_ = d.Remove() // what is left is a copy in the folder for such
		return nil
	}
}

// reread reads what the editor has left. A file that cannot be taken stays where it
// is: it may hold the only copy of somebody's work.
func (m *model) reread(msg editedMsg) tea.Cmd {
	read := func() tea.Msg {
		written, changed, err := msg.d.Text()
		var note string
		switch {
		case err != nil && changed:
			return editorMsg{note: fmt.Sprintf("%v; the text here is as it was", err)}
		case err != nil: // gone or not readable: there is nothing to keep
			note = fmt.Sprintf("what %s wrote cannot be read (%v); the text here is as it was", msg.d.Name(), err)
		case msg.err != nil && changed:
			return editorMsg{note: fmt.Sprintf("%s ended with %v: the text here is as it was, what it wrote is in %s", msg.d.Name(), msg.err, msg.d.Path)}
		case msg.err != nil:
			note = fmt.Sprintf("%s ended with %v: your text is as it was", msg.d.Name(), msg.err)
		}
		if err := msg.d.Remove(); err != nil && note == "" {
			note = fmt.Sprintf("the editor's file is left behind: %v", err)
		}
		return editorMsg{written, changed && msg.err == nil && err == nil, note}
	}
	if m.mouse { // the editor's turn has switched it off
		return tea.Batch(read, tea.EnableMouseCellMotion)
	}
	return read
}

// written takes the text over.
func (m *model) written(msg editorMsg) tea.Cmd {
	m.note = text.CleanLine(msg.note)
	if !msg.changed {
		return nil
	}
	m.in.clear()
	m.in.set(msg.text)
	return m.edited()
}

package tui

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui/frame"
	"deltafin/tui/pane"
	"deltafin/tui/text"
)

// leadLag is how long Ctrl+X waits for its second key before the menu opens.
const leadLag = 400 * time.Millisecond

// breakFree is how many tokens of an answer may be cut off without asking.
const breakFree = 200

// key takes a key: the overlay first, then a card, the leader, the table, and the
// input last.
func (m *model) key(k tea.KeyMsg) tea.Cmd {
	name := k.String()
	if m.frozen != "" {
		m.frozen = ""
		return nil
	}
	typed := ""
	if (k.Type == tea.KeyRunes || k.Type == tea.KeySpace) && !k.Alt {
		typed = string(k.Runes)
	}
	if m.what != nothing {
		return m.overKey(name, typed)
	}
	confirm, leaving := m.confirm, m.leaving
	m.note, m.confirm, m.leaving = "", false, false
	if m.lead > 0 {
		m.lead, m.menu = 0, false
		if b := find(m.keys, m.s.State.Busy(), func(b *binding) bool { return b.lead == name }); b != nil {
			return b.do(m)
		}
		if name != "esc" {
			m.note = "ctrl+x " + text.CleanLine(name) + " is no command; f1 lists them"
		}
		return nil
	}
	if m.choices.names != nil {
		if cmd, took := m.choiceKey(name); took && !k.Paste {
			return cmd
		}
	}
	if k.Paste {
		m.focus, m.zoom = "", false
		m.in.paste(string(k.Runes))
		return m.edited()
	}
	if c := m.shownCard(); c != nil && m.in.text == "" {
		for _, choice := range c.Choices {
			if choice.Key == name {
				m.away = c.Text
				if b := find(m.keys, m.s.State.Busy(), func(b *binding) bool { return "/"+b.name == choice.Do }); b != nil {
					return b.do(m)
				}
				return m.ask(choice.Label, 0, func(ctx context.Context) error { return m.o.Backend.Choose(ctx, choice.Do) })
			}
		}
	}
	m.confirm, m.leaving = confirm, leaving // for the two keys that ask twice
	if b := find(m.keys, m.s.State.Busy(), func(b *binding) bool { return b.key == name && b.at.has(m.focus) }); b != nil {
		cmd := b.do(m)
		m.confirm = m.confirm && name == "ctrl+s" && !confirm
		m.leaving = m.leaving && name == "ctrl+c" && !leaving
		return cmd
	}
	m.confirm, m.leaving = false, false
	if m.focus != "" && name != "ctrl+x" {
		return m.paneKey(name, typed)
	}
	return m.plainKey(name, typed)
}

// plainKey takes a key that is in no table: text and its editing.
func (m *model) plainKey(name, typed string) tea.Cmd {
	switch name {
	case "ctrl+x":
		m.leads++
		m.lead = m.leads
		at := m.lead
		return m.wait(tea.Tick(leadLag, func(time.Time) tea.Msg { return leadMsg(at) }))
	case "ctrl+j":
		return newline(m)
	case "ctrl+s":
		return m.send()
	case "esc":
		if m.s.Card != nil {
			m.away = m.s.Card.Text
		}
		return nil
	case "up":
		if m.in.text == "" || m.in.recalled() {
			m.remember()
			m.in.recall(1)
			return nil
		}
		if m.in.vertical(-1) {
			return nil
		}
		m.r.scroll(-1, m.textRows())
		return nil
	case "down":
		if m.in.recalled() {
			m.in.recall(-1)
			return nil
		}
		if m.in.vertical(1) {
			return nil
		}
		m.r.scroll(1, m.textRows())
		return nil
	}
	if typed != "" {
		m.in.insert(typed)
		return m.edited()
	}
	if m.in.key(name) {
		return m.edited()
	}
	return nil
}

func newline(m *model) tea.Cmd {
	m.in.insert("\n")
	return m.edited()
}

// edited asks for an estimate once the input has rested.
func (m *model) edited() tea.Cmd {
	m.edits++
	m.cost = nil
	at := m.edits
	return m.wait(tea.Tick(estimateLag, func(time.Time) tea.Msg { return estimateMsg(at) }))
}

func (m *model) estimate(at int) tea.Cmd {
	q := m.question()
	if at != m.edits || q.Text == "" || m.s.Model == "" || m.s.ReadOnly || m.choices.names != nil { // who watches has no model to count with, who chooses has no path yet
		return nil
	}
	return func() tea.Msg {
		c, err := m.o.Backend.Estimate(m.ctx, q)
		return costMsg{at, c, err}
	}
}

func (m *model) question() Question {
	q := Question{Text: m.in.full(), Files: attachments(m.in.text)}
	if !m.fresh {
		q.Thread = m.r.thread
	}
	return q
}

// send asks what was written, or runs it if it is /name. An empty line goes on
// with what was paused.
func (m *model) send() tea.Cmd {
	q := m.question()
	if q.Text == "" {
		if m.stands() || m.queueWaits() {
			return m.resume()
		}
		if m.s.State == pane.Setup {
			return m.open(DemoModel)
		}
		return nil
	}
	if m.s.State == pane.Setup {
		m.in.drop()
		return m.open(q.Text)
	}
	if name, ok := strings.CutPrefix(q.Text, "/"); ok && !strings.ContainsAny(name, " \n/") {
		b := find(m.keys, m.s.State.Busy(), func(b *binding) bool { return b.name == name })
		if b == nil {
			m.note = "there is no /" + text.CleanLine(name) + " now; ctrl+p lists what there is"
			return nil
		}
		m.in.clear()
		return b.do(m)
	}
	note := ""
	if m.s.State.Busy() {
		note = "queued: it follows when this answer has ended"
	}
	if q.Thread == 0 {
		m.fresh = true
	}
	m.in.drop()
	m.cost = nil
	m.r.skip = 0
	return m.deliver(q, note, m.o.Backend.Ask)
}

// deliver hands a question over. One that was refused comes back into the history,
// where Up finds it.
func (m *model) deliver(q Question, note string, do func(context.Context, Question) error) tea.Cmd {
	return m.ask(note, q.Thread, func(ctx context.Context) error {
		if err := do(ctx, q); err != nil {
			return fmt.Errorf("%w (your text is kept: press up)", err)
		}
		return nil
	})
}

func (m *model) open(folder string) tea.Cmd {
	return m.ask("", 0, func(ctx context.Context) error { return m.o.Backend.Open(ctx, folder) })
}

func (m *model) pause() tea.Cmd {
	return m.ask(notePausing, 0, m.o.Backend.Pause)
}

func (m *model) resume() tea.Cmd { return m.ask("", 0, m.o.Backend.Resume) }

func (m *model) clearOrQuit() tea.Cmd {
	switch {
	case m.in.text != "":
		m.in.drop()
	case m.leaving:
		return m.quit()
	default:
		m.leaving, m.note = true, "ctrl+c once more quits; everything is saved"
	}
	return nil
}

// breakIn ends the answer for the question in the input. A long answer is cut off
// only when asked twice.
func (m *model) breakIn() tea.Cmd {
	q := m.question()
	if q.Text == "" {
		m.note = "type what to break in with, then ctrl+s"
		return nil
	}
	if len(m.s.Tokens) > breakFree && !m.confirm {
		m.confirm, m.note = true, fmt.Sprintf("the answer stays unfinished at token %s; ctrl+s once more breaks in", pane.Count(int64(len(m.s.Tokens))))
		return nil
	}
	q.Thread = m.s.Thread
	m.in.drop()
	m.cost = nil
	return m.deliver(q, noteBreaking, m.o.Backend.BreakIn)
}

func (m *model) newThread() tea.Cmd {
	m.fresh, m.wanted = true, 0
	m.r = transcript{t: m.t, width: m.r.width, open: m.r.open}
	return nil
}

// turnAct does something to the answer on the screen.
func (m *model) turnAct(note string, do func(ctx context.Context, thread, turn session.ID) error) tea.Cmd {
	thread, turn := m.r.thread, m.r.leaf()
	if turn == 0 {
		m.note = "there is no answer on the screen yet"
		return nil
	}
	return m.ask(note, thread, func(ctx context.Context) error { return do(ctx, thread, turn) })
}

func (m *model) fork() tea.Cmd {
	return m.turnAct("forked: the next question goes on a branch of its own", func(ctx context.Context, thread, turn session.ID) error {
		_, err := m.o.Backend.Fork(ctx, thread, turn)
		return err
	})
}

func (m *model) regenerate() tea.Cmd {
	return m.turnAct("answers once more; the first answer is kept on its branch", m.o.Backend.Regenerate)
}

func (m *model) undo() tea.Cmd {
	branch := m.r.branch
	return m.turnAct("the last question is left out; ctrl+x U takes it in again", func(ctx context.Context, thread, _ session.ID) error {
		return m.o.Backend.Undo(ctx, thread, branch)
	})
}

func (m *model) redo() tea.Cmd {
	thread, branch := m.r.thread, m.r.branch
	if thread == 0 {
		m.note = "no thread is open"
		return nil
	}
	return m.ask("", thread, func(ctx context.Context) error { return m.o.Backend.Redo(ctx, thread, branch) })
}

func (m *model) toggleThinking() tea.Cmd {
	m.r.open = !m.r.open
	m.r.build()
	return nil
}

// copyAnswer copies what was written, never what was drawn.
func (m *model) copyAnswer() tea.Cmd {
	src := m.r.lastAnswer()
	if src == "" {
		m.note = "there is no answer on the screen yet"
		return nil
	}
	seq, err := frame.Copy(src)
	if err == nil {
		m.emit(seq)
		m.note = fmt.Sprintf("%s characters sent to the terminal's clipboard", pane.Count(int64(len([]rune(src)))))
		return nil
	}
	if m.o.Save == nil {
		m.note = err.Error() + "; ctrl+x x exports the thread to a file"
		return nil
	}
	return func() tea.Msg {
		where, err := m.o.Save(src)
		return doneMsg{note: "too long for the clipboard; saved to " + text.CleanLine(where), err: err}
	}
}

func (m *model) detach() tea.Cmd {
	m.end = ErrDetached
	return tea.Quit
}

func (m *model) quit() tea.Cmd { return tea.Quit }

func (m *model) toggleMouse() tea.Cmd {
	m.mouse = !m.mouse
	if m.mouse {
		m.note = "mouse on: the wheel scrolls; f6 gives selection back to the terminal"
		return tea.EnableMouseCellMotion
	}
	m.note = "mouse off"
	return tea.DisableMouse
}

func (m *model) freeze() tea.Cmd {
	m.note = "FROZEN: select with the mouse; any key goes on"
	m.frozen = m.frame()
	return nil
}

func (m *model) page(by int) tea.Cmd {
	h := m.textRows()
	m.r.scroll(by*max(1, h-2), h)
	return nil
}

func (m *model) follow() tea.Cmd {
	m.r.skip = 0
	return nil
}

func (m *model) noSuspend() tea.Cmd {
	m.note = "stopping the program would stop the model; ctrl+x d detaches"
	return nil
}

func (m *model) cyclePanels() tea.Cmd {
	m.panels = (m.panels + 1) % 3
	return nil
}

var errNoThread = errors.New("no thread is open: ask something, or choose one with f3")

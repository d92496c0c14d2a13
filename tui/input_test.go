package tui_test

import (
	"errors"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui"
	"deltafin/tui/text"
	"deltafin/tui/tuitest"
)

// inputLine is the first row of the input.
func inputLine(s *screen) string {
	for _, r := range strings.Split(s.m.View(), "\n") {
		if strings.HasPrefix(r, " > ") {
			return strings.TrimRight(r, " ")
		}
	}
	return ""
}

// TestNothingTypedIsLost: what is cleared, sent, refused or taken out of the queue
// comes back with Up, a long paste whole.
func TestNothingTypedIsLost(t *testing.T) {
	s := open(t, "idle", 80, 24)
	s.press("a thought", "ctrl+c")
	if got := inputLine(s); strings.Contains(got, "thought") {
		t.Fatalf("not cleared: %q", got)
	}
	s.press("up")
	if got := inputLine(s); got != " > a thought" {
		t.Errorf("after up: %q", got)
	}
	s.press("!", "up") // it is another text now: up does not throw it away
	if got := inputLine(s); got != " > a thought!" {
		t.Errorf("an edited text became %q", got)
	}
	s.press("ctrl+c")
	long := strings.Repeat("line\n", 40) + "end"
	s.f.Fail(errors.New("the disk is full"))
	s.press("see ")
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(long), Paste: true})
	s.press("enter", "up")
	if got := inputLine(s); got != " > see [paste 1, 41 lines]" {
		t.Errorf("the refused question came back as %q", got)
	}
	s.f.Fail(nil)
	s.press("enter")
	calls := s.f.Calls()
	if got, want := calls[len(calls)-1], "ask see "+long+" []"; got != want {
		t.Errorf("sent %q", got)
	}
}

// TestUpRecallsTheQueue: after a start, Up brings the questions that wait from before,
// the last one first.
func TestUpRecallsTheQueue(t *testing.T) {
	s := open(t, "paused", 80, 24)
	s.press("up")
	if got := inputLine(s); got != " > Draft the methods section" {
		t.Errorf("first %q", got)
	}
	s.press("up")
	if got := inputLine(s); got != " > What would a 4th tie point change?" {
		t.Errorf("then %q", got)
	}
}

// TestHomeAndEnd: they go through the thread, and in a text through its line.
func TestHomeAndEnd(t *testing.T) {
	s := open(t, "decoding", 80, 20)
	end := s.m.View()
	s.press("home")
	if v := s.m.View(); !strings.Contains(v, "Compare the three") {
		t.Errorf("home shows:\n%s", v)
	}
	s.press("end")
	if v := s.m.View(); v != end {
		t.Errorf("end shows:\n%s", v)
	}
	s.press("bc", "home", "a", "end", "d")
	if got := inputLine(s); got != " > abcd" {
		t.Errorf("typed %q", got)
	}
}

// TestFooter: help is named at every width that shows text, Enter says what it does
// while the model works, and everything named is a key.
func TestFooter(t *testing.T) {
	foot := func(s *screen) string {
		rows := strings.Split(s.m.View(), "\n")
		return rows[len(rows)-1]
	}
	for _, state := range tuitest.Names() {
		for _, w := range []int{40, 60, 80, 120, 200} {
			s := open(t, state, w, 24)
			if v := foot(s); !strings.Contains(v, "f1 help") || text.Width(v) != w {
				t.Errorf("%s at %d: %q", state, w, v)
			}
		}
	}
	s := open(t, "decoding", 80, 24)
	s.press("x")
	if v := foot(s); !strings.Contains(v, "enter queue") || !strings.Contains(v, "ctrl+s break in") {
		t.Errorf("with a text: %q", v)
	}
	if v := foot(open(t, "decoding", 200, 60)); !strings.Contains(v, "ctrl+x y copy") || !strings.Contains(v, "ctrl+x x export") || !strings.Contains(v, "tab next pane") {
		t.Errorf("in a large window: %q", v)
	}
}

// TestListsSayTheirKeys: a list names its keys, a session when it was worked on, and a
// search without a hit what was looked for.
func TestListsSayTheirKeys(t *testing.T) {
	s := open(t, "idle", 80, 24)
	list, err := s.f.Threads(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	var all []*session.Thread
	for i, th := range list {
		full, err := s.f.Thread(t.Context(), th.ID)
		if err != nil {
			t.Fatal(err)
		}
		full.Updated, full.BranchCount = tuitest.Now.AddDate(0, 0, -i), 1+2*i
		all = append(all, full)
	}
	s.f.Put(all...)
	s.press("f3")
	v := s.m.View()
	for _, want := range []string{"writing   14:22", "3 branches  paused   2 Nov", "type to filter", "esc closes"} {
		if !strings.Contains(v, want) {
			t.Errorf("%q is not in the list:\n%s", want, v)
		}
	}
	s.press("esc", "ctrl+p")
	if v := s.m.View(); strings.Contains(v, "panels: panels") || !strings.Contains(v, "pause") && !strings.Contains(v, "send") {
		t.Errorf("the commands:\n%s", v)
	}
	s.press("esc")
	s.send(tui.NoHitsForTest("zebra"))
	if v := s.m.View(); !strings.Contains(v, `fits "zebra"`) {
		t.Errorf("without a hit:\n%s", v)
	}
}

// TestFilterInTheSessions: / in the sessions pane looks for a title.
func TestFilterInTheSessions(t *testing.T) {
	s := open(t, "idle", 200, 60)
	s.press("tab", "/")
	if v := s.m.View(); !strings.Contains(v, "type to filter") {
		t.Errorf("no list:\n%s", v)
	}
	s.press("grant")
	if v := s.m.View(); !strings.Contains(v, "> grant draft") {
		t.Errorf("the title is not found:\n%s", v)
	}
}

// TestQueueOfAnEarlierRunBegins: questions that wait and do not begin by themselves are
// told of, and Enter on an empty line begins with them.
func TestQueueOfAnEarlierRunBegins(t *testing.T) {
	s := open(t, "idle", 80, 24)
	s.press("enter")
	if calls := s.f.Calls(); len(calls) != 0 {
		t.Errorf("after an answer the queue goes on by itself: %v", calls)
	}
	s.f.Set(func(p *tui.Sample) { p.Answers, p.Tokens = 0, nil })
	s.send(tui.TickForTest)
	if v := s.m.View(); !strings.Contains(v, "Enter begins with the questions that wait") || !strings.Contains(v, "ctrl+r go on") {
		t.Errorf("not told:\n%s", v)
	}
	s.press("enter")
	if calls := s.f.Calls(); len(calls) != 1 || calls[0] != "resume" {
		t.Errorf("asked %v", calls)
	}
}

// TestCursorGoesByLetters: left, right and backspace take an emoji or a letter with
// accents as one, and up and down go through the lines of a text.
func TestCursorGoesByLetters(t *testing.T) {
	for _, letter := range []string{"👩‍🔬", "e\u0301", "冰", "🇨🇭"} {
		s := open(t, "idle", 80, 24)
		s.press("a"+letter+"b", "left", "left", "x", "right", "y", "enter")
		s.press("a"+letter+"b", "left", "backspace", "enter")
		if got, want := strings.Join(s.f.Calls(), "; "), "ask ax"+letter+"yb []; ask ab []"; got != want {
			t.Errorf("%q: asked %q, want %q", letter, got, want)
		}
	}
	s := open(t, "idle", 80, 24)
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("one two three")})
	s.send(tea.KeyMsg{Type: tea.KeyLeft, Alt: true})
	s.send(tea.KeyMsg{Type: tea.KeyBackspace, Alt: true})
	s.send(tea.KeyMsg{Type: tea.KeyCtrlRight})
	s.press("!", "enter")
	if got := strings.Join(s.f.Calls(), "; "); got != "ask one three! []" {
		t.Errorf("by words: asked %q", got)
	}
	s = open(t, "idle", 80, 24)
	s.press("first line", "ctrl+j", "冰芯", "ctrl+j", "third", "up", "A", "up", "B", "down", "down", "C", "enter")
	if got, want := strings.Join(s.f.Calls(), "; "), "ask firstB line\n冰芯A\nthirdC []"; got != want {
		t.Errorf("asked %q, want %q", got, want)
	}
}

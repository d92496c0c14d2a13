package tui_test

import (
	"fmt"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui"
)

func focus(s *screen, name string) bool {
	for range 12 {
		if strings.Contains(s.m.View(), "["+name+"]  esc input") {
			return true
		}
		s.press("tab")
	}
	return false
}

// TestEveryPaneCanBeReached: Tab goes through all that is shown and back, and every
// frame on the way, zoomed too, fits.
func TestEveryPaneCanBeReached(t *testing.T) {
	for _, c := range []struct {
		w, h int
		keys []string
		want string
	}{
		{80, 24, nil, "text"},
		{80, 24, []string{"f2"}, "drives prefetch experts this token speed queue"},
		{120, 40, nil, "text drives prefetch experts this token speed queue"},
		{200, 60, nil, "sessions text drives prefetch experts this token speed queue"},
	} {
		s := open(t, "decoding", c.w, c.h)
		s.press(c.keys...)
		rest := s.m.View()
		for _, name := range strings.Split(strings.ReplaceAll(c.want, "this token", "this_token"), " ") {
			name = strings.ReplaceAll(name, "_", " ")
			s.press("tab")
			v := s.m.View()
			checkFrame(t, name, v, c.w, c.h)
			if !strings.Contains(v, "["+name+"]  esc input") {
				t.Errorf("%dx%d: %s is not reached:\n%s", c.w, c.h, name, v)
			}
			s.press("z")
			checkFrame(t, name+" zoomed", s.m.View(), c.w, c.h)
			s.press("z")
			if s.m.View() != v {
				t.Errorf("zoom and back changes the frame of %s", name)
			}
		}
		s.press("esc")
		if got := s.m.View(); got != rest {
			t.Errorf("esc leaves:\n%s", got)
		}
		s.press("shift+tab", "shift+tab", "tab", "tab")
		if got := s.m.View(); got != rest {
			t.Errorf("shift+tab and tab leave:\n%s", got)
		}
	}
}

// TestPaneKeys: what keys do in a pane, and that letters type nowhere else than in
// the input.
func TestPaneKeys(t *testing.T) {
	for _, c := range []struct {
		name, pane string
		keys       []string
		want, note string
	}{
		{"the last is moved to the front", "queue", []string{"ctrl+up"}, "move 2 -1", "number 1 now"},
		{"the first is moved back", "queue", []string{"up", "ctrl+down"}, "move 1 1", ""},
		{"the first cannot be moved forward", "queue", []string{"up", "up", "ctrl+up"}, "", "the first already"},
		{"the one chosen is removed", "queue", []string{"up", "delete"}, "remove 1", "taken out"},
		{"block", "text", []string{"y"}, "", "func depth"},
		{"answer", "text", []string{"Y"}, "", "characters sent"},
		{"unfold", "text", []string{" "}, "", "Three methods: layers"},
		{"letters do not type", "text", []string{"h", "esc", "enter"}, "", ""},
		{"help", "queue", []string{"?"}, "", "take a question out"},
		{"a thread is opened", "sessions", []string{"down", "enter"}, "", "grant draft"},
		{"the leader works", "text", []string{"ctrl+x", "g"}, "regenerate 22", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "decoding", 200, 60)
			if !focus(s, c.pane) {
				t.Fatalf("%s is not reached", c.pane)
			}
			s.press(c.keys...)
			if got := strings.Join(s.f.Calls(), "; "); got != c.want {
				t.Errorf("asked %q, want %q", got, c.want)
			}
			if v := s.m.View(); !strings.Contains(v, c.note) {
				t.Errorf("%q is not on the screen:\n%s", c.note, v)
			}
		})
	}
}

// TestTurns: [ and ] put the beginnings of turns at the window's first row.
func TestTurns(t *testing.T) {
	s := open(t, "decoding", 80, 20)
	end := s.m.View()
	focus(s, "text")
	top := func() string { return strings.Split(s.m.View(), "\n")[2] }
	s.press("[")
	if !strings.Contains(top(), "thinking") {
		t.Errorf("[ shows %q", top())
	}
	s.press("[", "[")
	if !strings.Contains(top(), "you") {
		t.Errorf("[ [ shows %q", top())
	}
	s.press("]")
	if !strings.Contains(top(), "thinking") {
		t.Errorf("] shows %q", top())
	}
	s.press("]", "esc")
	if s.m.View() != end {
		t.Errorf("] ] shows:\n%s", s.m.View())
	}
}

// TestFocusLeavesWithItsPane: a window that gets too small for a pane gives the focus
// back, so that what is typed is seen.
func TestFocusLeavesWithItsPane(t *testing.T) {
	s := open(t, "decoding", 120, 40)
	focus(s, "queue")
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	s.press("hello")
	if !strings.Contains(s.m.View(), "> hello") {
		t.Errorf("typed into nothing:\n%s", s.m.View())
	}
}

// TestQueueFollowsTheChosen: what is chosen stays so when the queue changes.
func TestQueueFollowsTheChosen(t *testing.T) {
	s := open(t, "decoding", 120, 40)
	focus(s, "queue")
	s.press("up")
	s.f.Set(func(p *tui.Sample) { p.Queue = append(p.Queue[1:2:2], p.Queue[0]) })
	s.send(tui.TickForTest)
	s.press("delete")
	if got := strings.Join(s.f.Calls(), "; "); got != "remove 1" {
		t.Errorf("asked %q", got)
	}
}

// TestSearchLandsAtItsTurn: what was found is at the top of the window, not merely
// somewhere in its thread.
func TestSearchLandsAtItsTurn(t *testing.T) {
	s := open(t, "idle", 80, 20)
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x99, Title: "long", Branch: "main"}}
	for i := range 40 {
		text := fmt.Sprintf("question %d", i)
		th.Turns = append(th.Turns, session.Turn{ID: session.ID(i + 100), Parent: session.ID(i+99) * session.ID(min(i, 1)), Role: session.User, Status: session.Done, Body: &session.Body{Text: text}})
	}
	th.Branches = []session.Branch{{Name: "main", Leaf: 139, Tip: 139}, {Name: "short", Leaf: 110, Tip: 110}}
	s.f.Put(th)
	s.press("ctrl+x", "/", "question 17", "enter", "enter")
	rows := strings.Split(s.m.View(), "\n")
	if !strings.Contains(rows[2], "you") || !strings.Contains(rows[3], "question 17") {
		t.Errorf("landed at:\n%s", s.m.View())
	}
	th.Branch, th.Branches[0], th.Branches[1] = "short", th.Branches[1], th.Branches[0]
	s.press("ctrl+x", "/", "question 17", "enter", "enter")
	if !strings.Contains(s.m.View(), "on another branch") {
		t.Errorf("a turn of another branch:\n%s", s.m.View())
	}
}

// TestNoSessionsIsSaid: a list without sessions says why, and one without a match what
// to do.
func TestNoSessionsIsSaid(t *testing.T) {
	for state, want := range map[string]string{"setup": "once a model is open", "empty": "Nothing asked yet. Esc", "idle": "tidal-lock"} {
		s := open(t, state, 80, 24)
		if s.press("f3"); !strings.Contains(s.m.View(), want) {
			t.Errorf("%s:\n%s", state, s.m.View())
		}
	}
	s := open(t, "idle", 80, 24)
	if s.press("f3", "z", "z"); !strings.Contains(s.m.View(), "No title fits") {
		t.Errorf("%s", s.m.View())
	}
}

// TestFullPanelsShowEveryDrive: in the reference window all four drives have a line,
// and what they have met.
func TestFullPanelsShowEveryDrive(t *testing.T) {
	s := open(t, "decoding", 80, 24)
	s.press("f2")
	for _, want := range []string{"d1 ", "d2 ", "d3 ", "d4 ", "p99 1.9 ms  errors 0  mended 0", "hit 93%", "layer 37/93"} {
		if !strings.Contains(s.m.View(), want) {
			t.Errorf("%q is missing:\n%s", want, s.m.View())
		}
	}
}

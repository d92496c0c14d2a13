package tui_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui"
	"deltafin/tui/pane"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

// watching opens a screen of another window's engine.
func watching(t *testing.T, over func(context.Context) error) *screen {
	t.Helper()
	f := tuitest.New("readonly")
	o := tui.Options{Backend: f, Theme: look(t, theme.Mono, theme.NoColour), Now: func() time.Time { return tuitest.Now }, TakeOver: over}
	s := &screen{m: tui.NewModel(t.Context(), o), f: f}
	s.run(s.m.Init())
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	return s
}

// TestTakeOverAsksFirst: the other window is asked only after a yes, a refusal is
// shown, and where the engine is here there is no such key.
func TestTakeOverAsksFirst(t *testing.T) {
	asked := 0
	s := watching(t, func(context.Context) error { asked++; return errors.New("it does not answer") })
	s.press("ctrl+x", "o")
	v := s.m.View()
	checkFrame(t, "take-over", v, 80, 24)
	if !strings.Contains(v, "take the engine over?") {
		t.Fatalf("not asked:\n%s", v)
	}
	s.press("enter")
	s.press("ctrl+x", "o", "esc")
	if asked != 0 {
		t.Fatal("taken over without a yes")
	}
	s.press("ctrl+x", "o", "down", "enter")
	if v := s.m.View(); asked != 1 || !strings.Contains(v, "it does not answer") {
		t.Errorf("asked %d times:\n%s", asked, v)
	}
	owner := open(t, "decoding", 80, 24)
	owner.press("ctrl+x", "o")
	if v := owner.m.View(); !strings.Contains(v, "is no command") {
		t.Errorf("the owner can take over from itself:\n%s", v)
	}
}

// TestCardsCanNameCommands: a choice that is a command of the screen is done there.
func TestCardsCanNameCommands(t *testing.T) {
	s := watching(t, func(context.Context) error { return nil })
	s.f.Set(func(p *tui.Sample) {
		p.Card = pane.NewCard("T", "A.", "B.", "C.", pane.Choice{Key: "t", Label: "take over", Do: "/take-over"}, pane.Choice{Key: "q", Label: "leave", Do: "/quit"})
	})
	s.send(tui.TickForTest)
	s.press("t")
	if v := s.m.View(); !strings.Contains(v, "take the engine over?") {
		t.Errorf("t shows:\n%s", v)
	}
	if calls := s.f.Calls(); len(calls) != 0 {
		t.Errorf("the backend was asked: %v", calls)
	}
}

// TestWhoWatchesGoesAlong: the screen that watches shows the thread that the owner
// turns to, unless its user has opened another.
func TestWhoWatchesGoesAlong(t *testing.T) {
	second := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x99, Title: "the owner's next", Branch: "main"}, Branches: []session.Branch{{Name: "main"}}}
	s := watching(t, func(context.Context) error { return nil })
	list, _ := s.f.Threads(t.Context(), "")
	th, _ := s.f.Thread(t.Context(), list[0].ID)
	s.f.Put(th, second)
	s.f.Set(func(p *tui.Sample) { p.Thread, p.Turn, p.Tokens = 0x99, 0x9a, nil })
	s.send(tui.TickForTest)
	if v := s.m.View(); !strings.Contains(v, "the owner's next") {
		t.Errorf("still shows:\n%s", v)
	}
}

// TestAnswersElsewhereAreTold: the owner's screen stays where its user reads, and says
// where the model works.
func TestAnswersElsewhereAreTold(t *testing.T) {
	s := open(t, "idle", 80, 24)
	s.f.Set(func(p *tui.Sample) {
		p.State, p.Thread, p.Turn, p.Tokens, p.Began, p.Question = pane.Prefill, 0x1b2c000000000002, 0, nil, tuitest.Now, "How cold?"
	})
	s.send(tui.TickForTest)
	if v := s.m.View(); !strings.Contains(v, `works on "How cold?", in another thread; f3 opens it`) || !strings.Contains(v, "tidal-lock review") {
		t.Errorf("shown:\n%s", v)
	}
}

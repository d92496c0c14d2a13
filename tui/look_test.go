package tui_test

import (
	"context"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

// openThemed is open with a choice of themes.
func openThemed(t *testing.T, state string, p theme.Profile) *screen {
	t.Helper()
	look := func(name string) (*theme.Theme, error) { return theme.New(name, p, theme.ASCII()) }
	first, err := look(theme.Dark)
	if err != nil {
		t.Fatal(err)
	}
	f := tuitest.New(state)
	s := &screen{m: tui.NewModel(context.Background(), tui.Options{Backend: f, Theme: first, Look: look, Now: func() time.Time { return tuitest.Now }}), f: f}
	s.run(s.m.Init())
	s.send(tea.WindowSizeMsg{Width: 120, Height: 40})
	return s
}

// TestThemeChanges: after a change every frame is that of a screen which was opened
// in the theme, the live answer and the thinking included.
func TestThemeChanges(t *testing.T) {
	for _, state := range []string{"idle", "decoding", "thinking", "lost"} {
		s := openThemed(t, state, theme.Colour256)
		dark := s.m.View()
		for _, name := range []string{theme.Light, theme.Mono, theme.Dark} {
			s.press("ctrl+p", "theme-"+name, "enter")
			if v := s.m.View(); !strings.Contains(v, "theme "+name) {
				t.Errorf("%s: no word of theme %s:\n%s", state, name, v)
			}
			s.press("f2", "f2", "f2") // the note goes
			want := openIn(t, state, 120, 40, look(t, name, theme.Colour256)).m.View()
			if got := s.m.View(); got != want {
				t.Errorf("%s in theme %s:\n%s\nwant:\n%s", state, name, got, want)
			}
		}
		if s.m.View() != dark {
			t.Errorf("%s: back in dark the frame differs", state)
		}
	}
}

// TestThemeWithoutColours: a terminal without colours stays so and says why.
func TestThemeWithoutColours(t *testing.T) {
	s := openThemed(t, "idle", theme.NoColour)
	s.press("/theme-light", "enter")
	if v := s.m.View(); !strings.Contains(v, "shows no colours") {
		t.Errorf("no word of it:\n%s", v)
	}
	s = open(t, "idle", 80, 24)
	s.press("/theme-light", "enter")
	if v := s.m.View(); !strings.Contains(v, "--theme light") {
		t.Errorf("one theme alone:\n%s", v)
	}
}

// TestResizeRests: every frame has the window's size at once; the thread is laid out
// for it when the size has rested, and for the newest size alone.
func TestResizeRests(t *testing.T) {
	s := open(t, "idle", 80, 24)
	wide := s.m.View()
	line := "sampling step; below about 1 400 m"
	if !strings.Contains(wide, "  "+line) {
		t.Fatalf("the text is wrapped elsewhere:\n%s", wide)
	}
	for _, w := range []int{78, 70, 60} {
		s.send(tea.WindowSizeMsg{Width: w, Height: 24})
		v := s.m.View()
		checkFrame(t, "dragged", v, w, 24)
		if !strings.Contains(v, "  "+line) {
			t.Errorf("at %d cells the text was laid out before the size rested:\n%s", w, v)
		}
	}
	s.send(tui.SettledForTest(1)) // overtaken by a later size
	if !strings.Contains(s.m.View(), "  "+line) {
		t.Error("laid out for a size that has gone")
	}
	s.send(tui.SettledForTest(3))
	if v, want := s.m.View(), open(t, "idle", 60, 24).m.View(); v != want {
		t.Errorf("at rest:\n%s\nwant:\n%s", v, want)
	}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24})
	checkFrame(t, "grown", s.m.View(), 80, 24)
	s.send(tui.SettledForTest(4))
	if s.m.View() != wide {
		t.Errorf("back at 80 cells:\n%s", s.m.View())
	}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 30}) // a height lays nothing out anew
	if v, want := s.m.View(), open(t, "idle", 80, 30).m.View(); v != want {
		t.Errorf("higher:\n%s\nwant:\n%s", v, want)
	}
}

package tui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
)

// papers is a folder to attach from, which becomes the working one.
func papers(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"notes.md", "north.txt", "table, 1.csv", ".secret", "core/all.log", "core/deep/x.md", "my papers/a.md", "my papers/b.md"} {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
}

// TestPathCompletion: what keys make of a path behind an @.
func TestPathCompletion(t *testing.T) {
	papers(t)
	for _, c := range []struct {
		name  string
		keys  []string
		input string // the input afterwards
		shown string // elsewhere in the frame
		not   string // in the frame
	}{
		{"one file", []string{"see @not", "tab"}, "see @notes.md", "", "of 2"},
		{"what is in common, then the choices", []string{"@n", "tab"}, "@no", "notes.md", ""},
		{"the choices", []string{"@n", "tab"}, "@no", "1 of 2", ""},
		{"enter takes the first", []string{"@n", "tab", "enter"}, "@north.txt", "", "of 2"},
		{"tab goes on", []string{"@n", "tab", "tab", "enter"}, "@notes.md", "", ""},
		{"round and back", []string{"@n", "tab", "tab", "tab", "shift+tab", "enter"}, "@notes.md", "", ""},
		{"typing narrows", []string{"@n", "tab", "t"}, "@not", "", "north"},
		{"deleting widens nothing that is closed", []string{"@n", "tab", "t", "backspace"}, "@no", "1 of", ""},
		{"esc closes and keeps the text", []string{"@n", "tab", "esc"}, "@no", "", "1 of"},
		{"leaving the path closes", []string{"@n", "tab", " x"}, "@no x", "", "1 of"},
		{"a folder is looked into", []string{"@co", "tab"}, "@core/", "", ""},
		{"a folder taken shows what is in it", []string{"@", "tab", "enter", "tab", "enter"}, "@core/deep/x.md", "", ""},
		{"in the middle of a text", []string{"see @not it", "ctrl+a", "tab"}, "see @not it", "", ""},
		{"hidden only when typed", []string{"@", "tab"}, "@", "core/", "secret"},
		{"hidden", []string{"@.", "tab"}, "@.secret", "", ""},
		{"quotes for blanks", []string{"@ta", "tab"}, `@"table, 1.csv"`, "", ""},
		{"quotes within a folder with blanks", []string{"@my", "tab", "tab", "enter"}, `@"my papers/a.md"`, "", ""},
		{"within quotes", []string{`@"my papers/b`, "tab"}, `@"my papers/b.md"`, "", ""},
		{"nothing there", []string{"@zzz", "tab"}, "@zzz", "nothing in this folder begins with zzz", ""},
		{"no such folder", []string{"@zzz/", "tab"}, "@zzz/", "no completion", ""},
		{"no @", []string{"me@not", "tab"}, "me@not", "[text]", "notes.md"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, "idle", 80, 24)
			s.press(c.keys...)
			v := s.m.View()
			checkFrame(t, c.name, v, 80, 24)
			rows := strings.Split(v, "\n")
			if got := strings.TrimRight(rows[21], " "); got != " > "+c.input {
				t.Errorf("the input is %q, want %q:\n%s", got, c.input, v)
			}
			if !strings.Contains(v, c.shown) || c.not != "" && strings.Contains(v, c.not) {
				t.Errorf("%q should be seen and %q not:\n%s", c.shown, c.not, v)
			}
		})
	}
}

// TestCompletedPathsAreAttached: what completion writes is what goes with the question.
func TestCompletedPathsAreAttached(t *testing.T) {
	papers(t)
	s := open(t, "idle", 80, 24)
	s.press("see @ta", "tab", ", @my", "tab", "tab", "enter", " and @core/a", "tab", "#1-5", "enter")
	want := `ask see @"table, 1.csv", @"my papers/a.md" and @core/all.log#1-5 [{table, 1.csv 0 0} {my papers/a.md 0 0} {core/all.log 1 5}]`
	if got := strings.Join(s.f.Calls(), "; "); got != want {
		t.Errorf("asked %s\nwant  %s", got, want)
	}
}

// TestChoicesFit: the list fits every window, above what is typed.
func TestChoicesFit(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	papers(t)
	s := open(t, "idle", 80, 24)
	s.press("@", "tab")
	for _, size := range [][2]int{{40, 10}, {41, 11}, {80, 24}, {120, 40}, {200, 60}, {30, 5}} {
		s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		checkFrame(t, "choices", s.m.View(), size[0], size[1])
	}
	s.send(tea.WindowSizeMsg{Width: 40, Height: 10})
	v := s.m.View()
	t.Chdir(here)
	golden(t, "choices-40x10", v)
}

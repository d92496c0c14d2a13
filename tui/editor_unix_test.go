//go:build unix

package tui_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/tui"
	"deltafin/tui/tuitest"
)

// TestEditor: what an editor makes of the input's text, and that nothing it does
// loses any. The editors are scripts on a real terminal.
func TestEditor(t *testing.T) {
	for _, c := range []struct {
		name, script string
		shows        string // on the terminal, after the editor
		sent         string // by Enter
		left         string // in the one file that is left, "" for none
	}{
		{"changes", `printf '%s and more\n' "$(cat "$1")" > "$1"`, "> first and more", "first and more", ""},
		{"is on the terminal", `[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo tty > "$1"`, "> tty", "tty", ""},
		{"has a file of its own", `ls -l "$1" | cut -c1-10 > "$1.x"; mv "$1.x" "$1"`, "-rw-------", "-rw-------", ""},
		{"changes nothing", `echo looked`, "looked\r\n\x1b[?25l\x1b[?1049h", "first", ""},
		{"fails", `exit 3`, "ended with exit status 3", "first", ""},
		{"fails after writing", `echo new > "$1"; exit 3`, "exit status 3: the text here", "first", "new\n"},
		{"removes the file", `rm "$1"`, "cannot be read", "first", ""},
		{"writes no text", `printf '\377' > "$1"`, "UTF-8;", "first", "\xff"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmp, script := t.TempDir(), filepath.Join(t.TempDir(), "my editor")
			t.Setenv("TMPDIR", tmp)
			if err := os.WriteFile(script, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			f := tuitest.New("idle")
			env := func(name string) string { return map[string]string{"VISUAL": script}[name] }
			term, done := startWith(t, tui.Options{Backend: f, Environ: env})
			term.shows(t, "tidal-lock review")
			typed := func(s string) {
				if _, err := term.Write([]byte(s)); err != nil {
					t.Fatal(err)
				}
			}
			typed("first\x18e")
			term.shows(t, c.shows)
			typed("\r")
			term.asked(t, f)
			typed("\x18q")
			if err := ended(t, done); err != nil {
				t.Error(err)
			}
			if got := strings.Join(f.Calls(), "; "); got != "ask "+c.sent+" []" {
				t.Errorf("asked %q", got)
			}
			left, err := filepath.Glob(filepath.Join(tmp, "*"))
			if err != nil || len(left) > 1 || (len(left) == 1) != (c.left != "") {
				t.Fatalf("left: %q, %v", left, err)
			}
			if c.left != "" {
				if text, err := os.ReadFile(left[0]); err != nil || string(text) != c.left {
					t.Errorf("%s holds %q, %v", left[0], text, err)
				}
			}
		})
	}
}

// TestEditorIsNamed: without one the screen says how to name it.
func TestEditorIsNamed(t *testing.T) {
	s := open(t, "idle", 80, 24)
	s.press("a", "ctrl+x", "e")
	if v := s.m.View(); !strings.Contains(v, "set EDITOR") || !strings.Contains(v, "> a") {
		t.Errorf("no word of it:\n%s", v)
	}
}

// TestEditorThatIsNotThere: the text stays.
func TestEditorThatIsNotThere(t *testing.T) {
	f := tuitest.New("idle")
	term, done := startWith(t, tui.Options{Backend: f, Environ: func(string) string { return "no-such-editor -w" }})
	term.shows(t, "tidal-lock review")
	if _, err := term.Write([]byte("first\x18e")); err != nil {
		t.Fatal(err)
	}
	term.shows(t, "no-such-editor cannot be started")
	if _, err := term.Write([]byte("\x18q")); err != nil {
		t.Fatal(err)
	}
	ended(t, done)
}

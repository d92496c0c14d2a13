//go:build unix

package tui_test

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"deltafin/tui/tuitest"
)

// TestResizeDoesNotFlicker: a new size is drawn over the old frame, which is never
// cleared, and each frame is one bracketed update.
func TestResizeDoesNotFlicker(t *testing.T) {
	term, done := start(t, tuitest.New("idle"), nil)
	term.shows(t, strings.Repeat("-", 80))
	for _, w := range []uint16{90, 100} {
		if err := pty.Setsize(term.file, &pty.Winsize{Rows: 24, Cols: w}); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(os.Getpid(), syscall.SIGWINCH); err != nil {
			t.Fatal(err)
		}
		term.shows(t, strings.Repeat("-", int(w)))
	}
	if _, err := term.Write([]byte("\x18q")); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	all := term.all(t)
	last := strings.LastIndex(all, strings.Repeat("-", 100)) // what follows is the end
	if n, end := strings.Count(all[:last], "\x1b[2J"), strings.Count(all[last:], "\x1b[2J"); n != 1 || end != 1 {
		t.Errorf("the screen was cleared %d times until the last size and %d times at the end", n, end)
	}
	if begun, ended := strings.Count(all, "\x1b[?2026h"), strings.Count(all, "\x1b[?2026l"); begun == 0 || ended != begun+1 { // one more by the restoring at the end
		t.Errorf("%d updates begun, %d ended", begun, ended)
	}
}

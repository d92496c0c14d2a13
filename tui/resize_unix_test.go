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
	if err := <-done; err != nil {
		t.Error(err)
	}
	all := <-term.end
	if n := strings.Count(all, "\x1b[2J"); n != 2 {
		t.Errorf("the screen was cleared %d times, at the start and at the end it is", n)
	}
	if begun, ended := strings.Count(all, "\x1b[?2026h"), strings.Count(all, "\x1b[?2026l"); begun == 0 || ended != begun+1 { // one more by the restoring at the end
		t.Errorf("%d updates begun, %d ended", begun, ended)
	}
}

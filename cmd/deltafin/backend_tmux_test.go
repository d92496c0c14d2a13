//go:build linux || darwin

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFirstFrameIsTheGolden: what a terminal emulator of 80x24 shows at the first start
// is, letter by letter, the frame that the screen's own tests hold on to.
func TestFirstFrameIsTheGolden(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	golden, err := os.ReadFile(filepath.Join("..", "..", "tui", "testdata", "frames", "setup-80x24.txt"))
	if err != nil {
		t.Fatal(err)
	}
	dir := shortHome(t)
	w := &window{t: t, sock: filepath.Base(dir)}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", w.sock, "kill-server").Run() })
	w.open(dir, "LC_ALL=C")
	got, want := trimmed(w.until("No model yet")), trimmed(string(golden))
	if got != want {
		t.Errorf("the terminal shows\n%s\nthe golden frame is\n%s", got, want)
	}
	w.tmux("send-keys", "C-x")
	w.tmux("send-keys", "q")
	w.gone()
}

// trimmed is a frame without styles and without the blanks at the ends of its rows.
func trimmed(frame string) string {
	frame = regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(frame, "")
	var rows []string
	for _, row := range strings.Split(strings.TrimRight(frame, "\n"), "\n") {
		rows = append(rows, strings.TrimRight(row, " "))
	}
	return strings.Join(rows, "\n")
}

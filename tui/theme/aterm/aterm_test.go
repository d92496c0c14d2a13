//go:build unix

package aterm_test

import (
	"os"
	"os/exec"
	"testing"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/creack/pty"

	_ "deltafin/tui/theme/aterm"
)

// TestMain is also the child of the test below: a program with bubbletea in it
// that says one word.
func TestMain(m *testing.M) {
	if os.Getenv("ATERM_CHILD") == "1" {
		var _ tea.Model
		if _, err := os.Stdout.WriteString("up"); err != nil {
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// TestNoQuestionsBeforeMain runs the child on a terminal that never answers. The
// first bytes it prints must be its own: a question would come first, and hold it
// up for five seconds.
func TestNoQuestionsBeforeMain(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe)
	cmd.Env = append(os.Environ(), "ATERM_CHILD=1", "TERM=xterm-256color", "CI=")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	defer tty.Close()
	buf := make([]byte, 64)
	n, err := tty.Read(buf)
	if got := string(buf[:n]); got != "up" {
		t.Errorf("the terminal got %q before anything else (%v), want %q", got, err, "up")
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

//go:build linux || darwin

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deltafin/session"
)

// A window is the program in a real terminal emulator.
type window struct {
	t    *testing.T
	sock string
}

func (w *window) tmux(args ...string) string {
	w.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", w.sock, "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// open runs the program in a window of 80x24, with more in its environment.
func (w *window) open(home string, more ...string) {
	w.t.Helper()
	var env strings.Builder
	for _, v := range environment(home, append([]string{"TERM=screen-256color", "LC_ALL=C.UTF-8"}, more...)...) {
		env.WriteString(" '" + v + "'")
	}
	w.tmux("new-session", "-d", "-x", "80", "-y", "24", "env -i"+env.String()+" "+os.Args[0])
}

// until waits for a text in the window and returns what it shows.
func (w *window) until(want string) string {
	w.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	late := time.After(30 * time.Second)
	for {
		text := w.tmux("capture-pane", "-p")
		if strings.Contains(text, want) {
			return text
		}
		select {
		case <-look.C:
		case <-late:
			w.t.Fatalf("%q never came; the window shows:\n%s", want, text)
		}
	}
}

// gone waits for the end of the program.
func (w *window) gone() {
	w.t.Helper()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	late := time.After(20 * time.Second)
	for exec.Command("tmux", "-L", w.sock, "has-session").Run() == nil {
		select {
		case <-look.C:
		case <-late:
			w.t.Fatal("the program does not end")
		}
	}
}

// TestFromFirstStartToResumedAnswer is the way of a new user in a real terminal: start,
// take the demonstration model, ask, read, leave, start again, find the thread, ask on.
func TestFromFirstStartToResumedAnswer(t *testing.T) {
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("tmux is not installed")
	}
	dir := shortHome(t)
	w := &window{t: t, sock: filepath.Base(dir)}
	t.Cleanup(func() { _ = exec.Command("tmux", "-L", w.sock, "kill-server").Run() })
	w.open(dir)
	first := w.until("No model yet")
	for i, line := range strings.Split(strings.TrimRight(first, "\n"), "\n") {
		if i >= 24 || len([]rune(line)) > 80 {
			t.Errorf("row %d is outside of 80x24: %q", i, line)
		}
	}
	w.tmux("send-keys", "Enter")
	w.until("IDLE")
	w.tmux("send-keys", "-l", "What is Deltafin?")
	w.tmux("send-keys", "Enter")
	w.until("DONE")
	w.until("terminal research assistant")
	w.tmux("send-keys", "C-x")
	w.tmux("send-keys", "q")
	w.gone()

	w.open(dir)
	w.until("No model yet")
	w.tmux("send-keys", "Enter")
	w.until("IDLE")
	w.tmux("send-keys", "F3")
	w.until("What is Deltafin?")
	w.tmux("send-keys", "Enter")
	w.until("terminal research assistant")
	w.tmux("send-keys", "-l", "hello")
	w.tmux("send-keys", "Enter")
	w.until("DONE")
	w.tmux("send-keys", "C-x")
	w.tmux("send-keys", "q")
	w.gone()
	th := threadOf(t, dir)
	if len(th.Turns) != 4 || th.Turns[3].Status != session.Done {
		t.Errorf("%d turns in the end: %+v", len(th.Turns), th.Turns)
	}
}

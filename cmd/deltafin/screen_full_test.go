//go:build linux || darwin

package main

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"deltafin/session"
)

// TestScreenOnAMuteTerminal: the first frame does not wait for a terminal that
// answers no query, explains itself, and offers the demonstration model, which a
// question can be asked at once.
func TestScreenOnAMuteTerminal(t *testing.T) {
	dir := shortHome(t)
	start := time.Now()
	p := openProgram(t, dir)
	p.until("No model yet", 4500*time.Millisecond)
	t.Logf("first frame after %v", time.Since(start))
	p.typed("\r")
	p.until("IDLE", 20*time.Second)
	p.typed("hello\r")
	p.until("DONE", 20*time.Second)
	p.typed("\x18q")
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, p.read())
	}
	if text := p.read(); !strings.Contains(text, "\x1b[?1049l") {
		t.Errorf("the terminal was not given back: %q", text[max(len(text)-300, 0):])
	}
	if th := threadOf(t, dir); len(th.Turns) != 2 || th.Turns[1].Status != session.Done {
		t.Errorf("%+v", th.Turns)
	}
}

// TestScreenWithoutColour: NO_COLOR leaves no colour code, whatever the terminal can.
func TestScreenWithoutColour(t *testing.T) {
	p := openProgramIn(t, shortHome(t), []string{"NO_COLOR=1", "COLORTERM=truecolor"}, slow...)
	p.until("IDLE", 20*time.Second)
	p.typed("hello\r")
	p.until("DONE", 30*time.Second)
	p.typed("\x18q")
	p.exit()
	colour := regexp.MustCompile(`\x1b\[[0-9;]*\b(3[0-8]|4[0-8]|9[0-7]|10[0-7])[0-9;]*m`)
	if code := colour.FindString(p.read()); code != "" {
		t.Errorf("a colour was written: %q", code)
	}
}

// TestScreenClosedStopsNothing: the window goes away, the answer goes on to its end.
func TestScreenClosedStopsNothing(t *testing.T) {
	dir := shortHome(t)
	p := openProgram(t, dir, slow...)
	p.until("IDLE", 20*time.Second)
	p.typed("hello\r")
	p.until("PREFILL", 20*time.Second)
	p.tty.Close()
	p.endsDetached()
}

// TestScreenTerminated: SIGTERM pauses, saves, gives the terminal back and exits with
// 0; the next screen goes on with Enter to the end.
func TestScreenTerminated(t *testing.T) {
	dir := shortHome(t)
	p := openProgram(t, dir, slow...)
	p.until("IDLE", 20*time.Second)
	p.typed("Tell me a story about a fox.\r")
	p.until("THINK", 20*time.Second)
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, p.read())
	}
	if !strings.Contains(p.read(), "\x1b[?1049l") {
		t.Error("the terminal was not given back")
	}
	if th := threadOf(t, dir); len(th.Turns) != 2 || th.Turns[1].Status != session.Paused {
		t.Errorf("%+v", th.Turns)
	}
	p = openProgram(t, dir)
	p.until("No model yet", 20*time.Second)
	p.typed("\r")
	p.until("PAUSED", 20*time.Second)
	p.typed("\r")
	p.until("DONE", 20*time.Second)
	p.typed("\x18q")
	p.exit()
	if th := threadOf(t, dir); len(th.Turns) != 2 || th.Turns[1].Status != session.Done {
		t.Errorf("%+v", th.Turns)
	}
}

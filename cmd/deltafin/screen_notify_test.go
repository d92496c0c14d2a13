//go:build linux || darwin

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deltafin/session"
	jobs "deltafin/session/run/work"
)

// A scriptedDriver is a driver that a test moves from state to state.
type scriptedDriver struct {
	mu      sync.Mutex // guards below
	state   *jobs.State
	changed chan struct{}
}

func (d *scriptedDriver) State() *jobs.State {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.state
}

func (d *scriptedDriver) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *scriptedDriver) set(st jobs.State) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = &st
	close(d.changed)
	d.changed = make(chan struct{})
}

// lines waits until a file has n lines.
func lines(t *testing.T, name string, n int) []string {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(time.Minute)
	for {
		data, err := os.ReadFile(name)
		if got := strings.Split(strings.TrimSpace(string(data)), "\n"); err == nil && len(data) > 0 && len(got) >= n {
			return got
		}
		select {
		case <-look.C:
		case <-late:
			t.Fatalf("%s has %q (%v), want %d lines", name, data, err, n)
		}
	}
}

// TestNoticeCommand: an answer that ends, and one that is stopped by an error, run the
// command with what happened in its environment; one that the user pauses does not.
func TestNoticeCommand(t *testing.T) {
	out := filepath.Join(t.TempDir(), "told")
	n, err := newNotifier(`sh -c 'echo "$DELTAFIN_STATE|$DELTAFIN_TITLE|$DELTAFIN_THREAD|$DELTAFIN_TOKENS|$DELTAFIN_SECONDS" >> "$0"' '` + out + `'`)
	if err != nil {
		t.Fatal(err)
	}
	d := &scriptedDriver{state: &jobs.State{Phase: jobs.Idle}, changed: make(chan struct{})}
	n.start(d, func(*jobs.State) string { return `a "title"; $(x)` }, func(text string) { t.Error(text) })
	began := time.Unix(1000, 0)
	busy := jobs.State{Phase: jobs.Decoding, Thread: 0x7a1d000000000001, Began: began}
	d.set(busy)
	paused := busy
	paused.Phase, paused.Ended = jobs.Paused, began.Add(time.Minute)
	d.set(paused)
	d.set(busy)
	done := paused
	done.Phase, done.Answers, done.Answer = jobs.Idle, 1, make([]session.Token, 7)
	d.set(done)
	want := `done|a "title"; $(x)|` + session.ID(0x7a1d000000000001).Short() + `|7|60`
	if got := lines(t, out, 1); got[0] != want {
		t.Errorf("told %q, want %q", got[0], want)
	}
	busy.Answers = 1
	d.set(busy)
	lost := paused
	lost.Phase, lost.Answers, lost.Ended, lost.Err = jobs.Stopped, 1, began.Add(time.Hour), errors.New("drive 3 is gone")
	d.set(lost)
	n.close() // what has ended before is told
	if got := lines(t, out, 2); !strings.HasPrefix(got[1], "stopped|") || len(got) != 2 {
		t.Errorf("told %q", got)
	}
}

// TestNoticeCommandFails: the first failure is said, with the command's own words; the
// work and the next notice go on.
func TestNoticeCommandFails(t *testing.T) {
	n, err := newNotifier(`sh -c 'echo no bell here; exit 3'`)
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 9)
	d := &scriptedDriver{state: &jobs.State{}, changed: make(chan struct{})}
	n.start(d, func(*jobs.State) string { return "" }, func(text string) { said <- text })
	d.set(jobs.State{Answers: 1})
	select {
	case text := <-said:
		if !strings.Contains(text, "exit status 3: no bell here") || !strings.Contains(text, "once") {
			t.Errorf("said %q", text)
		}
	case <-time.After(time.Minute):
		t.Fatal("a failure is not said")
	}
	d.set(jobs.State{Answers: 2})
	n.close()
	if len(said) != 0 {
		t.Errorf("said again: %q", <-said)
	}
}

// TestNoticeCommandHangs: one that does not end is ended.
func TestNoticeCommandHangs(t *testing.T) {
	n, err := newNotifier(`sh -c 'exec tail -f /dev/null'`)
	if err != nil {
		t.Fatal(err)
	}
	n.limit = 50 * time.Millisecond
	said := make(chan string, 1)
	d := &scriptedDriver{state: &jobs.State{}, changed: make(chan struct{})}
	n.start(d, func(*jobs.State) string { return "" }, func(text string) { said <- text })
	d.set(jobs.State{Answers: 1})
	select {
	case text := <-said:
		if !strings.Contains(text, "did not end within 50 ms") {
			t.Errorf("said %q", text)
		}
	case <-time.After(time.Minute):
		t.Fatal("it hangs on")
	}
	n.close()
}

// TestNoticeCommandIsChecked: what cannot be run is refused at the start.
func TestNoticeCommandIsChecked(t *testing.T) {
	for _, command := range []string{"no-such-program", " ", `sh -c "`} {
		if _, err := newNotifier(command); exitCode(t.Context(), err) != exitUsage {
			t.Errorf("%q: %v", command, err)
		}
	}
	if n, err := newNotifier(""); n != nil || err != nil {
		t.Errorf("none wanted: %v, %v", n, err)
	}
}

// TestNoticeOfARealAnswer: the flag, on the line screen.
func TestNoticeOfARealAnswer(t *testing.T) {
	dir := shortHome(t)
	out := filepath.Join(dir, "told")
	p := openProgram(t, dir, "--plain", "--notify-command", `sh -c 'echo "$DELTAFIN_STATE $DELTAFIN_TITLE" > "$0"' '`+out+`'`)
	p.until(ready, 20*time.Second)
	p.typed("hello\n")
	if got := lines(t, out, 1); got[0] != "done hello" {
		t.Errorf("told %q", got)
	}
	p.typed("/quit\n")
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, p.read())
	}
}

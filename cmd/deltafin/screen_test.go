//go:build linux || darwin

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"deltafin/session"
	"deltafin/session/control"
)

// A terminal is the program on a pseudo-terminal that answers no query.
type terminal struct {
	t    *testing.T
	home string
	cmd  *exec.Cmd
	tty  *os.File
	news chan struct{} // there is more text
	over chan struct{} // closed after the last of it

	mu   sync.Mutex // guards below
	text bytes.Buffer
}

// shortHome is a folder for the program's files, with a name short enough for a socket.
func shortHome(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "df")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// environment is that of the program: a terminal that knows much, nothing of ours.
func environment(home string, more ...string) []string {
	env := []string{programVar + "=1", "DELTAFIN_HOME=" + home, "TERM=xterm-256color", "PATH=" + os.Getenv("PATH"), "HOME=" + home}
	return append(env, more...)
}

func openProgram(t *testing.T, home string, args ...string) *terminal {
	t.Helper()
	return openProgramIn(t, home, nil, args...)
}

// openProgramIn is openProgram with more in the environment.
func openProgramIn(t *testing.T, home string, env []string, args ...string) *terminal {
	t.Helper()
	p := &terminal{t: t, home: home, cmd: exec.Command(os.Args[0], args...), news: make(chan struct{}, 1), over: make(chan struct{})}
	p.cmd.Env = environment(home, env...)
	master, err := pty.StartWithSize(p.cmd, &pty.Winsize{Rows: 24, Cols: 80})
	if err != nil {
		t.Fatal(err)
	}
	// A file in blocking mode is not closed while somebody reads it, and closing is
	// what some tests are about: take a descriptor of our own.
	fd, err := syscall.Dup(int(master.Fd()))
	if err == nil {
		syscall.CloseOnExec(fd)
		err = syscall.SetNonblock(fd, true)
	}
	if err = errors.Join(err, master.Close()); err != nil {
		t.Fatal(err)
	}
	p.tty = os.NewFile(uintptr(fd), "terminal")
	go func() { // ends when the program's side is closed
		defer close(p.over)
		buf := make([]byte, 4096)
		for {
			n, err := p.tty.Read(buf)
			p.mu.Lock()
			p.text.Write(buf[:n])
			p.mu.Unlock()
			select {
			case p.news <- struct{}{}:
			default:
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		p.tty.Close()
	})
	return p
}

func (p *terminal) read() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// until waits for a text on the terminal.
func (p *terminal) until(want string, limit time.Duration) {
	p.t.Helper()
	p.untilAfter("", want, limit)
}

// untilAfter waits for a text behind another.
func (p *terminal) untilAfter(mark, want string, limit time.Duration) {
	p.t.Helper()
	late := time.After(limit)
	for {
		_, rest, ok := strings.Cut(p.read(), mark)
		if ok && strings.Contains(rest, want) {
			return
		}
		select {
		case <-p.news:
		case <-late:
			p.t.Fatalf("%q never came; the terminal has:\n%s", want, p.read())
		}
	}
}

func (p *terminal) typed(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p.tty, text); err != nil {
		p.t.Fatal(err)
	}
}

// exit waits for the end of the program, and of what it wrote, and gives its code.
func (p *terminal) exit() int {
	p.t.Helper()
	err := p.cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	select {
	case <-p.over: // its last words may still be on their way
	case <-time.After(time.Minute):
		p.t.Fatalf("the program has ended, its terminal has not:\n%s", p.read())
	}
	return p.cmd.ProcessState.ExitCode()
}

// endsDetached watches the program, whose terminal has gone, through its socket: the
// work goes on without a screen, to the end of its one answer, and the program with it.
func (p *terminal) endsDetached() *session.Thread {
	t := p.t
	t.Helper()
	c, err := control.Dial(t.Context(), filepath.Join(p.home, "state", "control"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	detached := false
	err = c.Follow(t.Context(), control.MinEvery, func(st control.Status) error {
		detached = detached || st.Screen == "" && st.Tokens > 0
		return nil
	})
	if err != nil || !detached {
		t.Errorf("followed to %v, detached %v", err, detached)
	}
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	th := threadOf(t, p.home)
	if n := len(th.Turns); n != 2 || th.Turns[1].Status != session.Done || th.Turns[1].Body.Text == "" {
		t.Errorf("%+v", th.Turns)
	}
	return th
}

// threadOf loads the one thread that was kept.
func threadOf(t *testing.T, home string) *session.Thread {
	t.Helper()
	s, err := session.Open(t.Context(), filepath.Join(home, "data"), &session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.List(t.Context(), session.ListOptions{})
	if err != nil || len(list) != 1 {
		t.Fatalf("%d threads, %v", len(list), err)
	}
	th, err := s.Load(t.Context(), list[0].ID, session.LoadOptions{Bodies: true})
	if err != nil {
		t.Fatal(err)
	}
	return th
}

const ready = "Type a question"

// slow makes the demonstration model slow enough to be met at work.
var slow = []string{"--cache", "2MB", "--drive", os.TempDir() + ",limit=2MB/s,name=slow"}

// TestMuteTerminalDelaysNothing: no query holds the start up. A library that waits
// for the terminal's answer would wait five seconds.
func TestMuteTerminalDelaysNothing(t *testing.T) {
	start := time.Now()
	p := openProgram(t, shortHome(t), "--plain")
	p.until("demonstration model", 4500*time.Millisecond)
	t.Logf("first words after %v", time.Since(start))
	p.until(ready, 20*time.Second)
	p.typed("/quit\n")
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
}

// TestConversationOnATerminal: asked, answered, left, and found again.
func TestConversationOnATerminal(t *testing.T) {
	dir := shortHome(t)
	p := openProgram(t, dir, "--plain")
	p.until(ready, 20*time.Second)
	p.typed("hello\n")
	p.until("to ask on", 20*time.Second)
	p.typed("/quit\n")
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, p.read())
	}
	if text := p.read(); strings.Contains(text, "\x1b") {
		t.Errorf("escapes where lines are only added: %q", text)
	}
	th := threadOf(t, dir)
	if len(th.Turns) != 2 || th.Turns[1].Status != session.Done {
		t.Errorf("%+v", th.Turns)
	}
}

// TestClosedTerminalStopsNothing: the program goes on with its answer and its queue
// when the terminal goes away, can be seen through the socket, and ends by itself.
func TestClosedTerminalStopsNothing(t *testing.T) {
	dir := shortHome(t)
	p := openProgram(t, dir, append(slow, "--plain")...)
	p.until(ready, 20*time.Second)
	p.typed("hello\n")
	p.until("reading the question", 20*time.Second)
	p.tty.Close() // the kernel sends SIGHUP and ends the input
	th := p.endsDetached()
	if len(th.Events) == 0 || th.Events[0].Kind != "detached" {
		t.Errorf("events %+v", th.Events)
	}
}

// TestTerminatedSavesAndEnds: SIGTERM pauses, saves and exits with 0, within
// termGrace and what saving takes.
func TestTerminatedSavesAndEnds(t *testing.T) {
	dir := shortHome(t)
	p := openProgram(t, dir, append(slow, "--plain")...)
	p.until(ready, 20*time.Second)
	p.typed("Tell me a story about a fox.\n")
	p.until("thinking", 20*time.Second)
	start := time.Now()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.exit(); code != exitDone {
		t.Errorf("exit %d:\n%s", code, p.read())
	}
	t.Logf("ended after %v", time.Since(start))
	if th := threadOf(t, dir); len(th.Turns) != 2 || th.Turns[1].Status != session.Paused {
		t.Errorf("%+v", th.Turns)
	}
	// The next start offers it, and Enter goes on to the end.
	p = openProgram(t, dir, "--plain")
	p.until("Press Enter to go on", 20*time.Second)
	p.typed("\n")
	p.until("to ask on", 20*time.Second)
	p.typed("/quit\n")
	p.exit()
	if th := threadOf(t, dir); len(th.Turns) != 2 || th.Turns[1].Status != session.Done {
		t.Errorf("%+v", th.Turns)
	}
}

// TestSecondStartFindsTheFirst: it says who holds the engine, and steering from
// outside works.
func TestSecondStartFindsTheFirst(t *testing.T) {
	dir := shortHome(t)
	first := openProgram(t, dir, append(slow, "--plain")...)
	first.until(ready, 20*time.Second)
	met := "holds this engine. Press a to watch it, t to take over, q to leave."
	second := openProgram(t, dir, "--plain")
	second.until(met, 20*time.Second)
	second.typed("q\n")
	if code := second.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	third := openProgram(t, dir, "--plain")
	third.until(met, 20*time.Second)
	third.typed("t\n")
	third.until("y and Enter asks for it", 20*time.Second)
	third.typed("y\n")
	first.until("/keep and Enter keeps the engine here", 20*time.Second)
	first.typed("/keep\n")
	third.until("the other window keeps the engine", 20*time.Second)
	if code := third.exit(); code != exitError {
		t.Errorf("exit %d", code)
	}
	outside := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
		cmd.Env = environment(dir)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		return string(out)
	}
	outside("tell", "ask", "hello")
	first.until("reading the question", 20*time.Second)
	var r statusReport
	if text := outside("status", "--json"); json.Unmarshal([]byte(text), &r) != nil || !r.Running || r.Owner.PID != first.cmd.Process.Pid || r.Now.Thread == 0 {
		t.Errorf("status: %s", text)
	}
	text := outside("attach")
	if th := threadOf(t, dir); strings.TrimSpace(text) != th.Turns[1].Body.Text || text == "" {
		t.Errorf("attach printed %q, the answer is %q", text, th.Turns[1].Body.Text)
	}
	if strings.Contains(text, "\x1b") {
		t.Errorf("escapes in a pipe: %q", text)
	}
	outside("tell", "stop")
	if code := first.exit(); code != exitDone {
		t.Errorf("exit %d", code)
	}
	if text := outside("status"); !strings.Contains(text, "nothing is running") {
		t.Errorf("status: %s", text)
	}
}

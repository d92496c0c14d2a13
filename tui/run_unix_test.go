//go:build unix

package tui_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"

	"deltafin/tui"
	"deltafin/tui/frame"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

// A terminal is a pseudo-terminal that never answers a question. It reads all that
// is written and keeps it.
type terminal struct {
	io.Writer
	file *os.File
	text chan string // all that came so far, whenever more came
	end  chan string // all of it, once the program has closed its side
}

// long is how long a test waits for what must come.
const long = time.Minute

// ended waits for the end of the screen.
func ended(t testing.TB, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(long):
		t.Fatal("the screen has not ended after a minute")
		return nil
	}
}

// all is all that was written, once the terminal has ended.
func (term *terminal) all(t testing.TB) string {
	t.Helper()
	select {
	case s := <-term.end:
		return s
	case <-time.After(long):
		t.Fatal("the terminal has not ended after a minute")
		return ""
	}
}

// start runs the screen on a mute terminal of 80 by 24.
func start(t *testing.T, b tui.Backend, detach <-chan struct{}) (*terminal, <-chan error) {
	t.Helper()
	return startWith(t, tui.Options{Backend: b, Detach: detach})
}

// startWith is start with more options.
func startWith(t *testing.T, o tui.Options) (*terminal, <-chan error) {
	t.Helper()
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	term := &terminal{Writer: master, file: master, text: make(chan string, 1), end: make(chan string, 1)}
	go func() { // ends with the terminal
		var all bytes.Buffer
		buf := make([]byte, 4096)
		for {
			n, err := master.Read(buf)
			all.Write(buf[:n])
			select {
			case <-term.text: // replaced by what follows
			default:
			}
			term.text <- all.String()
			if err != nil {
				term.end <- all.String()
				return
			}
		}
	}()
	done := make(chan error, 1)
	o.Theme, o.In, o.Out = look(t, theme.Mono, theme.NoColour), slave, slave
	ctx := t.Context()
	go func() { // ends with the screen
		err := tui.Run(ctx, o)
		slave.Close()
		done <- err
	}()
	return term, done
}

// shows waits until the terminal has got a text.
func (m *terminal) shows(t *testing.T, want string) {
	t.Helper()
	last := ""
	for late := time.After(time.Minute); ; {
		select {
		case last = <-m.text:
			if strings.Contains(last, want) {
				return
			}
		case <-late:
			t.Fatalf("%q did not come within a minute; the terminal has:\n%q", want, last)
		case all := <-m.end:
			t.Fatalf("the screen ended without %q:\n%q", want, all)
		}
	}
}

func TestRunQuits(t *testing.T) {
	term, done := start(t, tuitest.New("decoding"), nil)
	term.shows(t, "tidal-lock review")
	if _, err := term.Write([]byte("\x18q")); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); err != nil {
		t.Error(err)
	}
	if all := term.all(t); !strings.HasSuffix(all, frame.Restore) {
		t.Errorf("the terminal is left as %q", all[max(0, len(all)-200):])
	}
}

func TestRunDetaches(t *testing.T) {
	detach := make(chan struct{})
	term, done := start(t, tuitest.New("decoding"), detach)
	term.shows(t, "DECODE")
	close(detach)
	if err := ended(t, done); !errors.Is(err, tui.ErrDetached) {
		t.Errorf("Run returns %v", err)
	}
}

// TestNoColours: mono has no colour code, whatever the content.
func TestNoColours(t *testing.T) {
	term, done := start(t, tuitest.New("lost"), nil)
	term.shows(t, "Drive d3 stopped")
	if _, err := term.Write([]byte("\x18q")); err != nil {
		t.Fatal(err)
	}
	ended(t, done)
	all := term.all(t)
	for _, bad := range []string{"\x1b[3", "\x1b[38", "\x1b[48", "\x1b[9"} {
		for i := 0; ; {
			j := strings.Index(all[i:], bad)
			if j < 0 {
				break
			}
			i += j + len(bad)
			if k := strings.IndexAny(all[i:], "ABCDHJKmhlnqr"); k >= 0 && all[i+k] == 'm' && k > 0 {
				t.Fatalf("a colour: %q", all[i-len(bad):i+k+1])
			}
		}
	}
}

// TestEndedScreenTakesNoKeys: what is typed after the screen was ended from outside
// goes to whoever reads the terminal next.
func TestEndedScreenTakesNoKeys(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("no pseudo-terminal here: %v", err)
	}
	defer master.Close()
	defer slave.Close()
	if err := pty.Setsize(master, &pty.Winsize{Rows: 24, Cols: 80}); err != nil {
		t.Fatal(err)
	}
	go func() { _, _ = io.Copy(io.Discard, master) }() // ends with the terminal
	enough := errors.New("enough")
	for range 10 {
		ctx, cancel := context.WithCancelCause(t.Context())
		out := &noticed{File: slave, shown: make(chan struct{})}
		done, got := make(chan error, 1), make(chan string, 1)
		go func() { // ends with the screen
			done <- tui.Run(ctx, tui.Options{Backend: tuitest.New("idle"), Theme: look(t, theme.Mono, theme.NoColour), In: slave, Out: out})
		}()
		late := time.After(time.Minute)
		select {
		case <-out.shown:
		case <-late:
			t.Fatal("no frame within a minute")
		}
		cancel(enough)
		select {
		case err := <-done:
			if !errors.Is(err, enough) {
				t.Fatalf("Run returns %v", err)
			}
		case <-late:
			t.Fatal("Run has not returned within a minute")
		}
		go func() { // ends with the line
			buf := make([]byte, 8)
			n, _ := slave.Read(buf)
			got <- string(buf[:n])
		}()
		if _, err := master.Write([]byte("next\n")); err != nil {
			t.Fatal(err)
		}
		select {
		case line := <-got:
			if line != "next\n" {
				t.Fatalf("read %q", line)
			}
		case <-late:
			t.Fatal("the screen that has ended took what was typed")
		}
	}
}

// A noticed file tells of the first frame.
type noticed struct {
	*os.File
	shown chan struct{}
	once  sync.Once
}

func (n *noticed) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("tidal-lock review")) {
		n.once.Do(func() { close(n.shown) })
	}
	return n.File.Write(p)
}

// A brokenBackend panics once a question is asked.
type brokenBackend struct{ *tuitest.Fake }

func (brokenBackend) Ask(context.Context, tui.Question) error { panic("broken") }

func TestPanicRestoresTheTerminal(t *testing.T) {
	term, done := start(t, brokenBackend{tuitest.New("idle")}, nil)
	term.shows(t, "tidal-lock review")
	if _, err := term.Write([]byte("x\r")); err != nil {
		t.Fatal(err)
	}
	if err := ended(t, done); err == nil || !strings.Contains(err.Error(), "the work is not affected") {
		t.Errorf("Run returns %v", err)
	}
	if all := term.all(t); !strings.HasSuffix(all, frame.Restore) {
		t.Errorf("the terminal is left as %q", all[max(0, len(all)-200):])
	}
}

// asked waits until the backend was asked for something.
func (m *terminal) asked(t *testing.T, f *tuitest.Fake) {
	t.Helper()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	late := time.After(time.Minute)
	for len(f.Calls()) == 0 {
		select {
		case <-look.C:
		case all := <-m.end:
			t.Fatalf("the screen ended without a question:\n%q", all)
		case <-late:
			t.Fatalf("no question came within a minute; the terminal has:\n%q", <-m.text)
		}
	}
}

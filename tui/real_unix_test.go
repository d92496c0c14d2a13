//go:build unix

package tui_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"
	"github.com/charmbracelet/x/ansi"

	"deltafin/session"
	"deltafin/session/control"
	"deltafin/tui"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

// A realWindow is the program, as it is built, in a real terminal emulator.
type realWindow struct {
	t    *testing.T
	home string
	env  map[string]string
}

// openReal builds the program and runs it in a window of 80x24.
func openReal(t *testing.T, args ...string) *realWindow {
	t.Helper()
	for _, tool := range []string{"tmux", "go"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	home, err := os.MkdirTemp("", "df") // with a name short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	w := &realWindow{t: t, home: home, env: map[string]string{"DELTAFIN_HOME": home, "HOME": home, "PATH": os.Getenv("PATH"), "TERM": "screen-256color", "LC_ALL": "C.UTF-8", "TZ": "UTC"}}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-L", filepath.Base(home), "kill-server").Run() // it may have ended with the program
		os.RemoveAll(home)
	})
	program := filepath.Join(home, "deltafin")
	if out, err := exec.Command("go", "build", "-o", program, "deltafin/cmd/deltafin").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v: %s", err, out)
	}
	line := "env -i"
	for k, v := range w.env {
		line += " '" + k + "=" + v + "'"
	}
	w.tmux("new-session", "-d", "-x", "80", "-y", "24", line+" "+program+" "+strings.Join(args, " "))
	return w
}

func (w *realWindow) tmux(args ...string) string {
	w.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-L", filepath.Base(w.home), "-f", "/dev/null"}, args...)...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("tmux %v: %v: %s", args, err, out)
	}
	return string(out)
}

// until waits for a window that is right, for a minute at most, and returns what it
// shows. right says what is missing, "" for nothing.
func (w *realWindow) until(right func(text string) (missing string)) string {
	w.t.Helper()
	look := time.NewTicker(100 * time.Millisecond)
	defer look.Stop()
	late := time.After(time.Minute)
	for {
		text := w.tmux("capture-pane", "-p")
		missing := right(text)
		if missing == "" {
			return text
		}
		select {
		case <-look.C:
		case <-late:
			w.t.Fatalf("within a minute this did not come:\n%s\nthe window shows:\n%s", missing, text)
		}
	}
}

func has(want string) func(string) string {
	return func(text string) string {
		if strings.Contains(text, want) {
			return ""
		}
		return want
	}
}

// A journal is a backend of what another process has done: its figures as they are
// now, its texts from the disk.
type journal struct {
	*tuitest.Fake
	store *session.Store
}

func (j *journal) Threads(ctx context.Context, title string) ([]session.ThreadInfo, error) {
	return j.store.List(ctx, session.ListOptions{Title: title})
}

func (j *journal) Thread(ctx context.Context, id session.ID) (*session.Thread, error) {
	return j.store.Load(ctx, id, session.LoadOptions{Bodies: true})
}

// read takes the figures of the program through its socket.
func (w *realWindow) read(store *session.Store) *journal {
	w.t.Helper()
	ctx := w.t.Context()
	c, err := control.Dial(ctx, filepath.Join(w.home, "state", "control"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	var s tui.Sample
	once := errors.New("once")
	err = c.Follow(ctx, control.MinEvery, func(st control.Status) error { return errors.Join(once, json.Unmarshal(st.Sample, &s)) })
	if err == nil || err.Error() != once.Error() {
		w.t.Fatal(err)
	}
	if s.Tokens, _, err = store.Tokens(ctx, s.Thread, s.Turn, 0); err != nil {
		w.t.Fatal(err)
	}
	j := &journal{tuitest.New("empty"), store}
	j.Set(func(p *tui.Sample) { *p = s })
	return j
}

// rounded are the pictures that figures rounded for the socket may change.
var rounded = regexp.MustCompile(`[⠀-⣿▁-█░▒▓]+`)

// masked is a frame without colours, without blanks at the ends of rows and below the
// last one, and with pictures as one mark.
func masked(frame string) string {
	rows := strings.Split(ansi.Strip(frame), "\n")
	for i, r := range rows {
		rows[i] = strings.TrimRight(rounded.ReplaceAllString(r, "~"), " ")
	}
	return strings.TrimRight(strings.Join(rows, "\n"), "\n")
}

// TestRealWindowEqualsFrame: what a terminal emulator shows of the program, after an
// answer of the demonstration model and after changes of size, is the frame that the
// same figures and the same journal give without a terminal.
func TestRealWindowEqualsFrame(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	w := openReal(t, "--cache", "2MB", "--drive", os.TempDir()+",limit=100MB/s,name=nvme0")
	w.until(has("IDLE"))
	w.tmux("send-keys", "-l", "What is Deltafin?")
	w.tmux("send-keys", "Enter")
	w.until(has("DONE"))
	d := theme.Detect(func(name string) string { return w.env[name] }, runtime.GOOS)
	th, err := theme.New(d.Name, d.Profile, d.Glyphs)
	if err != nil {
		t.Fatal(err)
	}
	store, err := session.Open(t.Context(), filepath.Join(w.home, "data"), &session.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}, {80, 24}} {
		w.tmux("resize-window", "-x", strconv.Itoa(size[0]), "-y", strconv.Itoa(size[1]))
		got := w.until(func(text string) string {
			s := &screen{m: tui.NewModel(t.Context(), tui.Options{Backend: w.read(store), Theme: th})}
			s.run(s.m.Init())
			s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			if want := masked(s.m.View()); masked(text) != want {
				return want
			}
			return ""
		})
		if !strings.Contains(got, "terminal research assistant") || !strings.Contains(got, "DONE") {
			t.Errorf("the frame is not that of the answer:\n%s", got)
		}
	}
	w.tmux("send-keys", "C-x", "q")
}

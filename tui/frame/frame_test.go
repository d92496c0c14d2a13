package frame_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"strings"
	"testing"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/frame"
	_ "deltafin/tui/theme/aterm"
)

// tty keeps what is written, call by call.
type tty struct {
	writes []string
	err    error
}

func (t *tty) Write(p []byte) (int, error) {
	t.writes = append(t.writes, string(p))
	return len(p), t.err
}
func (t *tty) Read([]byte) (int, error) { return 0, io.EOF }
func (t *tty) Close() error             { return errors.New("closed a file of the caller") }
func (t *tty) Fd() uintptr              { return 99 }

const begin, end = "\x1b[?2026h", "\x1b[?2026l"

func TestWriterBracketsFramesAndPlacesTheCursor(t *testing.T) {
	out := &tty{}
	w := frame.NewWriter(out)
	write := func(s string) {
		if n, err := w.Write([]byte(s)); n != len(s) || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	write("one")
	if !w.SetCursor(4, 9, true) {
		t.Error("a new place is no change")
	}
	write("two")
	if w.SetCursor(4, 9, true) {
		t.Error("the same place is a change")
	}
	if err := w.Place(); err != nil {
		t.Fatal(err)
	}
	write("three")
	w.SetCursor(5, 9, true)
	if err := w.Place(); err != nil {
		t.Fatal(err)
	}
	w.SetCursor(5, 9, false)
	write("four")
	if _, err := io.WriteString(w, "\x1b[?25h"); err != nil {
		t.Fatal(err)
	}
	want := []string{
		begin + "one" + end,
		begin + "two\x1b[10;5H\x1b[?25h" + end,
		begin + "\x1b[?25lthree\x1b[10;5H\x1b[?25h" + end,
		"\x1b[10;6H\x1b[?25h",
		begin + "\x1b[?25lfour" + end,
		"\x1b[?25h",
	}
	if len(out.writes) != len(want) {
		t.Fatalf("%d writes %q, want %d", len(out.writes), out.writes, len(want))
	}
	for i := range want {
		if out.writes[i] != want[i] {
			t.Errorf("write %d is %q, want %q", i, out.writes[i], want[i])
		}
	}
	if w.Fd() != 99 || w.Close() != nil {
		t.Error("the descriptor must be the file's, and the file stay open")
	}
}

func TestWriterReportsErrors(t *testing.T) {
	w := frame.NewWriter(&tty{err: io.ErrClosedPipe})
	if _, err := w.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("err = %v", err)
	}
}

// quitter draws one frame and leaves.
type quitter struct{}

func (quitter) Init() tea.Cmd                       { return tea.Quit }
func (quitter) Update(tea.Msg) (tea.Model, tea.Cmd) { return quitter{}, nil }
func (quitter) View() string                        { return "the frame" }

// TestBubbleteaKeepsItsPromises: the writer tells frames from other sequences by
// the method bubbletea uses. A release that changes it must fail here.
func TestBubbleteaKeepsItsPromises(t *testing.T) {
	out := &tty{}
	w := frame.NewWriter(out)
	w.SetCursor(2, 0, true)
	p := tea.NewProgram(quitter{}, tea.WithInput(nil), tea.WithOutput(w), tea.WithAltScreen(), tea.WithoutSignalHandler())
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	frames := 0
	for _, s := range out.writes {
		in := strings.HasPrefix(s, begin) && strings.HasSuffix(s, "\x1b[1;3H\x1b[?25h"+end)
		if strings.Contains(s, "the frame") {
			frames++
			if !in {
				t.Errorf("a frame without brackets or cursor: %q", s)
			}
		} else if in {
			t.Errorf("brackets around what is no frame: %q", s)
		}
	}
	if frames == 0 {
		t.Errorf("no frame in %q", out.writes)
	}
}

func TestSequencesCarryNothingButText(t *testing.T) {
	evil := "a\x1b]52;c;AAAA\a b\x07c\u009cd\ne;f"
	for name, s := range map[string]string{
		"notify": frame.Notify(evil, evil, false), "urxvt": frame.Notify(evil, evil, true), "title": frame.Title(evil),
	} {
		body := strings.TrimSuffix(strings.TrimPrefix(s, "\x1b]"), "\x1b\\")
		if len(body) != len(s)-4 || strings.ContainsAny(body, "\x1b\a\n\u009c") {
			t.Errorf("%s = %q: more than one sequence", name, s)
		}
	}
	if s := frame.Notify("4;1", "", false); strings.HasPrefix(s, "\x1b]9;4") {
		t.Errorf("a notice that reads as progress: %q", s)
	}
	for _, c := range []struct{ got, want string }{
		{frame.Notify("done", "in 38m", false), "\x1b]9;done: in 38m\x1b\\"},
		{frame.Notify("a;b", "c;d", true), "\x1b]777;notify;a,b;c;d\x1b\\"},
		{frame.Progress(frame.ProgressNormal, 38), "\x1b]9;4;1;38\x1b\\"},
		{frame.Progress(frame.ProgressError, 700), "\x1b]9;4;2;100\x1b\\"},
		{frame.Progress(frame.ProgressNone, 5), "\x1b]9;4;0\x1b\\"},
		{frame.Progress(99, 5), "\x1b]9;4;3\x1b\\"},
		{frame.Title("x"), "\x1b]2;x\x1b\\"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCopyIsByteTrue(t *testing.T) {
	src := "# 世界\r\n\x1b[31m\x00 end"
	s, err := frame.Copy(src)
	if err != nil {
		t.Fatal(err)
	}
	body := strings.TrimSuffix(strings.TrimPrefix(s, "\x1b]52;c;"), "\x1b\\")
	if got, err := base64.StdEncoding.DecodeString(body); err != nil || string(got) != src {
		t.Errorf("copied %q (%v), want %q", got, err, src)
	}
	if _, err := frame.Copy(strings.Repeat("x", frame.MaxCopy+1)); !errors.Is(err, frame.ErrTooLong) {
		t.Errorf("err = %v, want ErrTooLong", err)
	}
}

func TestPassthrough(t *testing.T) {
	get := func(k, v string) func(string) string {
		return func(name string) string {
			if name == k {
				return v
			}
			return ""
		}
	}
	seq := "\x1b]52;c;" + strings.Repeat("A", 2000) + "\x1b\\"
	if got := frame.Passthrough(get("TERM", "xterm"), seq); got != seq {
		t.Error("changed outside of a multiplexer")
	}
	if got, want := frame.Passthrough(get("TMUX", "x"), "\x1b]2;a\x1b\\"), "\x1bPtmux;\x1b\x1b]2;a\x1b\x1b\\\x1b\\"; got != want {
		t.Errorf("tmux: %q, want %q", got, want)
	}
	var inner strings.Builder
	for _, piece := range strings.Split(frame.Passthrough(get("TERM", "screen"), seq), "\x1bP")[1:] {
		if len(piece) > 760 || !strings.HasSuffix(piece, "\x1b\\") {
			t.Errorf("screen: a piece of %d bytes", len(piece))
		}
		inner.WriteString(strings.TrimSuffix(piece, "\x1b\\"))
	}
	if want := strings.TrimSuffix(seq, "\x1b\\") + "\a"; inner.String() != want {
		t.Error("screen: the pieces are not the sequence")
	}
}

func TestPlainAppendsCleanLines(t *testing.T) {
	var b bytes.Buffer
	p := frame.NewPlain(&b)
	steps := []func() error{
		func() error { return p.Line("you", "a question\nof two lines\n") },
		func() error { return p.Stream("wor") },
		func() error { return p.Stream("d \xe4\xb8") },
		func() error { return p.Stream("\x96\x1b[31m\r") },
		func() error { return p.Stream("\nnext") },
		func() error { return p.Line("", "note \xff") },
		func() error { return p.Stream("line\n") },
		func() error { return p.End() },
		func() error { return p.Line("drive\n3", "slow") },
	}
	for i, f := range steps {
		if err := f(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	want := "you: a question\n  of two lines\nword 世^[[31m\nnext\nnote \ufffd\nline\ndrive 3: slow\n"
	if b.String() != want {
		t.Errorf("printed %q, want %q", b.String(), want)
	}
}

// TestAlternateScreenIsLeftClear: a multiplexer whose window grew would show rows of
// it among those of the shell.
func TestAlternateScreenIsLeftClear(t *testing.T) {
	out := &tty{}
	n, err := io.WriteString(frame.NewWriter(out), "\x1b[?1049l")
	if got := strings.Join(out.writes, ""); n != 8 || err != nil || got != "\x1b[2J\x1b[?1049l" {
		t.Errorf("%d, %v: wrote %q", n, err, got)
	}
}

func TestRestoreLeavesEveryMode(t *testing.T) {
	for _, mode := range []string{"?2026l", "?25h", "?1000l", "?1002l", "?1003l", "?1006l", "?1004l", "?2004l", "?1049l", "[0m", "9;4;0"} {
		if !strings.Contains(frame.Restore, mode) {
			t.Errorf("Restore lacks %s", mode)
		}
	}
}

func BenchmarkFrame120x40(b *testing.B) {
	w := frame.NewWriter(discard{})
	w.SetCursor(3, 37, true)
	page := []byte(strings.Repeat(strings.Repeat("x", 120)+"\r\n", 40))
	for b.Loop() {
		if _, err := w.Write(page); err != nil {
			b.Fatal(err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Read([]byte) (int, error)    { return 0, io.EOF }
func (discard) Close() error                { return nil }
func (discard) Fd() uintptr                 { return 0 }

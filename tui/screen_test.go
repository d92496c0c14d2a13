package tui_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/session"
	"deltafin/tui"
	"deltafin/tui/text"
	"deltafin/tui/theme"
	"deltafin/tui/tuitest"
)

var (
	update = flag.Bool("update", false, "write the golden frames anew")
	every  = flag.Bool("every", false, "all window sizes instead of a sample")
)

// A screen is a model under test: messages go in, and commands are run until none
// is left. Those that wait for a clock or a change are left out.
type screen struct {
	m tea.Model
	f *tuitest.Fake
}

func look(t testing.TB, name string, p theme.Profile) *theme.Theme {
	t.Helper()
	th, err := theme.New(name, p, theme.ASCII())
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// TestMain sets the zone that clocks on the screen are in, once: timers read it.
func TestMain(m *testing.M) {
	time.Local = time.UTC
	os.Exit(m.Run())
}

func open(t testing.TB, state string, w, h int) *screen {
	return openIn(t, state, w, h, look(t, theme.Mono, theme.NoColour))
}

func openIn(t testing.TB, state string, w, h int, th *theme.Theme) *screen {
	t.Helper()
	f := tuitest.New(state)
	s := &screen{m: tui.NewModel(t.Context(), tui.Options{Backend: f, Theme: th, Now: func() time.Time { return tuitest.Now }}), f: f}
	s.run(s.m.Init())
	s.send(tea.WindowSizeMsg{Width: w, Height: h})
	return s
}

func (s *screen) send(msg tea.Msg) {
	m, cmd := s.m.Update(msg)
	s.m = m
	s.run(cmd)
}

// run performs commands until the screen is idle.
func (s *screen) run(cmd tea.Cmd) {
	for _, msg := range tui.Settle(cmd) {
		s.send(msg)
	}
}

func (s *screen) press(keys ...string) {
	for _, k := range keys {
		s.send(key(k))
	}
}

func key(name string) tea.KeyMsg {
	for _, t := range []tea.KeyType{tea.KeyEnter, tea.KeyEsc, tea.KeyUp, tea.KeyDown, tea.KeyLeft, tea.KeyRight, tea.KeyPgUp, tea.KeyPgDown, tea.KeyHome, tea.KeyEnd, tea.KeyF1, tea.KeyF2, tea.KeyF3, tea.KeyF4, tea.KeyF7,
		tea.KeyCtrlA, tea.KeyCtrlC, tea.KeyCtrlS, tea.KeyCtrlR, tea.KeyCtrlP, tea.KeyCtrlX, tea.KeyCtrlZ, tea.KeyCtrlU, tea.KeyCtrlJ, tea.KeyCtrlUp, tea.KeyCtrlDown, tea.KeyTab, tea.KeyShiftTab, tea.KeyDelete, tea.KeyBackspace} {
		if k := (tea.KeyMsg{Type: t}); k.String() == name {
			return k
		}
	}
	return tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(name)}
}

// checkFrame: exactly h rows of w cells.
func checkFrame(t *testing.T, what, frame string, w, h int) {
	t.Helper()
	rows := strings.Split(frame, "\n")
	if len(rows) != h {
		t.Fatalf("%s: %d rows in a window of %dx%d", what, len(rows), w, h)
	}
	for i, r := range rows {
		if n := text.Width(r); n != w {
			t.Fatalf("%s: row %d has %d cells in a window of %dx%d: %q", what, i, n, w, h, r)
		}
	}
}

func TestFrameFitsEveryWindow(t *testing.T) {
	dx, dy := 31, 11
	if *every {
		dx, dy = 1, 1
	}
	for _, state := range tuitest.Names() {
		s := open(t, state, 80, 24)
		for _, view := range []string{"", "f2", "ctrl+p"} {
			if view != "" {
				s.press(view)
			}
			for w := 1; w <= 220; w += dx {
				for h := 1; h <= 70; h += dy {
					s.send(tea.WindowSizeMsg{Width: w, Height: h})
					checkFrame(t, state+" "+view, s.m.View(), w, h)
				}
			}
			for _, size := range [][2]int{{39, 10}, {40, 9}, {40, 10}, {80, 19}, {80, 20}, {109, 24}, {110, 24}, {169, 60}, {170, 45}, {400, 200}} {
				s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
				checkFrame(t, state+" "+view, s.m.View(), size[0], size[1])
			}
		}
	}
}

func TestGoldenFrames(t *testing.T) {
	sizes := []struct {
		name string
		w, h int
	}{{"40x10", 40, 10}, {"80x24", 80, 24}, {"120x40", 120, 40}, {"200x60", 200, 60}}
	for _, state := range tuitest.Names() {
		for _, z := range sizes {
			golden(t, state+"-"+z.name, open(t, state, z.w, z.h).m.View())
		}
		golden(t, state+"-colour-80x24", openIn(t, state, 80, 24, look(t, theme.Dark, theme.Colour256)).m.View())
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", "frames", name+".txt")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got+"\n" != strings.ReplaceAll(string(want), "\r\n", "\n") {
		t.Errorf("%s differs from its golden frame (-update writes it anew):\n%s", name, got)
	}
}

// TestStreamedFrameEqualsWhole: an answer that came token by token ends as the same
// frame as one that came at once, and every frame between fits.
func TestStreamedFrameEqualsWhole(t *testing.T) {
	whole := open(t, "decoding", 80, 40).m.View()
	s := open(t, "decoding", 80, 40)
	all := tuitest.Tokens(tuitest.Thoughts, tuitest.Answer)
	for n := 0; n <= len(all); n++ {
		s.f.Set(func(p *tui.Sample) { p.Tokens = all[:n] })
		s.send(tui.TickForTest)
		checkFrame(t, "streaming", s.m.View(), 80, 40)
	}
	if got := s.m.View(); got != whole {
		t.Errorf("streamed:\n%s\nwhole:\n%s", got, whole)
	}
}

func TestModelOutputIsNeverExecuted(t *testing.T) {
	s := open(t, "decoding", 80, 24)
	s.f.Set(func(p *tui.Sample) {
		p.Tokens = tuitest.Tokens("", "red \x1b[31m alarm\x07 title \x1b]0;x\x07 clear \x1b[2J \u202e done")
		p.Queue[0].Text, p.Notice = "\x1b[2J", "a\x1bc"
	})
	s.send(tui.TickForTest)
	for _, size := range [][2]int{{80, 24}, {120, 40}} {
		s.send(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		for _, bad := range []string{"\x1b[31m", "\x1b[2J", "\x1b]0", "\x07", "\x1bc", "\u202e"} {
			if strings.Contains(s.m.View(), bad) {
				t.Errorf("%q of the model reaches the terminal", bad)
			}
		}
	}
}

// TestKeys: what a sequence of keys asks of the backend.
func TestKeys(t *testing.T) {
	for _, c := range []struct {
		name, state string
		keys        []string
		want        string // of the calls, joined by "; "
		note        string // in the frame
	}{
		{"enter sends", "idle", []string{"why?", "enter"}, "ask why? []", ""},
		{"enter queues while working", "decoding", []string{"next", "enter"}, "ask next []", "queued"},
		{"attachments go along", "idle", []string{"see @a/*.md @b.txt#10-40", "enter"}, "ask see @a/*.md @b.txt#10-40 [{a/*.md 0 0} {b.txt 10 40}]", ""},
		{"ctrl+c pauses and never ends", "decoding", []string{"ctrl+c"}, "pause", "stops after this token"},
		{"esc never stops", "decoding", []string{"esc", "esc", "esc"}, "", ""},
		{"ctrl+s asks once", "decoding", []string{"stop that", "ctrl+s"}, "", "once more breaks in"},
		{"ctrl+s twice breaks in", "decoding", []string{"stop that", "ctrl+s", "ctrl+s"}, "break-in stop that", ""},
		{"another key between asks again", "decoding", []string{"stop", "ctrl+s", "!", "ctrl+s"}, "", "once more breaks in"},
		{"ctrl+r goes on", "paused", []string{"ctrl+r"}, "resume", ""},
		{"enter goes on", "paused", []string{"enter"}, "resume", ""},
		{"ctrl+z explains", "decoding", []string{"ctrl+z"}, "", "would stop the model"},
		{"a card's choice", "lost", []string{"r"}, "choose retry", ""},
		{"a card's key types when something is written", "lost", []string{"x", "r", "enter"}, "ask xr []", ""},
		{"first start: enter takes the demonstration", "setup", []string{"enter"}, "open demo", ""},
		{"first start: a folder", "setup", []string{"/models/k3", "enter"}, "open /models/k3", ""},
		{"slash runs a command", "idle", []string{"/fork", "enter"}, "fork 22", ""},
		{"unknown slash", "idle", []string{"/nothing", "enter"}, "", "there is no /nothing"},
		{"leader", "idle", []string{"ctrl+x", "g"}, "regenerate 22", ""},
		{"leader undo", "idle", []string{"ctrl+x", "u"}, "undo main", ""},
		{"unknown leader", "idle", []string{"ctrl+x", "?"}, "", "is no command"},
		{"rename", "idle", []string{"f4", "ctrl+u", "Ice", "enter"}, "rename 7a1d000 Ice", "renamed"},
		{"export", "idle", []string{"ctrl+x", "x", "ctrl+u", "a.html", "enter"}, "export a.html", "exported"},
		{"search", "idle", []string{"ctrl+x", "/", "tephra", "enter"}, "search tephra", "a line with tephra"},
		{"palette", "decoding", []string{"ctrl+p", "pause", "enter"}, "pause", ""},
		{"help lists keys", "idle", []string{"f1", "another seed"}, "", "ctrl+x g"},
		{"queue to the front", "decoding", []string{"ctrl+up"}, "move 2 -1", ""},
		{"out of the queue", "decoding", []string{"ctrl+x", "k"}, "remove 2", "taken out"},
		{"newline", "idle", []string{"a", "ctrl+j", "b", "enter"}, "ask a\nb []", ""},
		{"history", "idle", []string{"one", "enter", "up", "enter"}, "ask one []; ask one []", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := open(t, c.state, 120, 40)
			s.press(c.keys...)
			if got := strings.Join(s.f.Calls(), "; "); got != c.want {
				t.Errorf("asked %q, want %q", got, c.want)
			}
			if v := s.m.View(); !strings.Contains(v, c.note) {
				t.Errorf("%q is not on the screen:\n%s", c.note, v)
			}
		})
	}
}

func TestRefusedQuestionIsKept(t *testing.T) {
	s := open(t, "idle", 120, 40)
	s.f.Fail(errors.New("the disk with your sessions is full; free some space"))
	s.press("a question", "enter")
	if v := s.m.View(); !strings.Contains(v, "your text is kept") || !strings.Contains(v, "disk with your sessions is full") {
		t.Errorf("the refusal is not shown:\n%s", v)
	}
	s.press("up")
	if v := s.m.View(); !strings.Contains(v, "> a question") {
		t.Errorf("the text is gone:\n%s", v)
	}
}

func TestLongPasteBecomesChip(t *testing.T) {
	s := open(t, "idle", 80, 24)
	long := strings.Repeat("line\n", 40) + "end"
	s.send(tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune(long), Paste: true})
	if v := s.m.View(); !strings.Contains(v, "[paste 1, 41 lines]") {
		t.Errorf("no chip:\n%s", v)
	}
	s.press("enter")
	if got, want := s.f.Calls()[0], "ask "+long+" []"; got != want {
		t.Errorf("sent %q", got)
	}
}

func TestScrollAndFollow(t *testing.T) {
	s := open(t, "decoding", 80, 20)
	end := s.m.View()
	s.press("pgup")
	if v := s.m.View(); v == end || !strings.Contains(v, "more below") {
		t.Errorf("page up shows:\n%s", v)
	}
	for range 20 {
		s.press("pgup")
	}
	if v := s.m.View(); !strings.Contains(v, "Compare the three") {
		t.Errorf("the beginning is not reached:\n%s", v)
	}
	s.press("end")
	if v := s.m.View(); v != end {
		t.Errorf("end shows:\n%s", v)
	}
}

func TestFreeze(t *testing.T) {
	s := open(t, "decoding", 80, 24)
	s.press("f7")
	frozen := s.m.View()
	s.f.Set(func(p *tui.Sample) { p.Layer++ })
	s.send(tui.TickForTest)
	if s.m.View() != frozen || !strings.Contains(frozen, "FROZEN") {
		t.Error("a frozen screen moved")
	}
	s.press("x")
	if s.m.View() == frozen {
		t.Error("a key does not thaw the screen")
	}
}

func TestRunNeedsItsParts(t *testing.T) {
	if err := tui.Run(context.Background(), tui.Options{}); err == nil {
		t.Error("Run without a backend succeeds")
	}
}

// TestFastAnswerIsShown: an answer that began and ended between two looks is on the
// screen all the same, though its thread is new.
func TestFastAnswerIsShown(t *testing.T) {
	s := open(t, "empty", 80, 24)
	s.press("hello", "enter")
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x31, Title: "hello", Branch: "main"}}
	th.Turns = []session.Turn{
		{ID: 0x32, Role: session.User, Status: session.Done, Body: &session.Body{Text: "hello"}},
		{ID: 0x33, Parent: 0x32, Role: session.Assistant, Status: session.Done, Body: &session.Body{Text: "Hello to you."}}}
	th.Branches = []session.Branch{{Name: "main", Leaf: 0x33, Tip: 0x33}}
	s.f.Put(th)
	s.f.Set(func(p *tui.Sample) {
		p.Thread, p.Turn, p.Tokens, p.Answers = 0x31, 0x33, tuitest.Tokens("", "Hello to you."), 1
		p.Began, p.Ended = tuitest.Now, tuitest.Now.Add(100*time.Millisecond)
	})
	s.send(tui.TickForTest)
	if v := s.m.View(); !strings.Contains(v, "Hello to you.") || strings.Contains(v, "Nothing asked yet") {
		t.Errorf("the screen shows:\n%s", v)
	}
}

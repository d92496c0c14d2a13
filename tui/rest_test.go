package tui

import (
	"strings"
	"testing"
	"time"

	tea "github.com/charmbracelet/bubbletea"

	"deltafin/tui/pane"
	"deltafin/tui/theme"
)

// A still backend has one Sample and nothing else.
type still struct {
	Backend
	s pane.Sample
	c chan struct{}
}

func (b *still) Snapshot(dst *Sample)     { *dst = b.s }
func (b *still) Changed() <-chan struct{} { return b.c }

// TestClockOnlyWhileWorking: at rest no clock runs, and while the model works no
// change wakes the screen between two ticks.
func TestClockOnlyWhileWorking(t *testing.T) {
	th, err := theme.New(theme.Mono, theme.NoColour, theme.ASCII())
	if err != nil {
		t.Fatal(err)
	}
	b := &still{s: pane.Sample{State: pane.Idle}, c: make(chan struct{})}
	m := newModel(t.Context(), Options{Backend: b, Theme: th}, nil)
	waits := 0
	m.wait = func(tea.Cmd) tea.Cmd { waits++; return nil }
	step := func(msg tea.Msg, ticking, watching bool, want int) {
		t.Helper()
		waits = 0
		if msg == nil {
			m.take()
		} else {
			m.update(msg)
		}
		if m.ticking != ticking || m.watching != watching || waits != want {
			t.Errorf("%T: ticking %v, watching %v, %d waits begun; want %v, %v, %d", msg, m.ticking, m.watching, waits, ticking, watching, want)
		}
	}
	step(nil, false, true, 1)
	step(nil, false, true, 0) // one watch is enough
	b.s.State = pane.Decoding
	step(changedMsg{}, true, false, 1)
	step(tickMsg{}, true, false, 1)
	b.s.State = pane.Idle
	step(tickMsg{}, false, true, 1)
	b.s.State = pane.Decoding
	step(changedMsg{}, true, false, 1)
}

// TestFrameOnlyForNews: a tick that finds nothing new draws nothing, unless the clock
// in the header has moved on.
func TestFrameOnlyForNews(t *testing.T) {
	th, err := theme.New(theme.Mono, theme.NoColour, theme.ASCII())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 3, 14, 22, 41, 0, time.UTC)
	b := &still{s: pane.Sample{State: pane.Decoding, Began: now}, c: make(chan struct{})}
	m := newModel(t.Context(), Options{Backend: b, Theme: th, Now: func() time.Time { return now }}, nil)
	m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	for i, c := range []struct {
		do  func()
		msg tea.Msg
		new bool
	}{
		{func() {}, tickMsg{}, false},
		{func() { b.s.Change++ }, tickMsg{}, true},
		{func() { now = now.Add(400 * time.Millisecond) }, tickMsg{}, false},
		{func() { now = now.Add(700 * time.Millisecond) }, tickMsg{}, true},
		{func() {}, tea.KeyMsg{Type: tea.KeyRunes, Runes: []rune("x")}, true},
	} {
		m.View()
		c.do()
		m.Update(c.msg)
		if m.drawn == "" != c.new {
			t.Errorf("step %d: drawn anew %v, want %v", i, m.drawn == "", c.new)
		}
	}
}

// TestKeysAreUnambiguous: in each state a key, a leader key and a name mean one
// thing, and everything has a help text.
func TestKeysAreUnambiguous(t *testing.T) {
	for _, busy := range []bool{false, true} {
		for _, focus := range []string{"", textPane, queuePane, threadsPane, "drives"} {
			unambiguous(t, busy, focus)
		}
	}
}

func unambiguous(t *testing.T, busy bool, focus string) {
	seen := map[string]string{}
	for _, b := range bindings() {
		if b.help == "" || b.do == nil || b.key == "" && b.lead == "" && strings.Contains(b.name, " ") {
			t.Errorf("%s: help, key or action is missing", b.name)
		}
		if !b.fits(busy) {
			continue
		}
		uses := []string{"name " + b.name}
		if b.key != "" && b.at.has(focus) {
			uses = append(uses, "key "+b.key)
		}
		if b.lead != "" {
			uses = append(uses, "lead "+b.lead)
		}
		for _, k := range uses {
			if other := seen[k]; other != "" {
				t.Errorf("%s is both %s and %s (busy %v, in %q)", k, other, b.name, busy, focus)
			}
			seen[k] = b.name
		}
	}
}

func TestAttachments(t *testing.T) {
	got := attachments("see @a.md, mail me@x.org @ @dir/ @*.go @f#3-9 @g#9-3")
	want := []Attachment{{Path: "a.md"}, {Path: "dir/"}, {Path: "*.go"}, {Path: "f", From: 3, To: 9}, {Path: "g#9-3"}}
	if len(got) != len(want) {
		t.Fatalf("found %v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("found %v, want %v", got[i], want[i])
		}
	}
}

// TestWishesFulfilledAreNotToldTwice: once the work has stopped, or another answer has
// begun, what a pause or a break-in said is gone.
func TestWishesFulfilledAreNotToldTwice(t *testing.T) {
	th, err := theme.New(theme.Mono, theme.NoColour, theme.ASCII())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 3, 14, 22, 41, 0, time.UTC)
	b := &still{c: make(chan struct{})}
	for _, c := range []struct {
		note string
		next pane.Sample
		left string
	}{
		{notePausing, pane.Sample{State: pane.Decoding, Began: now}, notePausing},
		{notePausing, pane.Sample{State: pane.Paused, Began: now}, ""},
		{noteBreaking, pane.Sample{State: pane.Prefill, Began: now.Add(time.Minute)}, ""},
		{"saved to last-copy.md", pane.Sample{State: pane.Paused, Began: now}, "saved to last-copy.md"},
	} {
		b.s = pane.Sample{State: pane.Decoding, Began: now}
		m := newModel(t.Context(), Options{Backend: b, Theme: th}, nil)
		m.wait = func(tea.Cmd) tea.Cmd { return nil }
		m.note, b.s = c.note, c.next
		if m.Update(tickMsg{}); m.note != c.left {
			t.Errorf("%q is %q after %s", c.note, m.note, c.next.State)
		}
	}
}

package tuitest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"deltafin/session"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// Now is the time in every test.
var Now = time.Date(2026, 11, 3, 14, 22, 41, 0, time.UTC)

// Answer is what the model writes, Thoughts what it thinks first.
const (
	Thoughts = "The user wants a comparison.\nThree methods: layers, tephra, gas.\n"
	Answer   = "## Where the three methods part ways\n\nLayer counting is exact only while annual layers stay thicker than the sampling step; below about 1 400 m the count becomes a model, not a count.\n\n- **Layer counting** drifts old when melt layers are read as years.\n- **Tephra ties** pin single depths.\n\n| method | exact to | fails when |\n|---|---|---|\n| layer counting | 1 400 m | layers thinner than 1 cm |\n| 层位 tephra | 4 depths | between the ties |\n\n```go\nfunc depth(year int) float64 { return 0.9 * float64(year) }\n```\n"
	Question = "Compare the three dating methods for the ice core and say where they differ."
)

// A Fake is a tui.Backend that keeps what it was told.
type Fake struct {
	mu sync.Mutex // guards below

	sample  tui.Sample
	threads []*session.Thread
	changed chan struct{}

	asked []string // the calls: "ask TEXT", "pause"

	fail error // of every wish
}

// New returns a backend in one of the states that Names lists.
func New(state string) *Fake {
	f := &Fake{changed: make(chan struct{})}
	f.sample = sampleOf(state)
	if f.sample.Thread != 0 {
		f.threads = threadsOf(f.sample.State)
	}
	return f
}

func sampleOf(state string) tui.Sample {
	s := tui.Sample{Change: 1, State: pane.State(state), Model: "K3", Context: 262144, Used: 46300}
	switch state {
	case "setup", "missing":
		s = tui.Sample{Change: 1, State: pane.Setup}
		special(&s, state)
		return s
	case "loading":
		s.Loading = pane.Progress{Step: "checking sizes", Share: 0.42, Took: 8 * time.Second}
		return s
	case "empty":
		s.State = pane.Idle
		return s
	}
	special(&s, state)
	s.Thread, s.Turn, s.Branch, s.Question = 0x7a1d000000000001, 0x22, "main", Question
	s.Began, s.Rate = Now.Add(-20*time.Minute-41*time.Second), 0.97
	switch s.State {
	case pane.Prefill, pane.Restoring:
		s.Reading = pane.Reading{Tokens: 45118, Reused: 1902, Pass: 9, Passes: 22, Share: 0.38, Left: 11 * time.Minute, LeftLow: 9 * time.Minute, LeftHigh: 14 * time.Minute, Rate: 42, RateStart: 47}
		s.Turn = 0
	case pane.Thinking:
		s.Tokens = Tokens(Thoughts, "")
	case pane.Idle:
		s.Tokens = Tokens(Thoughts, Answer)
		s.Answers, s.Ended = 1, Now.Add(-time.Minute)
	default:
		s.Tokens = Tokens(Thoughts, Answer)
	}
	for i := range 120 {
		s.Times = append(s.Times, time.Duration(1000+120*(i%5)+400*(i%37/36))*time.Millisecond)
	}
	s.Layer, s.Layers = 37, 93
	s.Token = pane.TokenTime{Took: 1020 * time.Millisecond, Read: 0.55, Math: 0.41}
	for i := range 93 {
		s.Token.Stall = append(s.Token.Stall, time.Duration(i%9)*time.Millisecond)
	}
	for i := range 4 {
		d := pane.Drive{Name: fmt.Sprint("d", i+1), Now: 6.9e9 - float64(i)*1e8, Ceiling: 7.1e9, P99: 1900 * time.Microsecond, Depth: 32, Temperature: 41 + float64(i)}
		for j := range 300 {
			d.History = append(d.History, 7e9*math.Abs(math.Sin(float64(i+j)/7)))
		}
		s.Drives = append(s.Drives, d)
	}
	s.Prefetch = pane.Prefetch{Hit: 640, InTime: 290, Late: 50, Missed: 20, Unused: 20, Stall: 61 * time.Millisecond, WorstLayer: 58, WorstStall: 7200 * time.Microsecond}
	s.Experts = pane.Experts{Held: 71.2e9, Budget: 96e9, Count: 3118, All: 82432, Evictions: 4, Reuse: 0.71}
	for i := range 92 {
		row := make([]float64, 16)
		for j := range row {
			row[j] = float64((i*7+j*3)%10) / 10
		}
		s.Experts.Share = append(s.Experts.Share, row)
	}
	s.Memory = pane.Memory{Used: 118e9, Total: 128e9, Others: 3e9}
	wounds(&s, state)
	s.Queue = []pane.QueueItem{{ID: 1, Text: "What would a 4th tie point change?", Likely: 25 * time.Minute}, {ID: 2, Text: "Draft the methods section"}}
	return s
}

// Tokens cuts texts into tokens of a few letters.
func Tokens(thoughts, answer string) []session.Token {
	var out []session.Token
	for _, p := range []struct {
		s string
		c session.Channel
	}{{thoughts, session.InThinking}, {answer, session.InAnswer}} {
		for s := p.s; s != ""; {
			n := min(2, len(s)) // within a letter too, as real tokens end
			out = append(out, session.Token{ID: int32(len(out)), Channel: p.c, Text: s[:n]})
			s = s[n:]
		}
	}
	return out
}

func threadsOf(state pane.State) []*session.Thread {
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x7a1d000000000001, Title: "tidal-lock review", Branch: "main", Created: Now, Status: session.Writing}}
	th.Turns = []session.Turn{{ID: 0x21, Role: session.User, Status: session.Done, Created: Now, Body: &session.Body{Text: Question}}}
	leaf := session.ID(0x21)
	if state != pane.Prefill && state != pane.Restoring {
		th.Turns, leaf = append(th.Turns, session.Turn{ID: 0x22, Parent: 0x21, Role: session.Assistant, Status: session.Writing, Created: Now, Body: &session.Body{}}), 0x22
	}
	th.Branches = []session.Branch{{Name: "main", Leaf: leaf, Tip: leaf}}
	old := &session.Thread{ThreadInfo: session.ThreadInfo{ID: 0x1b2c000000000002, Title: "grant draft", Branch: "main", Status: session.Paused, Created: Now}}
	old.Branches = []session.Branch{{Name: "main"}}
	return []*session.Thread{th, old}
}

// Set changes the sample and tells whoever waits.
func (f *Fake) Set(change func(s *tui.Sample)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.sample)
	f.sample.Change++
	close(f.changed)
	f.changed = make(chan struct{})
}

// Put replaces the threads.
func (f *Fake) Put(list ...*session.Thread) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.threads = list
}

// Fail makes every wish fail with err, nil for none.
func (f *Fake) Fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.fail = err
}

// Calls returns what was asked for.
func (f *Fake) Calls() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]string(nil), f.asked...)
}

func (f *Fake) note(format string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, fmt.Sprintf(format, args...))
	return f.fail
}

// Snapshot implements tui.Backend, as do the methods below.
func (f *Fake) Snapshot(dst *tui.Sample) {
	f.mu.Lock()
	defer f.mu.Unlock()
	*dst = f.sample
}

// Changed implements tui.Backend.
func (f *Fake) Changed() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

// Ask keeps the question.
func (f *Fake) Ask(_ context.Context, q tui.Question) error {
	return f.note("ask %s %v", q.Text, q.Files)
}

// BreakIn keeps the question.
func (f *Fake) BreakIn(_ context.Context, q tui.Question) error { return f.note("break-in %s", q.Text) }

// Pause keeps the wish.
func (f *Fake) Pause(context.Context) error { return f.note("pause") }

// Resume keeps the wish.
func (f *Fake) Resume(context.Context) error { return f.note("resume") }

// Choose keeps the choice.
func (f *Fake) Choose(_ context.Context, do string) error { return f.note("choose %s", do) }

// Open keeps the folder.
func (f *Fake) Open(_ context.Context, folder string) error { return f.note("open %s", folder) }

// Move keeps the wish.
func (f *Fake) Move(_ context.Context, id session.ID, places int) error {
	return f.note("move %d %d", id, places)
}

// Remove keeps the wish.
func (f *Fake) Remove(_ context.Context, id session.ID) error { return f.note("remove %d", id) }

// Threads lists the threads.
func (f *Fake) Threads(context.Context, string) ([]session.ThreadInfo, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []session.ThreadInfo
	for _, th := range f.threads {
		out = append(out, th.ThreadInfo)
	}
	return out, nil
}

// Thread returns a thread.
func (f *Fake) Thread(_ context.Context, id session.ID) (*session.Thread, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, th := range f.threads {
		if th.ID == id {
			return th, nil
		}
	}
	return nil, fmt.Errorf("thread %s: %w", id.Short(), session.ErrNotFound)
}

// Search finds one line, in the turn of that text if there is one.
func (f *Fake) Search(_ context.Context, query string) ([]session.Hit, error) {
	f.mu.Lock()
	for _, th := range f.threads {
		for _, u := range th.Turns {
			if u.Body != nil && u.Body.Text == query {
				f.mu.Unlock()
				return []session.Hit{{Thread: th.ID, Turn: u.ID, Title: th.Title, Line: query}}, f.note("search %s", query)
			}
		}
	}
	f.mu.Unlock()
	return []session.Hit{{Thread: 0x1b2c000000000002, Title: "grant draft", Line: "a line with " + query}}, f.note("search %s", query)
}

// Rename keeps the wish.
func (f *Fake) Rename(_ context.Context, id session.ID, title string) error {
	return f.note("rename %s %s", id.Short(), title)
}

// Fork keeps the wish.
func (f *Fake) Fork(_ context.Context, _, turn session.ID) (string, error) {
	return "fork-1", f.note("fork %x", uint64(turn))
}

// Regenerate keeps the wish.
func (f *Fake) Regenerate(_ context.Context, _, turn session.ID) error {
	return f.note("regenerate %x", uint64(turn))
}

// Undo keeps the wish.
func (f *Fake) Undo(_ context.Context, _ session.ID, branch string) error {
	return f.note("undo %s", branch)
}

// Redo keeps the wish.
func (f *Fake) Redo(_ context.Context, _ session.ID, branch string) error {
	return f.note("redo %s", branch)
}

// Estimate gives fixed figures.
func (f *Fake) Estimate(context.Context, tui.Question) (tui.Cost, error) {
	return tui.Cost{Tokens: 1204, Time: session.Estimate{Likely: 12 * time.Minute}, First: 40 * time.Second}, nil
}

// Export keeps the path.
func (f *Fake) Export(_ context.Context, _ session.ID, path string) error {
	return f.note("export %s", path)
}

package work

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deltafin/engine"
	"deltafin/session"
	"deltafin/session/run"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// A bench is a store, the demonstration model and a Driver that runs.
type bench struct {
	t    testing.TB
	s    *session.Store
	e    *engine.Engine
	d    *Driver
	gaps chan chan time.Time // waits of the Driver that were begun
	skip atomic.Int64        // how far its clock is ahead
	hold atomic.Int64        // answers wait when they have that many tokens; 0: they do not
	free chan struct{}       // lets an answer go that waits
	end  func() error
}

// start opens what lies in a folder and runs a Driver on it.
func start(t testing.TB, dir string) *bench {
	t.Helper()
	b := &bench{t: t, gaps: make(chan chan time.Time, 16), free: make(chan struct{})}
	b.s = must[*session.Store](t)(session.Open(t.Context(), filepath.Join(dir, "data"), &session.Options{Group: -1}))
	b.e = must[*engine.Engine](t)(engine.Open(t.Context(), engine.Options{Threads: 1}))
	r := must[*run.Runner](t)(run.New(b.s, b.e, run.Options{Snapshots: filepath.Join(dir, "snapshots"), Now: b.pace}))
	base := time.Now()
	b.d = New(b.s, r, Options{MaxTokens: 60, Now: func() time.Time { return base.Add(time.Duration(b.skip.Load())) }, After: func(time.Duration) <-chan time.Time {
		c := make(chan time.Time, 1)
		b.gaps <- c
		return c
	}})
	if err := b.d.Offer(t.Context()); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- b.d.Run(context.Background()) }()
	b.end = sync.OnceValue(func() error {
		b.release()
		err := errors.Join(b.d.Stop(context.Background()), <-done)
		return errors.Join(err, b.s.Close(), b.e.Close())
	})
	t.Cleanup(func() {
		if err := b.end(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// pace is the clock of the Runner, which looks at it after every token: the place
// to make an answer wait, so that no test depends on how fast one comes.
func (b *bench) pace() time.Time {
	if n := b.hold.Load(); n > 0 && b.d != nil && int64(len(b.d.State().Answer)) >= n {
		<-b.free
	}
	return time.Now()
}

// release lets answers go that hold made wait.
func (b *bench) release() {
	if b.hold.Swap(0) != 0 {
		close(b.free)
	}
}

// until waits for a state.
func (b *bench) until(what string, ok func(*State) bool) *State {
	b.t.Helper()
	late := time.After(time.Minute)
	for {
		c := b.d.Changed()
		if st := b.d.State(); ok(st) {
			return st
		}
		select {
		case <-c:
		case <-late:
			b.t.Fatalf("never: %s; the state is %+v", what, b.d.State())
		}
	}
}

func greedy(h *run.How) {
	h.Settings.Temperature, h.Settings.TopP, h.Settings.Effort = 0, 0, "low"
}

func (b *bench) ask(text string) session.ID {
	b.t.Helper()
	return must[session.ID](b.t)(b.d.Ask(b.t.Context(), Question{Text: text, Change: greedy}))
}

const story = "Tell me a story about a fox."

func TestAnswerIsPublishedAsItIsJournalled(t *testing.T) {
	b := start(t, t.TempDir())
	if id := b.ask("hello"); id != 0 {
		t.Errorf("the question was queued as %s", id)
	}
	st := b.until("the end", func(s *State) bool { return s.Answers == 1 })
	if st.Phase != Idle || st.Err != nil || st.Last.Status != session.Done || st.Think == 0 || len(st.Times) != len(st.Answer) || st.Rate(30) <= 0 || st.Thought <= 0 {
		t.Errorf("%+v", st)
	}
	var text strings.Builder
	for _, tok := range st.Answer {
		if tok.Channel == session.InAnswer {
			text.WriteString(tok.Text)
		}
	}
	if !strings.HasPrefix(text.String(), "Hello!") {
		t.Errorf("%q", text.String())
	}
	toks, status, err := b.s.Tokens(t.Context(), st.Thread, st.Turn, 0)
	if err != nil || status != session.Done || !slices.Equal(toks, st.Answer) {
		t.Errorf("journal: %v %s, %v", toks, status, err)
	}
	if layer, layers := b.d.Layer(); layers != 8 || layer > layers {
		t.Errorf("layer %d of %d", layer, layers)
	}
}

// TestStatesNeverChange: readers see only answers that grow, whatever they race.
func TestStatesNeverChange(t *testing.T) {
	b := start(t, t.TempDir())
	b.ask(story)
	var readers sync.WaitGroup
	for range 2 {
		readers.Go(func() {
			var seen []*State
			for st := b.d.State(); st.Answers == 0; st = b.d.State() {
				if n := len(seen); n == 0 || seen[n-1] != st {
					seen = append(seen, st)
				}
				<-b.d.Changed()
			}
			for i := 1; i < len(seen); i++ {
				old, st := seen[i-1], seen[i]
				if st.Change <= old.Change || len(st.Answer) < len(old.Answer) || !slices.Equal(old.Answer, st.Answer[:len(old.Answer)]) {
					t.Errorf("state %d with %d tokens after %d with %d", st.Change, len(st.Answer), old.Change, len(old.Answer))
				}
			}
		})
	}
	readers.Wait()
}

func TestPauseAndResumeGiveTheSameText(t *testing.T) {
	whole := start(t, t.TempDir())
	whole.ask(story)
	want := whole.until("the end", func(s *State) bool { return s.Answers == 1 }).Answer

	dir := t.TempDir()
	b := start(t, dir)
	if err := b.d.Pause(); !errors.Is(err, ErrNothing) {
		t.Errorf("pausing nothing: %v", err)
	}
	b.hold.Store(5)
	b.ask(story)
	b.until("five tokens", func(s *State) bool { return len(s.Answer) >= 5 })
	if err := b.d.Pause(); err != nil {
		t.Fatal(err)
	}
	b.release()
	st := b.until("a pause", func(s *State) bool { return s.Phase == Paused })
	if len(st.Answer) >= len(want) || st.Pausing || st.Last.Status != session.Paused {
		t.Fatalf("%+v", st)
	}
	// Another process goes on; it offers the answer and begins nothing by itself.
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b = start(t, dir)
	st2 := b.until("the offer", func(s *State) bool { return s.Phase == Paused })
	if st2.Turn != st.Turn || !slices.Equal(st2.Answer, st.Answer) || st2.Recovered {
		t.Errorf("offered %+v", st2)
	}
	if err := b.d.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	st = b.until("the end", func(s *State) bool { return s.Answers == 1 })
	if !slices.Equal(st.Answer, want) {
		t.Errorf("went on to other words: %v, want %v", st.Answer, want)
	}
	if err := b.d.Resume(t.Context()); !errors.Is(err, ErrNothing) {
		t.Errorf("resuming nothing: %v", err)
	}
}

func TestQueueFollowsAfterTheGap(t *testing.T) {
	b := start(t, t.TempDir())
	b.hold.Store(1)
	b.ask(story)
	b.until("a token", func(s *State) bool { return len(s.Answer) > 0 })
	if id := b.ask("hello"); id == 0 {
		t.Fatal("a question beside an answer was not queued")
	}
	b.release()
	var gap chan time.Time
	select {
	case gap = <-b.gaps:
	case <-time.After(time.Minute):
		t.Fatalf("no gap before the next question; the state is %+v", b.d.State())
	}
	if st := b.d.State(); st.Answers != 1 || st.Phase != Idle || st.Next.IsZero() {
		t.Errorf("in the gap: %+v", st)
	}
	b.skip.Store(int64(DefaultGap))
	gap <- time.Now()
	// A question that comes in the gap makes the Driver look, and wait, again.
	go func() {
		for c := range b.gaps {
			c <- time.Now()
		}
	}()
	st := b.until("the second answer", func(s *State) bool { return s.Answers == 2 })
	if items := must[[]session.QueueItem](t)(b.s.Queue(t.Context())); len(items) != 0 || st.Last.How.Settings.Effort != "low" {
		t.Errorf("queue %v, settings %+v", items, st.Last.How.Settings)
	}
}

// TestQuestionsAreNeverBetween: one that was taken from those that wait and is not
// answered yet counts as under way: the next one is queued, and Stop keeps both.
func TestQuestionsAreNeverBetween(t *testing.T) {
	s := must[*session.Store](t)(session.Open(t.Context(), filepath.Join(t.TempDir(), "data"), nil))
	d := New(s, nil, Options{})
	must[session.ID](t)(d.Ask(t.Context(), Question{Text: "first"}))
	j, pause, _, err := d.next(t.Context())
	if err != nil || j == nil || j.q.Text != "first" {
		t.Fatalf("%+v, %v", j, err)
	}
	if id := must[session.ID](t)(d.Enqueue(t.Context(), Question{Text: "second"})); id == 0 || d.flow {
		t.Errorf("queued as %s, the queue may begin: %t", id, d.flow)
	}
	if id := must[session.ID](t)(d.Ask(t.Context(), Question{Text: "third"})); id == 0 {
		t.Error("a question overtook the queue")
	}
	if err := d.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-pause:
	default:
		t.Error("Stop did not reach the question that was taken")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestQueueLeftBehindWaits(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	if _, err := b.s.Enqueue(t.Context(), session.QueueItem{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	b = start(t, dir)
	if st := b.d.State(); st.Phase != Idle || st.Answers != 0 {
		t.Errorf("%+v", st)
	}
	if err := b.d.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.until("its answer", func(s *State) bool { return s.Answers == 1 })
}

func TestBreakInComesFirst(t *testing.T) {
	b := start(t, t.TempDir())
	b.hold.Store(5)
	b.ask(story)
	st := b.until("five tokens", func(s *State) bool { return len(s.Answer) >= 5 })
	b.ask("what waits")
	thread, first := st.Thread, st.Turn
	if err := b.d.BreakIn(t.Context(), Question{Thread: thread, Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	b.release()
	b.until("the second answer", func(s *State) bool { return s.Answers == 1 && s.Thread == thread && s.Turn != first })
	th := must[*session.Thread](t)(b.s.Load(t.Context(), thread, session.LoadOptions{}))
	if len(th.Turns) != 4 || th.Turns[1].Status != session.Interrupted || th.Turns[3].Status != session.Done {
		t.Errorf("%+v", th.Turns)
	}
	if items := must[[]session.QueueItem](t)(b.s.Queue(t.Context())); len(items) != 1 {
		t.Errorf("the queue was touched: %v", items)
	}
}

func TestStopKeepsEverything(t *testing.T) {
	dir := t.TempDir()
	b := start(t, dir)
	b.hold.Store(5)
	b.ask(story)
	st := b.until("five tokens", func(s *State) bool { return len(s.Answer) >= 5 })
	if err := b.d.BreakIn(t.Context(), Question{Text: "kept"}); err != nil {
		t.Fatal(err)
	}
	if err := b.end(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.d.Ask(context.Background(), Question{Text: "late"}); !errors.Is(err, ErrStopping) {
		t.Errorf("a late question: %v", err)
	}
	b = start(t, dir)
	toks, status, err := b.s.Tokens(t.Context(), st.Thread, st.Turn, 0)
	if err != nil || len(toks) < 5 || status == session.Writing {
		t.Errorf("%d tokens, %s, %v", len(toks), status, err)
	}
}

func TestThreadHeldElsewhereIsToldAndRetried(t *testing.T) {
	b := start(t, t.TempDir())
	info := must[session.ThreadInfo](t)(b.s.Create(t.Context(), "", ""))
	w := must[*session.Writer](t)(b.s.Lock(t.Context(), info.ID))
	must[session.ID](t)(b.d.Ask(t.Context(), Question{Thread: info.ID, Text: "hello", Change: greedy}))
	st := b.until("the refusal", func(s *State) bool { return s.Phase == Stopped })
	if !errors.Is(st.Err, session.ErrLocked) {
		t.Errorf("%v", st.Err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	must[session.ID](t)(b.d.Ask(t.Context(), Question{Thread: info.ID, Text: "hello", Change: greedy}))
	b.until("the answer", func(s *State) bool { return s.Answers == 1 && s.Err == nil })
	if err := b.d.Regenerate(info.ID, st.Turn, nil); err != nil {
		t.Fatal(err)
	}
	if st := b.until("another refusal", func(s *State) bool { return s.Phase == Stopped }); !errors.Is(st.Err, session.ErrNotFound) {
		t.Errorf("answering no answer anew: %v", st.Err)
	}
}

package session

import (
	"errors"
	"math"
	"testing"
	"time"
)

func texts(items []QueueItem) (out []string) {
	for _, q := range items {
		out = append(out, q.Text)
	}
	return out
}

func TestQueueKeepsItsOrder(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	ctx := t.Context()
	ids := map[string]ID{}
	for _, text := range []string{"a", "b", "c", "d"} {
		ids[text] = must[ID](t)(s.Enqueue(ctx, QueueItem{Text: text}))
	}
	order := func() []string { return texts(must[[]QueueItem](t)(s.Queue(ctx))) }
	equal(t, order(), []string{"a", "b", "c", "d"})
	check(t, s.MoveQueued(ctx, ids["d"], 0))
	equal(t, order(), []string{"d", "a", "b", "c"})
	check(t, s.MoveQueued(ctx, ids["a"], 99))
	check(t, s.MoveQueued(ctx, ids["c"], -5))
	equal(t, order(), []string{"c", "d", "b", "a"})
	check(t, s.MoveQueued(ctx, ids["d"], 2))
	equal(t, order(), []string{"c", "b", "d", "a"})
	check(t, s.RemoveQueued(ctx, ids["b"]))
	items := must[[]QueueItem](t)(s.Queue(ctx))
	items[1].Text, items[1].Settings.Effort = "D", "high"
	check(t, s.EditQueued(ctx, items[1]))
	must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "e"}))
	check(t, s.Close())

	s = reopen(t, dir, nil) // survives a restart
	equal(t, order(), []string{"c", "D", "a", "e"})
	if got := must[[]QueueItem](t)(s.Queue(ctx))[1]; got.Settings.Effort != "high" || got.ID != ids["d"] {
		t.Errorf("edited item: %+v", got)
	}
	if id := must[ID](t)(s.FindQueued(ctx, ids["c"].String()[:15])); id != ids["c"] {
		t.Errorf("found %s", id)
	}
	for name, err := range map[string]error{
		"removing twice":      s.RemoveQueued(ctx, ids["b"]),
		"moving what is gone": s.MoveQueued(ctx, ids["b"], 0),
		"editing it":          s.EditQueued(ctx, QueueItem{ID: ids["b"], Text: "x"}),
		"taking it":           third(s.TakeQueued(ctx, ids["b"])),
		"an unknown thread":   second(s.Enqueue(ctx, QueueItem{Text: "x", Thread: 9})),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := s.Enqueue(ctx, QueueItem{Text: " \n"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty question: %v", err)
	}
}

func TestHeldQuestionsWait(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	noon := time.Date(2026, 5, 5, 12, 0, 0, 0, time.UTC)
	if _, ok, wake, err := s.NextQueued(ctx, noon); ok || !wake.IsZero() || err != nil {
		t.Errorf("an empty queue: %v %v %v", ok, wake, err)
	}
	must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "tonight", Hold: noon.Add(10 * time.Hour)}))
	must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "later", Hold: noon.Add(2 * time.Hour)}))
	if _, ok, wake, err := s.NextQueued(ctx, noon); ok || !wake.Equal(noon.Add(2*time.Hour)) || err != nil {
		t.Errorf("all held: %v %v %v", ok, wake, err)
	}
	must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "now"}))
	for _, c := range []struct {
		at   time.Time
		want string
	}{
		{noon, "now"},
		{noon.Add(2 * time.Hour), "later"},
		{noon.Add(11 * time.Hour), "tonight"}, // first in the order, once it may
		{noon.Add(-24 * time.Hour), "now"},    // a clock set back
	} {
		if q, ok, _, err := s.NextQueued(ctx, c.at); !ok || err != nil || q.Text != c.want {
			t.Errorf("at %v: %q %v %v, want %q", c.at, q.Text, ok, err, c.want)
		}
	}
}

func TestTakingAQuestion(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	src := Source{Hash: "h", Name: "n"}
	id := must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "a new thread", Folder: "/f", Sources: []Source{src}}))
	w, turn, err := s.TakeQueued(ctx, id)
	check(t, err)
	th := must[*Thread](t)(s.Load(ctx, w.Thread(), LoadOptions{Bodies: true}))
	if th.Title != "a new thread" || th.Folder != "/f" || len(th.Turns) != 1 || th.Turns[0].ID != turn || th.Turns[0].Sources[0] != src {
		t.Errorf("%+v", th)
	}
	if n := len(must[[]QueueItem](t)(s.Queue(ctx))); n != 0 {
		t.Errorf("%d left", n)
	}
	// A second one for the same thread must wait for its writer, and stays.
	id = must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "more", Thread: w.Thread()}))
	if _, _, err := s.TakeQueued(ctx, id); !errors.Is(err, ErrLocked) {
		t.Errorf("taking for a locked thread: %v", err)
	}
	check(t, w.Close())
	w2, _, err := s.TakeQueued(ctx, id)
	check(t, err)
	if w2.Thread() != w.Thread() {
		t.Error("went to another thread")
	}
	check(t, w2.Close())
	if n := len(must[[]ThreadInfo](t)(s.List(ctx, ListOptions{}))); n != 1 {
		t.Errorf("%d threads", n)
	}
}

// TestAQuestionIsTakenOnce: an end between the two steps of taking a question
// leaves it in the queue, bound to its thread, and no second thread appears.
func TestAQuestionIsTakenOnce(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	other := reopen(t, dir, nil)
	ctx := t.Context()
	id := must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "q"}))
	// Holding every lock the new thread may get makes the second step fail.
	for key := int64(1); key < 5; key++ {
		if ok, err := other.locks.acquire(key); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	if _, _, err := s.TakeQueued(ctx, id); !errors.Is(err, ErrLocked) {
		t.Fatalf("%v", err)
	}
	for key := int64(1); key < 5; key++ {
		check(t, other.locks.release(key))
	}
	items := must[[]QueueItem](t)(s.Queue(ctx))
	if len(items) != 1 || items[0].Thread == 0 {
		t.Fatalf("%+v", items)
	}
	w, _, err := s.TakeQueued(ctx, id)
	check(t, err)
	if w.Thread() != items[0].Thread {
		t.Error("went to another thread")
	}
	check(t, w.Close())
	if n := len(must[[]ThreadInfo](t)(s.List(ctx, ListOptions{}))); n != 1 {
		t.Errorf("%d threads", n)
	}
}

func TestEstimates(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	if _, err := s.Estimate(ctx, Work{Fingerprint: "f", Prompt: 10}); !errors.Is(err, ErrNoData) {
		t.Fatalf("nothing measured: %v", err)
	}
	id, w := newThread(t, s)
	// Prefill takes 100 s and 10 ms a token; decoding 1 s a token; answers of
	// 100 to 300 tokens.
	for i := range 11 {
		say(t, w, "q")
		a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{Settings: Settings{Fingerprint: "f", Effort: "low"}, Seed: uint64(i)}))
		n, p := 100+20*i, 500+300*i
		for range n {
			must[int](t)(a.Append(ctx, Token{ID: 5, Channel: InAnswer, Text: "x"}))
		}
		check(t, a.Finish(ctx, Outcome{Status: Done, Timing: Timing{
			Prefill: p, PrefillT: 100*time.Second + time.Duration(p)*10*time.Millisecond,
			Decode: n, DecodeT: time.Duration(n) * time.Second,
		}}))
	}
	e, err := s.Estimate(ctx, Work{Fingerprint: "f", Effort: "low", Prompt: 1000})
	check(t, err)
	near := func(name string, got time.Duration, want float64) {
		t.Helper()
		if math.Abs(got.Seconds()-want) > 0.01*want {
			t.Errorf("%s: %v, want %v s", name, got, want)
		}
	}
	near("prefill", e.Prefill, 110)
	near("decode", e.Decode, 200)
	near("low", e.Low, 110+120)
	near("likely", e.Likely, 310)
	near("high", e.High, 110+280)
	if e.Runs != 11 {
		t.Errorf("rests on %d runs", e.Runs)
	}
	if _, err := s.Estimate(ctx, Work{Fingerprint: "other", Prompt: 1}); !errors.Is(err, ErrNoData) {
		t.Errorf("other weights: %v", err)
	}
	// A question in the thread reads the whole thread, unless a snapshot has it.
	must[ID](t)(s.Enqueue(ctx, QueueItem{Text: "more", Thread: id, Tokens: 100, Settings: Settings{Effort: "low"}}))
	_, est, err := s.EstimateQueue(ctx, "f")
	check(t, err)
	near("queued, no snapshot", est[0].Prefill, 100+(100+2200)*0.01)
	must[ID](t)(s.AddSnapshot(ctx, SnapshotInfo{Path: "p", Thread: id, Bytes: 1, Fingerprint: "f"}, make([]int32, 2200)))
	_, est, err = s.EstimateQueue(ctx, "f")
	check(t, err)
	near("queued, with a snapshot", est[0].Prefill, 101)
	if _, est, err = s.EstimateQueue(ctx, "other"); err != nil || est[0] != (Estimate{}) {
		t.Errorf("unknown weights: %v %v", est, err)
	}
}

func TestFit(t *testing.T) {
	for _, c := range []struct {
		name        string
		in          []sample
		fixed, each float64
	}{
		{"none", nil, 0, 0},
		{"one", []sample{{10, 50}}, 0, 5},
		{"a line", []sample{{1, 12}, {2, 14}, {5, 20}}, 10, 2},
		{"negative start", []sample{{1, 1}, {10, 100}}, 0, 101.0 / 11},
		{"falling", []sample{{1, 30}, {3, 10}}, 20, 0},
	} {
		l := fit(c.in)
		if math.Abs(l.fixed-c.fixed) > 1e-6 || math.Abs(l.each-c.each) > 1e-6 {
			t.Errorf("%s: %+v, want %v %v", c.name, l, c.fixed, c.each)
		}
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 2.5, 1: 4, 0.1: 1.3} {
		if got := quantile([]float64{4, 2, 1, 3}, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile %v = %v, want %v", q, got, want)
		}
	}
}

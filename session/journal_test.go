package session

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestSlowTokensAreDurableAtOnce(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := reopen(t, dir, nil)
		info := must[ThreadInfo](t)(s.Create(t.Context(), "", ""))
		w := must[*Writer](t)(s.Lock(t.Context(), info.ID))
		say(t, w, "?")
		a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{}))
		for i := range 20 {
			<-time.After(50 * time.Millisecond)
			n := must[int](t)(a.Append(t.Context(), Token{ID: int32(i), Channel: InAnswer, Text: "x"}))
			if n != i+1 {
				t.Fatalf("token %d: %d durable", i, n)
			}
		}
		check(t, a.Finish(t.Context(), Outcome{Status: Done}))
		check(t, w.Close())
		check(t, s.Close())
	})
}

// TestFastTokensShareSyncs: within a group's time tokens wait, never longer, and
// also when no further token comes.
func TestFastTokensShareSyncs(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		s := reopen(t, dir, nil)
		info := must[ThreadInfo](t)(s.Create(t.Context(), "", ""))
		w := must[*Writer](t)(s.Lock(t.Context(), info.ID))
		say(t, w, "?")
		var told []int
		a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{Durable: func(n int) { told = append(told, n) }}))
		for i := range 100 { // one each 10 ms
			before := a.Durable()
			n := must[int](t)(a.Append(t.Context(), Token{ID: int32(i), Channel: InAnswer, Text: "x"}))
			if n < before || i+1-n > 5 {
				t.Fatalf("token %d: %d durable, %d before; at most 5 may wait", i, n, before)
			}
			<-time.After(10 * time.Millisecond)
			synctest.Wait()
		}
		if len(told) < 16 || len(told) > 26 {
			t.Errorf("a second of tokens took %d syncs, want about 20: %v", len(told), told)
		}
		<-time.After(50 * time.Millisecond)
		synctest.Wait()
		if n := a.Durable(); n != 100 {
			t.Errorf("50 ms after the last token %d of 100 are durable", n)
		}
		must[int](t)(a.Append(t.Context(), Token{ID: 1, Channel: InAnswer, Text: "y"}))
		must[int](t)(a.Append(t.Context(), Token{ID: 2, Channel: InAnswer, Text: "z"}))
		if n := must[int](t)(a.Sync(t.Context())); n != 102 {
			t.Errorf("after Sync %d are durable", n)
		}
		check(t, a.Finish(t.Context(), Outcome{Status: Done}))
		if _, err := a.Append(t.Context(), Token{}); !errors.Is(err, ErrClosed) {
			t.Errorf("Append after Finish: %v", err)
		}
		check(t, w.Close())
		check(t, s.Close())
	})
}

func TestTokensAreChecked(t *testing.T) {
	s := newStore(t, nil)
	_, w := newThread(t, s)
	a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{}))
	for _, bad := range []Token{{ID: -1}, {ID: 1, Channel: 3}, {ID: 1, Channel: InMarkup, Text: "<x>"}} {
		if _, err := a.Append(t.Context(), bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	if err := a.Finish(t.Context(), Outcome{Status: Writing}); !errors.Is(err, ErrInvalid) {
		t.Errorf("finished as %q: %v", Writing, err)
	}
	check(t, a.Finish(t.Context(), Outcome{Status: Done}))
}

// TestPauseAndContinue: an answer in several runs is one text, and each run's
// cost is kept.
func TestPauseAndContinue(t *testing.T) {
	s := newStore(t, nil)
	id, w := newThread(t, s)
	say(t, w, "?")
	ctx := t.Context()
	a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{Seed: 3}))
	turn := a.Turn()
	n := 0
	for run := range 3 {
		for range 5 {
			n++
			must[int](t)(a.Append(ctx, Token{ID: int32(n), Channel: InAnswer, Text: fmt.Sprint(n, " ")}))
		}
		check(t, a.Finish(ctx, Outcome{Status: Paused, Timing: Timing{Decode: 5, DecodeT: time.Duration(run+1) * time.Second}}))
		if run < 2 {
			a = must[*Answer](t)(w.Continue(ctx, turn, AnswerOptions{Seed: 3}))
			if a.Turn() != turn || a.Durable() != n {
				t.Fatalf("run %d continues turn %s at %d", run, a.Turn(), a.Durable())
			}
		}
	}
	th := must[*Thread](t)(s.Load(ctx, id, LoadOptions{Bodies: true}))
	got := th.Turns[1]
	if got.Body.Text != "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 " || got.Status != Paused || !got.Ended.IsZero() || len(got.Timings) != 3 || th.Tokens != 15 {
		t.Errorf("%+v\n%+v", got, got.Body)
	}
	if got.Timings[2].DecodeT != 3*time.Second {
		t.Errorf("timings %+v", got.Timings)
	}
	// A new question ends it as it is.
	say(t, w, "and?")
	th = must[*Thread](t)(s.Load(ctx, id, LoadOptions{}))
	if th.Turns[1].Status != Interrupted || th.Turns[2].Parent != turn {
		t.Errorf("after a question: %+v", th.Turns)
	}
	if _, err := w.Continue(ctx, turn, AnswerOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("continuing an answer with followers: %v", err)
	}
	sound(t, s)
}

func TestOneAnswerAtATime(t *testing.T) {
	s := newStore(t, nil)
	_, w := newThread(t, s)
	a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{}))
	if _, err := w.Begin(t.Context(), AnswerOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second answer: %v", err)
	}
	if _, err := w.Append(t.Context(), "", NewTurn{Role: User, Text: "x"}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a question during an answer: %v", err)
	}
	check(t, a.Finish(t.Context(), Outcome{Status: Interrupted}))
	say(t, w, "x")
}

// TestClosingPauses: the writer's end in the middle of an answer keeps every
// token, durable or not.
func TestClosingPauses(t *testing.T) {
	s := newStore(t, &Options{Group: time.Hour})
	id, w := newThread(t, s)
	a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{}))
	for range 9 {
		must[int](t)(a.Append(t.Context(), Token{ID: 1, Channel: InAnswer, Text: "x"}))
	}
	if n := a.Durable(); n == 9 {
		t.Fatal("the test wants tokens that wait")
	}
	check(t, w.Close())
	th := must[*Thread](t)(s.Load(t.Context(), id, LoadOptions{Bodies: true}))
	if len(th.Turns[0].Body.Tokens) != 9 || th.Turns[0].Status != Paused {
		t.Errorf("%+v", th.Turns[0])
	}
	if w := lock(t, s, id); w.Recovered() != nil {
		t.Errorf("a proper end was taken for a crash: %v", w.Recovered())
	}
}

func TestClosingTheStoreKeepsForgottenAnswers(t *testing.T) {
	dir := t.TempDir()
	s := must[*Store](t)(Open(t.Context(), dir, &Options{Group: time.Hour}))
	info := must[ThreadInfo](t)(s.Create(t.Context(), "", ""))
	w := must[*Writer](t)(s.Lock(t.Context(), info.ID))
	a := must[*Answer](t)(w.Begin(t.Context(), AnswerOptions{}))
	for range 4 {
		must[int](t)(a.Append(t.Context(), Token{ID: 1, Channel: InAnswer, Text: "x"}))
	}
	if err := s.Close(); err == nil {
		t.Error("Close with an open answer says nothing")
	}
	s = reopen(t, dir, nil)
	w = lock(t, s, info.ID)
	if r := w.Recovered(); r == nil || r.Tokens != 4 || r.Turn != a.Turn() {
		t.Errorf("recovered %+v", r)
	}
}

func TestFollowingFromElsewhere(t *testing.T) {
	dir := t.TempDir()
	s, other := reopen(t, dir, nil), reopen(t, dir, nil)
	id, w := newThread(t, s)
	ctx := t.Context()
	a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{}))
	if o, held, err := other.Holder(ctx, id); err != nil || !held || o.PID == 0 {
		t.Errorf("holder %v %v %v", o, held, err)
	}
	seen := 0
	for i := range 10 {
		must[int](t)(a.Append(ctx, Token{ID: int32(i), Channel: InAnswer, Text: "x"}))
		must[int](t)(a.Sync(ctx))
		toks, status, err := other.Tokens(ctx, id, a.Turn(), seen)
		if err != nil || len(toks) != 1 || toks[0].ID != int32(i) || status != Writing {
			t.Fatalf("step %d: %v %v %v", i, toks, status, err)
		}
		seen++
	}
	check(t, a.Finish(ctx, Outcome{Status: Done}))
	if toks, status, err := other.Tokens(ctx, id, a.Turn(), 7); err != nil || len(toks) != 3 || status != Done {
		t.Errorf("after the end: %v %v %v", toks, status, err)
	}
	check(t, w.Close())
	if _, held, err := other.Holder(ctx, id); err != nil || held {
		t.Errorf("still held: %v %v", held, err)
	}
}

func TestTwoWriters(t *testing.T) {
	dir := t.TempDir()
	now := time.Date(2026, 3, 1, 9, 14, 0, 0, time.Local)
	s := reopen(t, dir, &Options{TTY: "pts/2", Now: func() time.Time { return now }})
	other := reopen(t, dir, nil)
	id, w := newThread(t, s)
	for name, st := range map[string]*Store{"the same store": s, "another store": other} {
		_, err := st.Lock(t.Context(), id)
		var locked *LockedError
		if !errors.As(err, &locked) || !errors.Is(err, ErrLocked) || locked.Owner.TTY != "pts/2" || !locked.Owner.Started.Equal(now) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := other.Trash(t.Context(), id); !errors.Is(err, ErrLocked) {
		t.Errorf("trashing a thread being written: %v", err)
	}
	// Other threads are free, and this one when its writer has closed.
	free := must[ThreadInfo](t)(other.Create(t.Context(), "", ""))
	lock(t, other, free.ID)
	check(t, w.Close())
	if _, err := w.Append(t.Context(), "", NewTurn{Role: User, Text: "x"}); !errors.Is(err, ErrClosed) {
		t.Errorf("writing after Close: %v", err)
	}
	w2 := must[*Writer](t)(other.Lock(t.Context(), id))
	check(t, w2.Close())
}

func BenchmarkAppendSynced(b *testing.B) {
	s := newStore(b, &Options{Group: -1})
	info := must[ThreadInfo](b)(s.Create(b.Context(), "", ""))
	w := must[*Writer](b)(s.Lock(b.Context(), info.ID))
	a := must[*Answer](b)(w.Begin(b.Context(), AnswerOptions{}))
	var n atomic.Int32
	for b.Loop() {
		if _, err := a.Append(b.Context(), Token{ID: n.Add(1), Channel: InAnswer, Text: "word "}); err != nil {
			b.Fatal(err)
		}
	}
	check(b, a.Finish(b.Context(), Outcome{Status: Done}))
	check(b, w.Close())
}

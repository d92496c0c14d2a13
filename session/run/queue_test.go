package run

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"deltafin/session"
)

// queued puts a question into the queue.
func (b *bench) queued(text string, thread session.ID, hold time.Time) session.ID {
	b.t.Helper()
	set := b.greedy().Settings
	set.MaxTokens = 30
	return must[session.ID](b.t)(b.s.Enqueue(b.t.Context(), session.QueueItem{Text: text, Thread: thread, Settings: set, Hold: hold}))
}

// asked records what a run of the queue answers.
type asked struct {
	questions []string
	results   []Result
	errs      []error
}

func (a *asked) options(b *bench) QueueOptions {
	return QueueOptions{
		Start: func(_ session.ID, _ session.Settings, q string) Listener {
			a.questions = append(a.questions, q)
			return b.listener()
		},
		Done: func(res Result, err error) { a.results, a.errs = append(a.results, res), append(a.errs, err) },
	}
}

// TestQueueOrderAndHolds: in order, held ones at their time by the given clock,
// and no earlier; new ones of other processes are found while it waits.
func TestQueueOrderAndHolds(t *testing.T) {
	now := time.Unix(1e9, 0)
	var b *bench
	waits := 0
	var waited []time.Duration
	opt := Options{Now: func() time.Time { return now }, After: func(d time.Duration) <-chan time.Time {
		waited = append(waited, d)
		now = now.Add(d)
		if waits++; waits == 1 {
			b.queued("late", 0, time.Time{})
		}
		c := make(chan time.Time, 1)
		c <- now
		return c
	}}
	b = newBench(t, opt)
	b.queued("tonight", 0, now.Add(90*time.Second))
	b.queued("first", 0, time.Time{})
	second := b.queued("second", 0, time.Time{})
	b.queued("third", 0, time.Time{})
	check(t, b.s.MoveQueued(t.Context(), second, 3))
	var a asked
	res := must[QueueResult](t)(b.r.RunQueue(t.Context(), a.options(b)))
	if !slices.Equal(a.questions, []string{"first", "third", "second"}) || res.Answered != 3 || waits != 0 {
		t.Errorf("%v %+v", a.questions, res)
	}
	q := a.options(b)
	q.Wait = true
	res = must[QueueResult](t)(b.r.RunQueue(t.Context(), q))
	if !slices.Equal(a.questions[3:], []string{"late", "tonight"}) || res.Answered != 2 {
		t.Errorf("%v %+v", a.questions, res)
	}
	if !slices.Equal(waited, []time.Duration{time.Minute, 30 * time.Second}) {
		t.Errorf("waited %v", waited)
	}
	if est, err := b.s.Estimate(t.Context(), session.Work{Fingerprint: b.r.info.Fingerprint, Effort: "low", Prompt: 90}); err != nil || est.Likely <= 0 || est.Runs != 5 {
		t.Errorf("%+v %v", est, err)
	}
}

// TestQueueGoesOnAfterARestart: with the answer that a pause or the end of the
// process cut short, before anything else.
func TestQueueGoesOnAfterARestart(t *testing.T) {
	b := newBench(t, Options{})
	b.queued("Tell me a story about a fox.", 0, time.Time{})
	b.queued("hello", 0, time.Time{})
	mine := b.thread() // paused by a person: the queue leaves it alone
	w := b.lock(mine)
	closed := make(chan struct{})
	close(closed)
	must[Result](t)(b.r.Ask(t.Context(), w, user("hello"), b.greedy(), Request{Pause: closed}, Listener{}))
	check(t, w.Close())

	var a asked
	pause := make(chan struct{})
	q := a.options(b)
	start := q.Start
	q.Start = func(id session.ID, set session.Settings, text string) Listener {
		l := start(id, set, text)
		token := l.Token
		l.Token = func(tok Token) {
			token(tok)
			if tok.Index == 7 {
				close(pause)
			}
		}
		return l
	}
	q.Pause = pause
	res := must[QueueResult](t)(b.r.RunQueue(t.Context(), q))
	if !res.Paused || len(a.results) != 1 || a.results[0].Stop != StopQueue {
		t.Fatalf("%+v %+v", res, a.results)
	}
	b.again(Options{})
	res = must[QueueResult](t)(b.r.RunQueue(t.Context(), a.options(b)))
	if !slices.Equal(a.questions[1:], []string{"", "hello"}) || res.Answered != 2 || a.results[1].Thread != a.results[0].Thread || a.results[1].Tokens != 30 {
		t.Errorf("%q %+v %+v", a.questions, res, a.results)
	}
	// A process that died: its answer is open and nobody holds the thread.
	id := b.thread()
	w = b.lock(id)
	must[session.ID](t)(w.Append(t.Context(), "", user("hello")))
	how := b.greedy()
	how.Settings.Fingerprint, how.Settings.KernelSet = b.r.info.Fingerprint, b.r.info.Arithmetic
	must[*session.Answer](t)(w.Begin(t.Context(), session.AnswerOptions{Settings: how.Settings}))
	err := b.s.Close() // without Writer.Close: as if killed
	if err == nil {
		t.Error("a forgotten answer was not told")
	}
	b.s = must[*session.Store](t)(session.Open(t.Context(), b.dir+"/data", &session.Options{Group: -1}))
	b.r = must[*Runner](t)(New(b.s, b.e, Options{Snapshots: b.dir + "/snapshots"}))
	a = asked{}
	res = must[QueueResult](t)(b.r.RunQueue(t.Context(), a.options(b)))
	if res.Answered != 1 || a.results[0].Thread != id || a.results[0].Status != session.Done {
		t.Errorf("%+v %+v", res, a.results)
	}
}

// TestQueueSkipsWhatItCannot: a held thread, a question that does not fit. The
// rest goes on.
func TestQueueSkipsWhatItCannot(t *testing.T) {
	b := newBench(t, Options{})
	held := b.thread()
	w := b.lock(held)
	b.queued("in a held thread", held, time.Time{})
	b.queued(strings.Repeat("word ", b.r.info.Config.MaxContext), 0, time.Time{})
	b.queued("hello", 0, time.Time{})
	var a asked
	res := must[QueueResult](t)(b.r.RunQueue(t.Context(), a.options(b)))
	if res.Answered != 1 || res.Failed != 1 || res.Skipped != 1 || len(a.errs) != 2 || a.errs[0] == nil || a.errs[1] != nil {
		t.Errorf("%+v %v", res, a.errs)
	}
	th := must[*session.Thread](t)(b.s.Load(t.Context(), a.results[0].Thread, session.LoadOptions{}))
	if n := len(th.Events); n == 0 || th.Events[n-1].Kind != NoticeError {
		t.Errorf("events %v", th.Events)
	}
	check(t, w.Close())
	if res = must[QueueResult](t)(b.r.RunQueue(t.Context(), a.options(b))); res.Answered != 1 || res.Skipped != 0 {
		t.Errorf("%+v", res)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("enough")
	cancel(cause)
	b.queued("hello", 0, time.Now().Add(time.Hour))
	q := a.options(b)
	q.Wait = true
	if _, err := b.r.RunQueue(ctx, q); err == nil {
		t.Error("a cancelled queue ended without an error")
	}
}

package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deltafin/engine"
	"deltafin/session"
)

// QueueOptions say how the queue runs.
type QueueOptions struct {
	// Wait stays until held questions may start, and looks for new ones
	// meanwhile. Without it the run ends when nothing may start now.
	Wait bool
	// Pause, once closed, pauses the answer under way and ends the run. The next
	// one goes on with that answer first.
	Pause <-chan struct{}
	// OtherModel is Request.OtherModel for every answer.
	OtherModel bool
	// Start is called before every answer and returns who listens to it. question
	// is empty for an answer that goes on.
	Start func(thread session.ID, set session.Settings, question string) Listener
	// Done is called after every answer. An error is of this question alone: the
	// queue goes on with the next one.
	Done func(Result, error)
	// Idle is called before waiting, with the time of the next held question, zero
	// when only threads that others write are waited for.
	Idle func(wake time.Time)
}

// A QueueResult is what a run of the queue did.
type QueueResult struct {
	Answered int // finished answers
	Failed   int // questions that could not be answered; their threads say why
	Skipped  int // left in the queue because another process writes their thread
	Paused   bool
}

// lookAgain is how often a waiting queue looks for questions that other
// processes put there.
const lookAgain = time.Minute

// RunQueue answers the questions of the queue in their order. First it goes on
// with answers that a crash or a pause of the queue cut short. It ends when
// nothing is left that may start, when it is paused, or with an error that would
// stop any question: a full disk, a lost drive, a closed engine.
func (r *Runner) RunQueue(ctx context.Context, opt QueueOptions) (QueueResult, error) {
	q := queueRun{r: r, opt: opt, skip: map[session.ID]bool{}}
	if err := q.unfinished(ctx); err != nil || q.res.Paused {
		return q.res, err
	}
	for {
		if q.req().paused() {
			q.res.Paused = true
			return q.res, nil
		}
		item, wake, err := q.next(ctx)
		if err != nil {
			return q.res, err
		}
		switch {
		case item != nil:
			if err := q.take(ctx, item); err != nil || q.res.Paused {
				return q.res, err
			}
		case !opt.Wait || wake.IsZero() && len(q.skip) == 0:
			return q.res, nil
		default:
			clear(q.skip) // their threads may be free by then
			q.res.Skipped = 0
			if opt.Idle != nil {
				opt.Idle(wake)
			}
			select {
			case <-r.opt.After(q.pauseUntil(wake)):
			case <-opt.Pause:
			case <-ctx.Done():
				return q.res, context.Cause(ctx)
			}
		}
	}
}

// pauseUntil is how long to wait: until the time wake (zero: none is known), but
// never longer than it takes to look for what others have queued.
func (q *queueRun) pauseUntil(wake time.Time) time.Duration {
	if wake.IsZero() {
		return lookAgain
	}
	return min(max(wake.Sub(q.r.opt.Now()), 0), lookAgain)
}

// A queueRun is one RunQueue.
type queueRun struct {
	r    *Runner
	opt  QueueOptions
	res  QueueResult
	skip map[session.ID]bool // items whose thread was held when their turn came
}

func (q *queueRun) req() *Request {
	return &Request{Pause: q.opt.Pause, OtherModel: q.opt.OtherModel, why: StopQueue}
}

// next returns the first question that may start now, else when the first held
// one may.
func (q *queueRun) next(ctx context.Context) (item *session.QueueItem, wake time.Time, err error) {
	items, err := q.r.store.Queue(ctx)
	if err != nil {
		return nil, wake, err
	}
	now := q.r.opt.Now()
	for i := range items {
		switch hold := items[i].Hold; {
		case q.skip[items[i].ID]:
		case !hold.After(now):
			return &items[i], wake, nil
		case wake.IsZero() || hold.Before(wake):
			wake = hold
		}
	}
	return nil, wake, nil
}

// take moves a question from the queue to its thread and answers it.
func (q *queueRun) take(ctx context.Context, item *session.QueueItem) error {
	w, _, err := q.r.store.TakeQueued(ctx, item.ID)
	switch {
	case errors.Is(err, session.ErrLocked):
		q.skip[item.ID] = true
		q.res.Skipped++
		return nil
	case errors.Is(err, session.ErrNotFound):
		return nil // another process took or removed it
	case err != nil:
		return err
	}
	set := item.Settings
	if set == (session.Settings{}) {
		set = q.r.Defaults()
	}
	return q.answer(ctx, w, set, item.Text, func(l Listener) (Result, error) {
		return q.r.Answer(ctx, w, How{Settings: set}, *q.req(), l)
	})
}

// answer runs one answer and closes the writer.
func (q *queueRun) answer(ctx context.Context, w *session.Writer, set session.Settings, question string, run func(Listener) (Result, error)) error {
	var l Listener
	if q.opt.Start != nil {
		l = q.opt.Start(w.Thread(), set, question)
	}
	res, err := run(l)
	if err != nil && res.Turn == 0 {
		// Nothing of it is in the thread yet.
		text := fmt.Sprintf("the question could not be answered: %v", err)
		err = errors.Join(err, q.r.store.AddEvent(context.WithoutCancel(ctx), w.Thread(), 0, NoticeError, text))
	}
	if cerr := w.Close(); cerr != nil && !errors.Is(err, session.ErrFull) {
		err = errors.Join(err, cerr)
	}
	if q.opt.Done != nil {
		q.opt.Done(res, err)
	}
	switch {
	case err == nil && res.Status == session.Paused:
		q.res.Paused = true
	case err == nil:
		q.res.Answered++
	case ofTheQuestion(err):
		q.res.Failed++
	default:
		return err
	}
	return nil
}

// ofTheQuestion reports whether an error concerns one question alone.
func ofTheQuestion(err error) bool {
	var long *engine.ContextError
	var use *engine.UsageError
	var model *ModelError
	return errors.As(err, &long) || errors.As(err, &use) || errors.As(err, &model) ||
		errors.Is(err, ErrOtherTokens) || errors.Is(err, ErrOtherTrunk) || errors.Is(err, session.ErrCorrupt)
}

// unfinished goes on with answers that were cut short: those whose process ended
// without a word, and those that the queue itself paused. What a person paused
// waits for that person.
func (q *queueRun) unfinished(ctx context.Context) error {
	threads, err := q.r.store.Unfinished(ctx)
	if err != nil {
		return err
	}
	for _, info := range threads {
		cut, err := q.cutShort(ctx, info)
		if err != nil {
			return err
		}
		if !cut {
			continue
		}
		w, err := q.r.store.Lock(ctx, info.ID)
		if errors.Is(err, session.ErrLocked) {
			continue
		}
		if err != nil {
			return err
		}
		err = q.answer(ctx, w, info.Settings, "", func(l Listener) (Result, error) { return q.r.Continue(ctx, w, 0, *q.req(), l) })
		if err != nil || q.res.Paused {
			return err
		}
	}
	return nil
}

// cutShort reports whether the answer at the end of a thread's branch is one to
// go on with.
func (q *queueRun) cutShort(ctx context.Context, info session.ThreadInfo) (bool, error) {
	th, err := q.r.store.Load(ctx, info.ID, session.LoadOptions{})
	if err != nil {
		return false, err
	}
	b, err := th.FindBranch("")
	if err != nil {
		return false, err
	}
	t := th.Turn(b.Leaf)
	return t != nil && t.Role == session.Assistant && (t.Status == session.Writing || t.Status == session.Paused && t.Stop == StopQueue), nil
}

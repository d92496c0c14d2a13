package run

import (
	"context"
	"errors"
	"fmt"

	"deltafin/engine"
	"deltafin/session"
)

// How says how an answer is to be made. Together with the conversation before
// it, it determines the text.
type How struct {
	// Settings are stored with the answer. Model, Fingerprint and KernelSet are
	// filled in; MaxTokens 0 means until the model ends or the context is full.
	Settings session.Settings
	Seed     uint64
}

// A Request says what goes for every kind of run.
type Request struct {
	// Branch to work on; "" is the one used last.
	Branch string
	// Pause, once closed, stops the run after the token or the pass of the prompt
	// in hand. It can be continued. To break in, pause and Ask.
	Pause <-chan struct{}
	// OtherModel goes on although the thread was made with other weights.
	OtherModel bool

	why string // Outcome.Stop of a pause; "pause" when empty
}

func (req *Request) paused() bool {
	select {
	case <-req.Pause:
		return true
	default:
		return false
	}
}

// A Result is what became of an answer.
type Result struct {
	Thread, Turn session.ID // Turn is zero when there was no answer yet
	Status       session.Status
	Stop         string         // why it ended: one of the Stop constants
	Tokens       int            // of the answer, all runs together
	Prompt       []int          // ids before it
	Timing       session.Timing // of this run
	How          How            // it was made; of a continued answer, what was stored
}

// Why an answer ended: session.Outcome.Stop.
const (
	StopEnd       = "end"       // the model ended its message
	StopLength    = "length"    // Settings.MaxTokens were generated
	StopContext   = "context"   // the model's context is full
	StopPause     = "pause"     // Request.Pause
	StopQueue     = "queue"     // the same, while the queue ran: the queue goes on with it
	StopCancelled = "cancelled" // the context of the call ended
	StopFull      = "full"      // the disk with the threads is full
	StopError     = "error"     // an error; an event says which
)

// Ask appends a question to a branch and answers it. A paused answer at the end
// of the branch becomes interrupted: the conversation goes on after what there
// is of it. A question that does not fit the model's context is refused before
// it is stored.
func (r *Runner) Ask(ctx context.Context, w *session.Writer, question session.NewTurn, how How, req Request, l Listener) (Result, error) {
	j, err := r.begin(ctx, w, how, req, l)
	if err != nil {
		return Result{Thread: w.Thread()}, err
	}
	defer r.release()
	if err := j.load(ctx, nil); err != nil {
		return j.res, err
	}
	if question.Prompt == nil {
		ids, err := r.message(question.Role, question.Text)
		if err != nil {
			return j.res, err
		}
		question.Prompt = int32s(append(j.p.closing, ids...))
	}
	j.p.ids = append(j.p.ids, ints(question.Prompt)...)
	if err := j.ready(ctx); err != nil {
		return j.res, err
	}
	if _, err := w.Append(ctx, req.Branch, question); err != nil {
		return j.res, err
	}
	return j.answer(ctx, func(opt session.AnswerOptions) (*session.Answer, error) { return w.Begin(ctx, opt) })
}

// Answer answers the question at the end of a branch, one that the queue put
// there or that a crash left without an answer.
func (r *Runner) Answer(ctx context.Context, w *session.Writer, how How, req Request, l Listener) (Result, error) {
	j, err := r.begin(ctx, w, how, req, l)
	if err != nil {
		return Result{Thread: w.Thread()}, err
	}
	defer r.release()
	if err := j.load(ctx, nil); err != nil {
		return j.res, err
	}
	if n := len(j.path); n == 0 || j.path[n-1].Role == session.Assistant {
		return j.res, fmt.Errorf("thread %s: %w: no question waits at the end of branch %q", w.Thread().Short(), ErrNothing, j.branch.Name)
	}
	if err := j.ready(ctx); err != nil {
		return j.res, err
	}
	return j.answer(ctx, func(opt session.AnswerOptions) (*session.Answer, error) { return w.Begin(ctx, opt) })
}

// Continue goes on with the answer at the end of a branch, at the token where it
// stopped, with the settings and the seed it was begun with. more is how many
// tokens it may have beyond those it has; 0 stands for what is left of the bound
// it was begun with or, where that bound ended it, as many again.
func (r *Runner) Continue(ctx context.Context, w *session.Writer, more int, req Request, l Listener) (Result, error) {
	j, err := r.begin(ctx, w, How{}, req, l)
	if err != nil {
		return Result{Thread: w.Thread()}, err
	}
	defer r.release()
	var cut *session.Turn
	err = j.load(ctx, func(path []session.Turn) ([]session.Turn, error) {
		n := len(path)
		if n == 0 || path[n-1].Role != session.Assistant || path[n-1].Status == session.Done && path[n-1].Stop != StopLength {
			return nil, fmt.Errorf("thread %s: %w: the last answer of branch %q is complete, or there is none", w.Thread().Short(), ErrNothing, j.branch.Name)
		}
		cut = &path[n-1]
		if cut.Body == nil {
			return nil, fmt.Errorf("turn %s: %w: fork before it to go on", cut.ID.Short(), session.ErrCorrupt)
		}
		if cut.Settings.Fingerprint != r.info.Fingerprint && !r.understands(cut) {
			return nil, fmt.Errorf("turn %s: %w: regenerate it, or ask again", cut.ID.Short(), ErrOtherTokens)
		}
		if had, have := engine.TrunkOf(cut.Settings.KernelSet), engine.TrunkOf(r.info.Arithmetic); had != have && len(cut.Body.Tokens) > 0 {
			// One answer is of one model: whatever shows it says of which.
			return nil, fmt.Errorf("turn %s: %w (--trunk %s, this is --trunk %s): go on with the same, regenerate it, or ask again", cut.ID.Short(), ErrOtherTrunk, had, have)
		}
		j.how = How{cut.Settings, cut.Seed}
		return path[:n-1], nil
	})
	if err != nil {
		return j.res, err
	}
	j.have = cut.Body.Tokens
	if max := &j.how.Settings.MaxTokens; more > 0 {
		*max = len(j.have) + more
	} else if *max > 0 && cut.Stop == StopLength {
		*max += len(j.have)
	}
	if err := j.ready(ctx); err != nil {
		return j.res, err
	}
	return j.answer(ctx, func(opt session.AnswerOptions) (*session.Answer, error) { return w.Continue(ctx, cut.ID, opt) })
}

// Regenerate makes another answer beside one, on a new branch that
// Request.Branch may name. How must differ from how the other was made.
func (r *Runner) Regenerate(ctx context.Context, w *session.Writer, turn session.ID, how How, req Request, l Listener) (Result, error) {
	name := req.Branch
	req.Branch = ""
	j, err := r.begin(ctx, w, how, req, l)
	if err != nil {
		return Result{Thread: w.Thread()}, err
	}
	defer r.release()
	err = j.load(ctx, func([]session.Turn) ([]session.Turn, error) {
		t := j.th.Turn(turn)
		if t == nil || t.Role != session.Assistant {
			return nil, fmt.Errorf("regenerating: turn %s is no answer of thread %s: %w", turn.Short(), w.Thread().Short(), session.ErrNotFound)
		}
		return j.th.Path(t.Parent), nil
	})
	if err != nil {
		return j.res, err
	}
	if err := j.ready(ctx); err != nil {
		return j.res, err
	}
	return j.answer(ctx, func(opt session.AnswerOptions) (*session.Answer, error) {
		opt.Branch = name
		return w.Regenerate(ctx, turn, opt)
	})
}

// begin waits for the Runner to be free and makes the job of a call. The caller
// releases.
func (r *Runner) begin(ctx context.Context, w *session.Writer, how How, req Request, l Listener) (*job, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	return &job{r: r, w: w, how: how, req: req, out: &speaker{l: l}, res: Result{Thread: w.Thread()}}, nil
}

// load reads the thread and renders the path before the answer: the whole
// branch, or what pick makes of it.
func (j *job) load(ctx context.Context, pick func(path []session.Turn) ([]session.Turn, error)) error {
	r := j.r
	th, err := r.store.Load(ctx, j.w.Thread(), session.LoadOptions{Bodies: true})
	// Damage elsewhere in the thread is no obstacle; on the path, render finds it.
	if th == nil || err != nil && !errors.Is(err, session.ErrCorrupt) {
		return err
	}
	j.th = th
	if j.branch, err = th.FindBranch(j.req.Branch); err != nil {
		return err
	}
	path := th.Path(j.branch.Leaf)
	last := lastAnswer(path)
	if pick != nil {
		if path, err = pick(path); err != nil {
			return err
		}
	}
	j.path = path
	if j.p, err = r.render(path, j.how.Settings); err != nil {
		return err
	}
	if last != nil {
		if err := j.compare(ctx, last); err != nil {
			return err
		}
	}
	for _, f := range j.p.fresh {
		if err := j.w.SetPrompt(ctx, f.turn, int32s(f.ids)); err != nil {
			return err
		}
	}
	return nil
}

func lastAnswer(path []session.Turn) *session.Turn {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i].Role == session.Assistant {
			return &path[i]
		}
	}
	return nil
}

// compare says what has changed since the last answer of the branch.
func (j *job) compare(ctx context.Context, last *session.Turn) error {
	r, had := j.r, last.Settings
	if had.Fingerprint != "" && had.Fingerprint != r.info.Fingerprint {
		if !j.req.OtherModel {
			e := &ModelError{Thread: j.w.Thread(), Model: had.Model, Have: had.Fingerprint, Loaded: r.info.Fingerprint, Tokens: len(j.p.ids)}
			est, err := r.store.Estimate(ctx, session.Work{Fingerprint: r.info.Fingerprint, Prompt: e.Tokens, Answer: 1})
			if err == nil {
				e.Reading = est.Prefill
			} else if !errors.Is(err, session.ErrNoData) {
				return err
			}
			return e
		}
		j.notice(ctx, 0, NoticeModel, fmt.Sprintf("the thread was made with model %s (%s) and goes on with %s (%s)",
			had.Model, abbreviate(had.Fingerprint), r.info.Name, abbreviate(r.info.Fingerprint)))
	} else if had.KernelSet != "" && had.KernelSet != r.info.Arithmetic {
		j.notice(ctx, 0, NoticeArithmetic, fmt.Sprintf("the thread was computed with arithmetic %q, this program has %q: text so far is kept; later words may differ from the other program's",
			had.KernelSet, r.info.Arithmetic))
	}
	if had.Effort != j.how.Settings.Effort && j.p.answers > 0 {
		j.notice(ctx, 0, NoticeEffort, fmt.Sprintf("the effort was %q and is now %q, which stands at the top of the prompt: the whole thread is read again",
			had.Effort, j.how.Settings.Effort))
	}
	return nil
}

// ready completes the ids and refuses what cannot be generated, before anything
// is stored.
func (j *job) ready(context.Context) error {
	j.how.Settings = j.r.stamp(j.how.Settings)
	j.res.How = j.how
	if err := j.sampling().Validate(); err != nil {
		return &engine.UsageError{Field: "sampling", Reason: err.Error()}
	}
	if j.how.Settings.MaxTokens < 0 {
		return &engine.UsageError{Field: "tokens", Reason: fmt.Sprintf("%d is no bound for an answer", j.how.Settings.MaxTokens)}
	}
	open, err := j.r.opening(j.how.Settings)
	if err != nil {
		return err
	}
	j.p.ids = append(j.p.ids, open...)
	j.res.Prompt = j.p.ids
	j.ids = append(j.p.ids[:len(j.p.ids):len(j.p.ids)], ints((&session.Body{Tokens: j.have}).IDs())...)
	if limit := j.r.info.Config.MaxContext; len(j.ids) > limit {
		return &engine.ContextError{Tokens: len(j.ids), Limit: limit}
	}
	return nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deltafin/engine"
	"deltafin/engine/sample"
	"deltafin/session"
)

// A job is one run of one answer.
type job struct {
	r   *Runner
	w   *session.Writer
	how How
	req Request
	out *speaker
	res Result

	th     *session.Thread
	branch session.Branch
	path   []session.Turn  // before the answer
	p      *prompt         // the same as ids, with the opening of the answer
	have   []session.Token // of the answer, from earlier runs
	ids    []int           // p.ids and have

	a       *session.Answer
	pub     *publisher
	reading *reader
	seq     *engine.Sequence
	cost    time.Duration // to compute seq from nothing
	saved   int           // length of the newest snapshot of seq
	last    time.Time     // when it was taken, or the run began
	taken   bool          // the Runner's sequence was taken, and is to be replaced
}

func (j *job) sampling() sample.Params {
	s := j.how.Settings
	return sample.Params{Temperature: s.Temperature, TopP: s.TopP, Seed: j.how.Seed}
}

// notice tells the listener and the thread. A thread that cannot be written to
// is why some notices are made, so that failing is no further error.
func (j *job) notice(ctx context.Context, turn session.ID, kind, text string) {
	j.out.notice(Notice{kind, text})
	_ = j.r.store.AddEvent(context.WithoutCancel(ctx), j.w.Thread(), turn, kind, text)
}

// answer enters the answer in the journal, reads the prompt, generates, and ends
// the answer, whatever happens, in a state that can be continued.
func (j *job) answer(ctx context.Context, open func(session.AnswerOptions) (*session.Answer, error)) (Result, error) {
	j.pub = &publisher{out: j.out}
	j.reading = newReader(j.r.e, j.how.Settings.Effort != NoThinking)
	for _, t := range j.have {
		if _, err := j.reading.token(int(t.ID)); err != nil {
			return j.res, err
		}
	}
	a, err := open(session.AnswerOptions{Branch: j.req.Branch, Settings: j.how.Settings, Seed: j.how.Seed, Durable: j.pub.durable})
	if err != nil {
		return j.res, err
	}
	j.a, j.res.Turn = a, a.Turn()
	j.res.Timing.Started = j.r.opt.Now()
	j.last = j.res.Timing.Started
	j.out.begin(a.Turn(), j.before())

	finish, err := j.generate(ctx)
	// From here on the caller's context no longer counts: what there is is kept.
	ctx = context.WithoutCancel(ctx)
	err = j.finish(ctx, finish, err)
	if j.seq != nil && err == nil {
		j.save(ctx, a.Turn())
	}
	j.keep()
	return j.res, err
}

// before gives the tokens of earlier runs as the listener sees them.
func (j *job) before() []Token {
	out := make([]Token, len(j.have))
	for i, t := range j.have {
		out[i] = Token{Token: t, Index: i, Position: len(j.p.ids) + i, Stop: j.stops(int(t.ID))}
	}
	return out
}

func (j *job) stops(id int) bool { return slices.Contains(j.r.e.StopIDs(), id) }

// generate brings the sequence to the end of the ids and generates.
func (j *job) generate(ctx context.Context) (engine.Finish, error) {
	left := -1
	if limit := j.how.Settings.MaxTokens; limit > 0 {
		left = max(limit-len(j.have), 0)
	}
	// The last run may have been killed between its last token and the end.
	switch n := len(j.have); {
	case n > 0 && j.stops(int(j.have[n-1].ID)):
		return engine.Stopped, nil
	case left == 0:
		return engine.Length, nil
	case len(j.ids) >= j.r.info.Config.MaxContext:
		return engine.ContextFull, nil
	}
	if err := j.restore(ctx); err != nil {
		return engine.Failed, err
	}
	if finish, err := j.prefill(ctx); finish != "" || err != nil {
		return finish, err
	}
	res, err := j.r.e.Generate(ctx, j.seq, engine.Request{Tokens: j.ids, MaxTokens: left, Sampling: j.sampling()},
		engine.Listener{Token: func(t engine.Token) error { return j.token(ctx, t) }, Layer: j.out.layer})
	j.res.Timing.Decode = len(res.Tokens)
	j.res.Timing.DecodeT = res.DecodeTime
	j.cost += res.DecodeTime
	j.drop(res.Finish)
	return res.Finish, err
}

// drop lets go of a sequence that was broken in the middle of a token or a pass,
// whatever did it: the last snapshot is a better beginning than none of its tokens.
func (j *job) drop(finish engine.Finish) {
	if finish == engine.Cancelled || !j.seq.Whole() {
		j.seq = nil
	}
}

// token journals a token, which publishes it once it is on the disk.
func (j *job) token(ctx context.Context, t engine.Token) error {
	tok, err := j.reading.token(t.ID)
	if err != nil {
		return err
	}
	// The token exists: that the caller gives up must not lose it.
	ctx = context.WithoutCancel(ctx)
	index := len(j.have) + t.Index
	if j.r.picked != nil {
		j.r.picked(index)
	}
	j.pub.add(Token{Token: tok, Index: index, Position: t.Position, Stop: t.Stop, Elapsed: t.Elapsed})
	if _, err := j.a.Append(ctx, tok); err != nil {
		return err
	}
	switch {
	case t.Stop:
		return nil
	case j.req.paused():
		return engine.ErrPause
	case j.due():
		// The sequence has not yet seen this token; it is whole up to it.
		j.cost += t.Elapsed
		j.save(ctx, j.a.Turn())
		j.cost -= t.Elapsed
	}
	return nil
}

// finish ends the answer in the journal.
func (j *job) finish(ctx context.Context, finish engine.Finish, err error) error {
	out := session.Outcome{Status: session.Paused, Timing: j.res.Timing}
	if j.res.Timing.Prefill+j.res.Timing.Decode == 0 {
		out.Timing = session.Timing{}
	}
	switch finish {
	case engine.Stopped:
		out.Status, out.Stop = session.Done, StopEnd
	case engine.Length:
		out.Status, out.Stop = session.Done, StopLength
	case engine.ContextFull:
		out.Status, out.Stop = session.Done, StopContext
	case engine.Paused:
		out.Stop = StopPause
		if j.req.why != "" {
			out.Stop = j.req.why
		}
	case engine.Cancelled:
		out.Stop = StopCancelled
	default:
		out.Stop = StopError
		if errors.Is(err, session.ErrFull) {
			out.Stop = StopFull
		}
	}
	j.res.Status, j.res.Stop = out.Status, out.Stop
	ferr := j.a.Finish(ctx, out)
	j.res.Tokens = j.a.Durable()
	switch {
	case ferr != nil && errors.Is(err, session.ErrFull):
		// The same thing twice. The journal stays open on the disk; the next
		// writer finds it and goes on.
	case ferr != nil:
		err = errors.Join(err, ferr)
	case finish == engine.Paused:
		j.notice(ctx, j.a.Turn(), NoticePaused, fmt.Sprintf("paused at token %d", j.res.Tokens))
	case err != nil && finish != engine.Cancelled:
		j.notice(ctx, j.a.Turn(), NoticeError, fmt.Sprintf("stopped at token %d: %v", j.res.Tokens, err))
	}
	if err != nil && errors.Is(err, session.ErrFull) {
		j.out.notice(Notice{NoticePaused, fmt.Sprintf("the disk with your threads is full; the answer is paused at token %d, nothing is lost", j.res.Tokens)})
		j.res.Status = session.Paused
	}
	return err
}

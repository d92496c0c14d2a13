package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deltafin/engine/k3"
	"deltafin/engine/sample"
)

// A Request says what to generate.
type Request struct {
	// Tokens are all ids of the conversation so far. What the sequence has seen of
	// them is not computed again.
	Tokens []int
	// MaxTokens is the most tokens to generate. 0 reads the prompt and generates
	// nothing; a negative number goes on until the context is full.
	MaxTokens int
	// Sampling says how tokens are chosen; the zero value is greedy.
	Sampling sample.Params
	// Stop are the ids that end the reply; nil stands for the model's own.
	Stop []int
}

// A Result is what Generate did. It is filled in as far as it came, whatever the
// error.
type Result struct {
	Tokens []int // generated ids, the one that ended the reply included
	Finish Finish
	// Reused and Prefilled count the tokens of the prompt: seen before, and
	// computed now.
	Reused, Prefilled int
	// PrefillTime and DecodeTime are the time for the prompt and for the generated
	// tokens. The first generated token costs no pass of its own.
	PrefillTime, DecodeTime time.Duration
	// Draft is what proposed tokens did; zero without Options.Draft.
	Draft Drafting
}

// Generate reads the prompt and generates. Each token is handed to the listener
// before it is fed back. When ctx ends, it stops between two layers; the result
// then holds what was generated, the sequence has to be read anew, and the error
// is the cause of ctx. Logits that are no numbers are an error that wraps
// sample.ErrNotNumbers, a *MemoryError if weights in memory have changed.
func (e *Engine) Generate(ctx context.Context, seq *Sequence, req Request, l Listener) (Result, error) {
	res := Result{Finish: Failed}
	if err := e.check(&req); err != nil {
		return res, err
	}
	err := e.withLane(ctx, &res, func(w *lane) error {
		if err := w.prefill(ctx, []Prompt{{seq, req.Tokens}}, &res, l); err != nil {
			return err
		}
		return w.distrust(ctx, seq, w.decode(ctx, seq, req, &res, l))
	})
	return res, err
}

// check refuses what cannot be generated before anything is computed.
func (e *Engine) check(req *Request) error {
	c := e.model.Config()
	if err := req.Sampling.Validate(); err != nil {
		return &UsageError{Field: "sampling", Reason: err.Error()}
	}
	if len(req.Tokens) == 0 {
		return ErrEmptyPrompt
	}
	if len(req.Tokens) > c.MaxContext {
		return &ContextError{Tokens: len(req.Tokens), Limit: c.MaxContext}
	}
	for i, id := range req.Tokens {
		if id < 0 || id >= c.Vocab {
			return &IDError{ID: id, Position: i, Vocab: c.Vocab}
		}
	}
	if req.Stop == nil {
		req.Stop = e.stop
	}
	return nil
}

// answering is the generation of one answer.
type answering struct {
	w           *lane
	seq         *Sequence
	req         Request
	res         *Result
	to          Listener
	pick        func(logits []float32, pos int) (int, error)
	draft       *drafter      // nil: every token has a pass of its own
	start, last time.Time     // of the answer; of the latest token
	mark        time.Time     // see lap
	busy        time.Duration // before it
}

// decode generates from the end of the sequence.
func (w *lane) decode(ctx context.Context, seq *Sequence, req Request, res *Result, l Listener) error {
	start := time.Now()
	s := sample.Sampler{Params: req.Sampling}
	a := answering{
		w: w, seq: seq, req: req, res: res, to: l, pick: s.Pick, start: start, last: start,
		draft: w.e.newDrafter(req.Tokens, start.Add(-res.PrefillTime)),
	}
	return a.run(ctx)
}

// run tells tokens and feeds them back, until one ends the answer.
func (a *answering) run(ctx context.Context) error {
	if a.req.MaxTokens == 0 {
		a.res.Finish = Length
		return nil
	}
	layers := a.w.e.model.Config().Layers
	a.w.observe(answerPhase, func(layer int) {
		if a.to.Layer != nil {
			a.to.Layer(layer+1, layers)
		}
	})
	defer a.w.unobserve()
	a.mark = time.Now()
	id, err := a.pick(a.seq.logits, a.seq.Len())
	for end := false; !end && err == nil; {
		if end, err = a.tell(id); !end && err == nil {
			id, end, err = a.feed(ctx, id)
		}
	}
	return err
}

// tell hands the next token to the listener, and says whether it was the last.
func (a *answering) tell(id int) (end bool, err error) {
	res, pos, n := a.res, a.seq.Len(), len(a.res.Tokens)
	res.Tokens = append(res.Tokens, id)
	stop := slices.Contains(a.req.Stop, id)
	if a.to.Token != nil {
		now := time.Now()
		a.busy += now.Sub(a.mark)
		// Who keeps the token writes it to a disk: no reason to hold up others.
		a.w.e.baton.without(func() {
			err = a.to.Token(Token{ID: id, Position: pos, Index: n, Stop: stop, Elapsed: now.Sub(a.last)})
		})
		a.last, a.mark = now, time.Now()
	}
	res.DecodeTime = time.Since(a.start)
	switch {
	case errors.Is(err, ErrPause):
		res.Finish = Paused
	case err != nil:
		return false, err
	case stop:
		res.Finish = Stopped
	case pos+1 >= a.w.e.model.Config().MaxContext:
		res.Finish = ContextFull
	case n+1 == a.req.MaxTokens:
		res.Finish = Length // the last token is fed when the caller goes on
	default:
		return false, nil
	}
	return true, nil
}

// feed gives the model the token that was told, and perhaps some that it may choose
// next, of which those that it does are told as well. It returns the choice after
// these, or that the answer is at its end.
func (a *answering) feed(ctx context.Context, id int) (next int, end bool, err error) {
	if a.draft != nil {
		most := a.w.e.model.Config().MaxContext - a.seq.Len() - 2
		if a.req.MaxTokens > 0 {
			most = min(most, a.req.MaxTokens-len(a.res.Tokens)-1)
		}
		if ids := a.draft.propose(id, most, a.req.Stop, a.res.Draft.Saved); len(ids) > 1 {
			return a.verify(ctx, ids)
		}
	}
	if err = a.step(ctx, id); err != nil {
		return 0, false, err
	}
	next, err = a.pick(a.seq.logits, a.seq.Len())
	if a.draft != nil && err == nil {
		a.draft.chose(next)
		a.res.Draft.Saved += a.draft.c.stepped(a.lap())
	}
	return next, false, err
}

// lap is the time since the last lap without what the listener took.
func (a *answering) lap() time.Duration {
	now := time.Now()
	d := a.busy + now.Sub(a.mark)
	a.busy, a.mark = 0, now
	return d
}

// step gives the model one token.
func (a *answering) step(ctx context.Context, id int) error {
	logits, err := a.w.runner.Forward(ctx, a.seq.state, []int{id}, k3.LastLogits)
	if err != nil {
		return fmt.Errorf("token %d of the reply: %w", len(a.res.Tokens), err)
	}
	a.seq.saw(id, logits)
	return nil
}

// Logits returns the logits of every id, [len(ids)][Vocab] float32, in passes of
// at most rows tokens (0: the engine's own, 1: token by token). It is how another
// engine is compared with this one. done is called with the tokens finished.
func (e *Engine) Logits(ctx context.Context, ids []int, rows int, emit func(logits []float32) error) error {
	req := Request{Tokens: ids}
	if err := e.check(&req); err != nil {
		return err
	}
	lane, err := e.acquire(ctx)
	if err != nil {
		return err
	}
	defer lane.release()
	if rows <= 0 {
		rows = e.opts.PrefillRows
	}
	st := e.model.NewState()
	for pass := range slices.Chunk(ids, rows) {
		logits, err := lane.runner.Forward(ctx, st, pass, k3.AllLogits)
		if err != nil {
			return err
		}
		if err := emit(logits); err != nil {
			return err
		}
	}
	return nil
}

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
}

// Generate reads the prompt and generates. Each token is handed to the listener
// before it is fed back. When ctx ends, it stops between two layers; the result
// then holds what was generated, the sequence has to be read anew, and the error
// is the cause of ctx.
func (e *Engine) Generate(ctx context.Context, seq *Sequence, req Request, l Listener) (Result, error) {
	res := Result{Finish: Failed}
	if err := e.check(&req); err != nil {
		return res, err
	}
	err := e.withLane(ctx, &res, func(w *lane) error {
		if err := w.prefill(ctx, []Prompt{{seq, req.Tokens}}, &res, l); err != nil {
			return err
		}
		return w.decode(ctx, seq, req, &res, l)
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

// decode generates from the end of the sequence.
func (w *lane) decode(ctx context.Context, seq *Sequence, req Request, res *Result, l Listener) error {
	c := w.e.model.Config()
	start := time.Now()
	last := start
	s := sample.Sampler{Params: req.Sampling}
	w.observe(answerPhase, func(layer int) {
		if l.Layer != nil {
			l.Layer(layer+1, c.Layers)
		}
	})
	defer w.unobserve()
	for n := 0; ; n++ {
		if n == req.MaxTokens {
			res.Finish = Length
			return nil
		}
		pos := seq.Len()
		id, err := s.Pick(seq.logits, pos)
		if err != nil {
			return err
		}
		res.Tokens = append(res.Tokens, id)
		stop := slices.Contains(req.Stop, id)
		if l.Token != nil {
			now := time.Now()
			// Who keeps the token writes it to a disk: no reason to hold up others.
			w.e.baton.without(func() {
				err = l.Token(Token{ID: id, Position: pos, Index: n, Stop: stop, Elapsed: now.Sub(last)})
			})
			last = now
		}
		res.DecodeTime = time.Since(start)
		switch {
		case errors.Is(err, ErrPause):
			res.Finish = Paused
			return nil
		case err != nil:
			return err
		case stop:
			res.Finish = Stopped
			return nil
		case pos+1 >= c.MaxContext:
			res.Finish = ContextFull
			return nil
		case n+1 == req.MaxTokens:
			res.Finish = Length
			return nil // the last token is fed when the caller goes on
		}
		logits, err := w.runner.Forward(ctx, seq.state, []int{id}, k3.LastLogits)
		if err != nil {
			return fmt.Errorf("token %d of the reply: %w", n+1, err)
		}
		seq.tokens = append(seq.tokens, id)
		seq.logits = append(seq.logits[:0], logits...)
	}
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

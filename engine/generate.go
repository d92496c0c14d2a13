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
	if err := e.acquire(ctx); err != nil {
		if ctx.Err() != nil {
			res.Finish = Cancelled
		}
		return res, err
	}
	defer e.release()
	err := e.prefill(ctx, seq, req.Tokens, &res, l)
	if err == nil {
		err = e.decode(ctx, seq, req, &res, l)
	}
	e.stats.add(&res)
	if err != nil && ctx.Err() != nil {
		res.Finish = Cancelled
		return res, context.Cause(ctx)
	}
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

// prefill brings the sequence to the end of ids, in passes over the weights.
func (e *Engine) prefill(ctx context.Context, seq *Sequence, ids []int, res *Result, l Listener) error {
	start := time.Now()
	p := Progress{Tokens: len(ids), Reused: seq.reuse(ids), Layers: e.model.Config().Layers}
	p.Done = p.Reused
	res.Reused = p.Reused
	report := func() {
		if l.Prefill == nil {
			return
		}
		p.Elapsed = time.Since(start)
		p.Left = 0
		if f := p.Fraction(); f > 0 {
			p.Left = time.Duration(float64(p.Elapsed) * (1 - f) / f)
		}
		l.Prefill(p)
	}
	report()
	e.runner.Observe = &k3.Observer{Layer: func(layer int) {
		p.Layer = layer + 1
		report()
	}}
	defer func() { e.runner.Observe = nil }()
	for rest := ids[p.Reused:]; len(rest) > 0; {
		pass := rest[:min(len(rest), e.opts.PrefillRows)]
		rest = rest[len(pass):]
		p.Pass, p.Layer = len(pass), 0
		want := k3.NoLogits
		if len(rest) == 0 {
			want = k3.LastLogits
		}
		logits, err := e.runner.Forward(ctx, seq.state, pass, want)
		if err != nil {
			return fmt.Errorf("reading the prompt at token %d: %w", p.Done, err)
		}
		seq.tokens = append(seq.tokens, pass...)
		seq.logits = append(seq.logits[:0], logits...)
		p.Done += len(pass)
		p.Pass = 0
		res.Prefilled = p.Done - p.Reused
		res.PrefillTime = time.Since(start)
	}
	report()
	return nil
}

// decode generates from the end of the sequence.
func (e *Engine) decode(ctx context.Context, seq *Sequence, req Request, res *Result, l Listener) error {
	c := e.model.Config()
	start := time.Now()
	last := start
	s := sample.Sampler{Params: req.Sampling}
	if l.Layer != nil {
		e.runner.Observe = &k3.Observer{Layer: func(layer int) { l.Layer(layer+1, c.Layers) }}
		defer func() { e.runner.Observe = nil }()
	}
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
			err = l.Token(Token{ID: id, Position: pos, Index: n, Stop: stop, Elapsed: now.Sub(last)})
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
		logits, err := e.runner.Forward(ctx, seq.state, []int{id}, k3.LastLogits)
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
	if err := e.acquire(ctx); err != nil {
		return err
	}
	defer e.release()
	if rows <= 0 {
		rows = e.opts.PrefillRows
	}
	st := e.model.NewState()
	for pass := range slices.Chunk(ids, rows) {
		logits, err := e.runner.Forward(ctx, st, pass, k3.AllLogits)
		if err != nil {
			return err
		}
		if err := emit(logits); err != nil {
			return err
		}
	}
	return nil
}

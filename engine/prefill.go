package engine

import (
	"context"
	"fmt"
	"time"

	"deltafin/engine/k3"
)

// A Prompt is a sequence and all ids it is to have seen.
type Prompt struct {
	Sequence *Sequence
	Tokens   []int
}

// Prefill reads several prompts together: their rows share the passes, so that
// every weight, and every expert that a layer needs, is read once for all of them.
// Each sequence ends as if it had been read alone, to the bit. What a sequence has
// seen already is not computed again. Progress counts the tokens of all prompts.
//
// After an error the sequences of the pass under way have to be read anew; the
// next call does that by itself, and keeps what was finished.
func (e *Engine) Prefill(ctx context.Context, prompts []Prompt, l Listener) (Result, error) {
	res := Result{Finish: Failed}
	for i := range prompts {
		if err := e.check(&Request{Tokens: prompts[i].Tokens}); err != nil {
			return res, err
		}
		for j := range i {
			if prompts[j].Sequence == prompts[i].Sequence {
				return res, &UsageError{Field: "prompts", Reason: fmt.Sprintf("%d and %d are for the same sequence", j, i)}
			}
		}
	}
	err := e.withLane(ctx, &res, func(w *lane) error {
		if err := w.prefill(ctx, prompts, &res, l); err != nil {
			return err
		}
		res.Finish = Length
		return nil
	})
	return res, err
}

// prefill brings sequences to the end of their prompts, in passes over the weights.
func (l *lane) prefill(ctx context.Context, prompts []Prompt, res *Result, to Listener) error {
	w := reading{lane: l, start: time.Now(), to: to, res: res}
	w.p.Layers = l.e.model.Config().Layers
	for _, p := range prompts {
		n := p.Sequence.reuse(p.Tokens)
		w.p.Tokens += len(p.Tokens)
		w.p.Reused += n
		if n < len(p.Tokens) {
			w.left = append(w.left, Prompt{p.Sequence, p.Tokens[n:]})
		}
	}
	w.p.Done, res.Reused = w.p.Reused, w.p.Reused
	w.begin()
	w.report()
	l.begin()
	l.observe(promptPhase, func(layer int) {
		w.p.Layer = layer + 1
		w.report()
	})
	defer l.unobserve()
	for len(w.left) > 0 {
		if err := w.pass(ctx); err != nil {
			return fmt.Errorf("reading the prompt at token %d: %w", w.p.Done, err)
		}
	}
	w.report()
	return nil
}

// reading is a prefill under way.
type reading struct {
	lane  *lane
	left  []Prompt // what of the prompts was not read
	start time.Time
	p     Progress
	to    Listener
	res   *Result
	io    Streaming
	base  int64 // bytes that had come from drives before
}

// pass reads as many rows as share a pass: sequences in their order, the last one
// in part.
func (w *reading) pass(ctx context.Context) error {
	room := w.lane.e.opts.PrefillRows
	var parts []k3.Part
	var whose []*Sequence
	last := false // somebody's last row is in this pass
	for i := 0; i < len(w.left) && room > 0; i++ {
		p := &w.left[i]
		n := min(len(p.Tokens), room)
		parts = append(parts, k3.Part{State: p.Sequence.state, IDs: p.Tokens[:n]})
		whose = append(whose, p.Sequence)
		last = last || n == len(p.Tokens)
		room -= n
	}
	w.p.Pass, w.p.Layer = w.lane.e.opts.PrefillRows-room, 0
	want := k3.NoLogits
	if last {
		want = k3.LastLogits
	}
	logits, err := w.lane.runner.ForwardAll(ctx, parts, want)
	if err != nil {
		return err
	}
	done := 0
	for i, s := range whose {
		n := len(parts[i].IDs)
		s.tokens = append(s.tokens, parts[i].IDs...)
		s.logits = s.logits[:0]
		if last {
			vocab := w.lane.e.model.Config().Vocab
			s.logits = append(s.logits, logits[i*vocab:(i+1)*vocab]...)
		}
		if w.left[i].Tokens = w.left[i].Tokens[n:]; len(w.left[i].Tokens) == 0 {
			done++ // only the last of a pass can be left in part
		}
	}
	w.left = w.left[done:]
	w.p.Done += w.p.Pass
	w.p.Pass = 0
	w.res.Prefilled = w.p.Done - w.p.Reused
	w.res.PrefillTime = time.Since(w.start)
	return nil
}

// begin notes what the drives had read before.
func (w *reading) begin() {
	if w.lane.e.stream != nil {
		w.lane.e.Streaming(&w.io)
		w.base = w.io.Drives.Total.Read
	}
}

// report tells the listener how far it is.
func (w *reading) report() {
	if w.to.Prefill == nil {
		return
	}
	w.p.Elapsed = time.Since(w.start)
	w.p.Left = 0
	if f := w.p.Fraction(); f > 0 {
		w.p.Left = time.Duration(float64(w.p.Elapsed) * (1 - f) / f)
	}
	if w.lane.e.stream != nil {
		w.lane.e.Streaming(&w.io)
		w.p.Bytes, w.p.Rate = w.io.Drives.Total.Read-w.base, w.io.Drives.Total.Now
	}
	w.to.Prefill(w.p)
}

package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"deltafin/engine/lookup"
)

// Drafting is what proposed tokens did for answers: see Options.Draft.
type Drafting struct {
	Passes   int64         // with proposed tokens
	Proposed int64         // tokens that were in them
	Accepted int64         // those that the model would have chosen as well
	Saved    time.Duration // against plain steps, by estimate; below 0 if they cost more
}

// Gain is how many times as fast as plain steps the tokens came that took decode, by
// estimate.
func (d Drafting) Gain(decode time.Duration) float64 {
	if decode <= 0 {
		return 1
	}
	return float64(decode+d.Saved) / float64(decode)
}

// draftMemory is how many tokens of a conversation are searched for a match.
const draftMemory = 1 << 18

// A draftPolicy decides how many tokens are drafted, and learns from what comes of it.
// draftControl is the one there is; tests put others in its place.
type draftPolicy interface {
	width(match, have int, spent, saved time.Duration) int
	stepped(took time.Duration) (saved time.Duration)
	drafted(rows, kept int, took time.Duration) (saved time.Duration)
	judged(match, right int, wrong bool)
}

// A drafter proposes tokens during one answer.
type drafter struct {
	c     draftPolicy
	index *lookup.Index
	began time.Time // of the call
	ids   []int     // of the pass: the token that is known, then those proposed
	match int       // length of the match that the latest proposal has; 0: it was judged
	first int       // its first token
}

// newDrafter returns what proposes tokens after a prompt, nil without Options.Draft.
func (e *Engine) newDrafter(prompt []int, began time.Time) *drafter {
	if e.drafts == nil {
		return nil
	}
	d := &drafter{c: e.drafts, index: lookup.New(draftMemory), began: began}
	d.index.Add(prompt...)
	return d
}

// propose returns the ids of the next pass: the token that was chosen, and up to most
// that may follow it, as far as they are worth a try. saved is what earlier ones saved.
func (d *drafter) propose(id, most int, stop []int, saved time.Duration) []int {
	d.index.Add(id)
	d.ids = append(d.ids[:0], id)
	d.ids, d.match = d.index.Propose(d.ids, maxDraftRows-1)
	if d.match == 0 {
		return d.ids
	}
	d.first = d.ids[1]
	have := 0 // the token that ends the answer needs no row
	for have < min(most, len(d.ids)-1) && !slices.Contains(stop, d.ids[1+have]) {
		have++
	}
	return d.ids[:1+d.c.width(d.match, have, time.Since(d.began), saved)]
}

// chose judges a proposal that was not tried by the token that then came.
func (d *drafter) chose(id int) {
	if d.match == 0 {
		return
	}
	if id == d.first {
		d.c.judged(d.match, 1, false)
	} else {
		d.c.judged(d.match, 0, true)
	}
	d.match = 0
}

// verify feeds the token that was told last and those proposed after it in one pass,
// and tells those that the model chooses as well: each is picked from the logits
// before it, as without a draft. What the pass has added beyond them is taken back. It
// returns what feed does.
func (a *answering) verify(ctx context.Context, ids []int) (next int, end bool, err error) {
	seq, d, res, vocab := a.seq, a.draft, a.res, a.w.e.model.Config().Vocab
	res.Draft.Passes++
	res.Draft.Proposed += int64(len(ids) - 1)
	a.w.holdRoutes()
	logits, err := a.w.runner.ForwardDraft(ctx, seq.state, ids)
	if err != nil {
		return a.retreat(ctx, ids, err)
	}
	seq.ahead = &ahead{lane: a.w, from: seq.Len()} // the listener may look at it
	kept := 0
	for {
		seq.saw(ids[kept], logits[kept*vocab:(kept+1)*vocab])
		kept++
		next, err = a.pick(seq.logits, seq.Len())
		if err != nil || ctx.Err() != nil || kept == len(ids) || next != ids[kept] {
			break
		}
		res.Draft.Accepted++
		if end, err = a.tell(next); end || err != nil {
			break
		}
		d.index.Add(next)
	}
	d.c.judged(d.match, kept-1, kept < len(ids) && next != ids[kept])
	d.match = 0
	seq.ahead = nil
	if bad := a.w.runner.Commit(seq.state, kept); err == nil {
		err = bad
	}
	a.w.keepRoutes(kept)
	res.Draft.Saved += d.c.drafted(len(ids), kept, a.lap())
	if !end && err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return next, end, err
}

// retreat goes on after a draft pass that failed: with a step of its own, since what
// could not be read may have been needed by a wrong proposal alone. If it was not, the
// step says so.
func (a *answering) retreat(ctx context.Context, ids []int, err error) (next int, end bool, _ error) {
	a.w.keepRoutes(0)
	a.draft.match = 0
	if ctx.Err() != nil {
		return 0, false, fmt.Errorf("token %d of the reply: %w", len(a.res.Tokens), err)
	}
	a.res.Draft.Saved += a.draft.c.drafted(len(ids), 0, a.lap())
	if err := a.step(ctx, ids[0]); err != nil {
		return 0, false, err
	}
	next, err = a.pick(a.seq.logits, a.seq.Len())
	return next, false, err
}

// An ahead is a draft pass whose tokens are being told: the state of the sequence has
// seen more than the sequence says.
type ahead struct {
	lane *lane
	from int // tokens of the sequence before the pass
}

// settle brings the state to the tokens of the sequence, for a listener that looks at
// it between two tokens. It costs a moment for every row that is taken away, and for
// every one that is wanted back after that.
func (s *Sequence) settle() error {
	if s.ahead == nil {
		return nil
	}
	b := s.ahead.lane.e.baton // the lane has passed it on while the listener runs
	b.take()
	defer b.pass()
	return s.ahead.lane.runner.Commit(s.state, len(s.tokens)-s.ahead.from)
}

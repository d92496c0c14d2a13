package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"deltafin/engine"
	"deltafin/session"
)

// restore takes up the state that saves the most: the one in memory, or the
// snapshot of any thread with the longest common prefix.
func (j *job) restore(ctx context.Context) error {
	r := j.r
	j.seq, j.cost = r.seq, r.cost
	r.seq, j.taken = nil, true // it is changed in place; keep puts it back
	if j.seq == nil || !isPrefix(j.seq, j.ids) {
		j.seq, j.cost = r.e.NewSequence(), 0
	}
	ids := int32s(j.ids)
	for {
		info, ok, err := r.store.FindSnapshot(ctx, ids, r.info.Fingerprint, r.info.Arithmetic)
		if err != nil {
			return err
		}
		if !ok || info.Tokens <= j.seq.Len() {
			break
		}
		j.out.stage(Stage{StageRestore, info.Tokens, info.Bytes})
		seq, err := r.e.LoadSnapshot(info.Path)
		if err == nil && (seq.Len() != info.Tokens || !isPrefix(seq, j.ids)) {
			err = fmt.Errorf("%s: %w: it holds other tokens than the books say", info.Path, engine.ErrSnapshotDamaged)
		}
		if err == nil {
			j.seq, j.cost, j.saved = seq, info.Cost, info.Tokens
			break
		}
		if err := j.lost(ctx, info, err); err != nil {
			return err
		}
	}
	j.res.Timing.Reused = j.seq.Len()
	return nil
}

// lost drops a snapshot that is of no use. Its file goes too if it is damaged:
// a file of another model may be someone's.
func (j *job) lost(ctx context.Context, info session.SnapshotInfo, why error) error {
	if err := j.r.store.DropSnapshot(ctx, info.ID); err != nil {
		return err
	}
	if errors.Is(why, fs.ErrNotExist) {
		why = fmt.Errorf("the snapshot %s is gone", info.Path)
	}
	j.notice(ctx, 0, NoticeSnapshotLost, fmt.Sprintf("%v; the text is read again", why))
	if errors.Is(why, engine.ErrSnapshotDamaged) {
		if err := os.Remove(info.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			j.notice(ctx, 0, NoticeSnapshotLost, fmt.Sprintf("a damaged snapshot could not be removed: %v", err))
		}
	}
	return nil
}

// isPrefix reports whether ids begin with what a sequence has seen.
func isPrefix(seq *engine.Sequence, ids []int) bool {
	seen := seq.Tokens()
	return len(seen) <= len(ids) && slices.Equal(seen, ids[:len(seen)])
}

// prefill reads the prompt up to its end, pass by pass, so that it can pause in
// between and keep snapshots on the way. A finish other than "" ends the run.
func (j *job) prefill(ctx context.Context) (engine.Finish, error) {
	r := j.r
	first := j.seq.Len()
	start := r.opt.Now()
	for done := first; done < len(j.ids); done = j.seq.Len() {
		if j.req.paused() {
			return engine.Paused, nil
		}
		end, system := j.passEnd(first, done)
		before := j.res.Timing.PrefillT
		res, err := r.e.Generate(ctx, j.seq, engine.Request{Tokens: j.ids[:end]}, engine.Listener{Prefill: func(p engine.Progress) {
			j.out.prefill(j.progress(p, first, before))
		}})
		j.res.Timing.Prefill += res.Prefilled
		j.res.Timing.PrefillT += res.PrefillTime
		j.cost += res.PrefillTime
		if err != nil {
			j.drop(res.Finish)
			return res.Finish, err
		}
		if system != 0 {
			j.save(ctx, system)
		} else if end < len(j.ids) && j.due() {
			j.save(ctx, j.a.Turn())
		}
	}
	if j.seq.Len()-first >= r.opt.LongPrefill || r.opt.Now().Sub(start) >= longPrefill {
		j.save(ctx, j.a.Turn())
	}
	return "", nil
}

// longPrefill is how long reading must have taken to be worth a snapshot,
// however few tokens it was: a short question to the full model takes minutes.
const longPrefill = 30 * time.Second

// passEnd is where the pass from done on ends: after as many rows as the engine
// reads at once, or at the end of a long system turn, which other threads share.
// A short one is not worth a pass of its own, since every pass reads most of the
// experts.
func (j *job) passEnd(first, done int) (end int, system session.ID) {
	end = min(done+j.r.info.PrefillRows, len(j.ids))
	for _, s := range j.p.systems {
		if s.end > done && s.end <= end && s.end-first >= j.r.opt.LongPrefill {
			return s.end, s.turn
		}
	}
	return end, 0
}

// progress turns the progress of a pass into that of the whole prompt.
func (j *job) progress(p engine.Progress, first int, before time.Duration) engine.Progress {
	p.Tokens, p.Reused = len(j.ids), first
	p.Elapsed += before
	p.Left = 0
	if f := p.Fraction(); f > 0 {
		p.Left = time.Duration(float64(p.Elapsed) * (1 - f) / f)
	}
	return p
}

package simulate

import (
	"context"
	"fmt"
	"time"

	"deltafin/engine/expert"
	"deltafin/ssdio"
)

// waveRows is k3's: how many pairs of a row and an expert suffice for a wave.
const waveRows = 4096

// pass goes through the layers as k3.Runner does with so many rows.
func (r *run) pass(rows int, head bool) error {
	for i := range r.model.Layers {
		if err := r.layer(i, rows); err != nil {
			return fmt.Errorf("layer %d: %w", i, err)
		}
	}
	if c := r.cost.of(rows); c != nil {
		r.cost.spend(c.Head)
	} else if head {
		r.cost.weights(r.model.Head, 1, 0)
	}
	return nil
}

// layer is one layer: guess, attention, router, experts.
func (r *run) layer(i, rows int) error {
	l := &r.model.Layers[i]
	if err := r.trunk.take(); err != nil {
		return err
	}
	defer r.trunk.done()
	r.foresee(i, rows)
	r.attention(i, rows)
	if l.Router == 0 {
		return r.ctx.Err()
	}
	r.draw(i, rows)
	r.drawn = -1
	if err := r.turn.Begin(r.ctx, i, r.want); err != nil {
		r.abandon()
		return err
	}
	c := r.cost.of(rows)
	if c != nil {
		r.cost.spend(c.Layers[i].Beside)
	} else {
		r.cost.weights(l.Beside, rows, 0)
	}
	for left := len(r.want); left > 0; {
		n, err := r.wave(c)
		if err != nil {
			r.abandon()
			return err
		}
		left -= n
	}
	// The layer stays open until its sum is made, as k3's does.
	if c != nil {
		r.cost.spend(c.Layers[i].After)
	} else {
		r.cost.weights(l.After, rows, 0)
	}
	r.turn.End()
	return r.ctx.Err()
}

// foresee asks a router beforehand, as k3's guess: that of the layer or, where it has
// none, that of the next one.
func (r *run) foresee(i, rows int) {
	of, early := i, false
	if r.model.Layers[i].Router == 0 && i+1 < len(r.model.Layers) {
		of, early = i+1, true
		if r.trunk.streams() {
			return // its router is not in memory yet
		}
	}
	if r.model.Layers[of].Router == 0 || !r.turn.Ahead(of, early) {
		return
	}
	if c := r.cost.of(rows); c != nil {
		r.cost.spend(c.Layers[i].Guess)
	} else {
		r.cost.weights(r.model.Layers[of].Router, rows, 0)
	}
	// What the layer will choose is drawn before it is guessed, since the guess is
	// made from it.
	r.draw(of, rows)
	r.turn.Guess(of, rows, early, r.candidates(of, rows, early))
}

// candidates is what a router says beforehand.
func (r *run) candidates(layer, rows int, early bool) []expert.Candidate {
	if r.recorded == nil {
		return r.guess.candidates(r, rows)
	}
	if early {
		return r.recorded.Layers[layer].Early
	}
	return r.recorded.Layers[layer].Guess
}

// attention is what a layer does before its router speaks, its router included; of a
// dense layer it is all.
func (r *run) attention(i, rows int) {
	if c := r.cost.of(rows); c != nil {
		r.cost.spend(c.Layers[i].Attention)
		return
	}
	l := &r.model.Layers[i]
	attend := 0.0
	if l.Attends {
		attend = r.model.AttendOps * float64(r.opt.Context) * float64(rows) / r.attending()
	}
	r.cost.pass(attend, 0)
	r.cost.weights(l.Attention, rows, 2*l.State)
	if l.Router == 0 {
		r.cost.weights(l.Beside, rows, 0)
		return
	}
	r.cost.weights(l.Router, rows, 0)
}

// abandon ends a layer that cannot be completed. What is being read has to land
// first, since nobody else moves the clock while the store waits for it.
func (r *run) abandon() {
	for r.clock.step() {
	}
	r.turn.End()
}

// attending is how many layers share AttendOps.
func (r *run) attending() float64 {
	n := 0.0
	for i := range r.model.Layers {
		if r.model.Layers[i].Attends {
			n++
		}
	}
	// AttendOps is of the whole model: a sample does its part.
	return max(n, 1) / r.factor
}

// draw routes the rows of a layer and lists the experts as k3 does: in the router's
// order for one row, by number for several. A layer that was drawn for a guess is not
// drawn again.
func (r *run) draw(layer, rows int) {
	if r.drawn == layer {
		return
	}
	if r.drawn = layer; r.recorded != nil {
		r.want = r.recorded.Layers[layer].Want
		return
	}
	k := r.model.Experts.TopK
	if cap(r.ids) < k {
		r.ids = make([]int32, k)
	}
	ids := r.ids[:k]
	r.want = r.want[:0]
	if rows == 1 {
		r.opt.Router.Draw(layer, ids)
		for _, e := range ids {
			r.want = append(r.want, expert.Want{Expert: e, Rows: 1})
		}
		return
	}
	clear(r.rows)
	for range rows {
		r.opt.Router.Draw(layer, ids)
		for _, e := range ids {
			r.rows[e]++
		}
	}
	for e, n := range r.rows {
		if n > 0 {
			r.want = append(r.want, expert.Want{Expert: int32(e), Rows: n})
		}
	}
}

// wave computes what is there, at least one expert, as k3's gatherWave.
func (r *run) wave(measured *PassCost) (int, error) {
	r.taken = r.taken[:0]
	rows := 0
	for rows < waveRows {
		i, _, ok, err := r.turn.Next(len(r.taken) == 0)
		if err != nil {
			if r.ctx.Err() != nil {
				err = context.Cause(r.ctx)
			}
			return 0, err
		}
		if !ok {
			break
		}
		r.taken = append(r.taken, i)
		rows += int(r.want[i].Rows)
	}
	if len(r.taken) == 0 {
		return 0, errIdle
	}
	if c := measured; c != nil {
		r.cost.spend(c.Wave + time.Duration(len(r.taken))*c.Expert + time.Duration(rows)*c.Row)
	} else {
		r.cost.pass(r.model.ExpertOps*float64(rows), float64(r.model.Experts.Bytes)*float64(len(r.taken)))
	}
	for _, i := range r.taken {
		r.turn.Done(i)
	}
	return len(r.taken), nil
}

// mark is a reading of everything that counts.
type mark struct {
	at                   time.Duration
	flops, memory, drive time.Duration
	stats                expert.Stats
	io                   ssdio.Counters
}

func (r *run) mark() (m mark) {
	m.at, m.flops, m.memory, m.drive = r.clock.now, r.cost.flops, r.cost.memory, r.cost.disk
	r.store.Stats(&m.stats)
	r.set.Counters(&m.io)
	return m
}

// result is what happened since a mark.
func (r *run) result(begin mark, tokens int, m *Machine) *Result {
	end := r.mark()
	end.stats.Sub(&begin.stats)
	end.io.Sub(&begin.io)
	whole := func(d time.Duration) time.Duration { return time.Duration(float64(d) / r.factor) }
	res := &Result{
		Tokens: tokens, Elapsed: whole(end.at - begin.at), Compute: whole(end.flops - begin.flops), Memory: whole(end.memory - begin.memory),
		Streaming: whole(end.drive - begin.drive), Stall: whole(end.stats.Total.Stall), Counts: end.stats.Total,
		Read: end.io.Total.Read, Drives: end.io.Drives, Trunk: r.split.Trunk, Streamed: r.split.Streamed, Cache: r.split.Cache, Factor: r.factor,
	}
	trunk := "bf16"
	if m.Int8 {
		trunk = "int8"
	}
	res.Assumptions = []string{
		r.opt.Router.Assumptions(),
		fmt.Sprintf("the lookahead foresees %.0f %% of the experts of a token", 100*r.opt.Recall),
		fmt.Sprintf("%s: %.4g GFLOP/s sustained, %.0f GB/s of memory, of which busy drives take their part; the trunk is held as %s", m.Name, m.Gflops, m.Bandwidth/1e9, trunk),
		"drives keep their rate: no heat, no other programs",
	}
	if r.opt.NoAhead {
		res.Assumptions[1] = "nothing is read ahead"
	}
	if r.split.Streamed > 0 {
		res.Assumptions = append(res.Assumptions, fmt.Sprintf("%.1f GB of the trunk are read from the first drive in every pass", float64(r.split.Streamed)/1e9))
	}
	if r.factor < 1 {
		res.Assumptions = append(res.Assumptions, fmt.Sprintf("%d layers stand for all", r.model.Experts.Layers))
	}
	if m.Notes != "" {
		res.Assumptions = append(res.Assumptions, m.Notes)
	}
	return res
}

package check

import (
	"context"
	"math/bits"
	"slices"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/k3"
	"deltafin/engine/kernel"
	"deltafin/engine/simulate"
)

// A recorder stands between the forward pass and the mapped experts. It notes what
// the pass asks for and what its routers say beforehand, which no setting of drives
// or caches changes, and how long the arithmetic between the calls takes.
type recorder struct {
	ck    *checkpoint.Checkpoint
	alone bool // one expert at a time, so that waves of one are timed too

	pass  simulate.Pass
	times passTimes
	at    time.Time // of the last call's end
	layer int       // that is open, -1: none
	next  int       // of the open layer's want
	wave  struct {  // what was handed out and is not computed
		experts, rows int
		open          bool
	}
}

// passTimes are what a pass took, by layer.
type passTimes struct {
	layers []simulate.LayerCost
	head   time.Duration
	waves  []waveTime
}

type waveTime struct {
	experts, rows int
	took          time.Duration
}

// begin starts a pass.
func (r *recorder) begin(rows int, head bool) {
	layers := r.ck.Config().Layers
	r.pass = simulate.Pass{Rows: rows, Head: head, Layers: make([]simulate.Asked, layers)}
	r.times = passTimes{layers: make([]simulate.LayerCost, layers)}
	r.layer, r.at = -1, time.Now()
}

// end finishes it.
func (r *recorder) end() { r.times.head = r.lap() }

// lap is the time since the last call.
func (r *recorder) lap() time.Duration {
	now := time.Now()
	d := now.Sub(r.at)
	r.at = now
	return d
}

// NewFeed implements k3.Experts: a recorder serves one Runner.
func (r *recorder) NewFeed() k3.Feed { return r }

// Streams implements k3.Feed: the pass is to go as it goes with drives.
func (r *recorder) Streams() bool { return true }

// Ahead implements k3.Feed. Guesses are always recorded; whether they are made, the
// store decides that replays them.
func (r *recorder) Ahead(layer int, early bool) bool {
	// What came before belongs to the layer's attention, or to that of the dense
	// layer before, which makes no other call.
	at := layer
	if layer > 0 && !r.ck.Config().MoE(layer-1) {
		at = layer - 1
	}
	r.times.layers[at].Attention += r.lap()
	return true
}

// Guess implements k3.Feed, with the classes of the engine.
func (r *recorder) Guess(layer, rows int, early bool, likely []k3.Want) {
	var out []expert.Candidate
	for i, w := range likely {
		class := min(i, expert.Classes/2-1)
		if rows > 1 {
			class = expert.Classes/2 + min(bits.Len32(uint32(w.Rows)), expert.Classes/2-1)
		}
		out = append(out, expert.Candidate{Expert: w.Expert, Class: uint8(class)})
	}
	if early {
		r.pass.Layers[layer].Early = out
		r.times.layers[layer-1].Guess = r.lap()
		return
	}
	r.pass.Layers[layer].Guess = out
	r.times.layers[layer].Guess = r.lap()
}

// Begin implements k3.Feed.
func (r *recorder) Begin(_ context.Context, layer int, want []k3.Want) error {
	r.times.layers[layer].Attention += r.lap()
	r.layer, r.next = layer, 0
	for _, w := range want {
		r.pass.Layers[layer].Want = append(r.pass.Layers[layer].Want, expert.Want(w))
	}
	return nil
}

// Next implements k3.Feed.
func (r *recorder) Next(wait bool) (int, k3.Expert, bool, error) {
	if wait && r.next == 0 {
		r.times.layers[r.layer].Beside = r.lap()
	}
	want := r.pass.Layers[r.layer].Want
	if r.next == len(want) || r.alone && !wait {
		r.startWave()
		return 0, k3.Expert{}, false, nil
	}
	i := r.next
	r.next++
	r.wave.experts, r.wave.rows = r.wave.experts+1, r.wave.rows+int(want[i].Rows)
	x, err := r.expert(int(want[i].Expert))
	r.startWave()
	return i, x, err == nil, err
}

func (r *recorder) startWave() { r.at, r.wave.open = time.Now(), true }

// Done implements k3.Feed: the first of a wave ends it.
func (r *recorder) Done(int) {
	if r.wave.open {
		r.times.waves = append(r.times.waves, waveTime{r.wave.experts, r.wave.rows, r.lap()})
		r.wave.open, r.wave.experts, r.wave.rows = false, 0, 0
	}
	r.at = time.Now()
}

// End implements k3.Feed. It comes once more at the end of the pass.
func (r *recorder) End() {
	if r.layer >= 0 {
		r.times.layers[r.layer].After = r.lap()
	}
	r.layer = -1
}

func (r *recorder) expert(e int) (x k3.Expert, err error) {
	t, err := r.ck.Expert(r.layer, e)
	if err != nil {
		return x, err
	}
	for _, m := range []struct {
		from *checkpoint.ExpertMatrix
		to   *kernel.Matrix
	}{{&t.W1, &x.W1}, {&t.W3, &x.W3}, {&t.W2, &x.W2}} {
		format, scale := kernel.BF16, []byte(nil)
		switch {
		case t.Format == checkpoint.MXFP4:
			format, scale = kernel.MXFP4, m.from.Scale.Data
		case m.from.Weight.DType == checkpoint.F32:
			format = kernel.F32
		}
		if *m.to, err = kernel.NewMatrix(format, m.from.Rows, m.from.Cols, m.from.Weight.Data, scale, 0); err != nil {
			return x, err
		}
	}
	return x, nil
}

// A recording is what a text asks of the experts, and what its arithmetic costs.
type recording struct {
	prompt, answer []simulate.Pass
	cost           simulate.Arithmetic
}

// timings is how often the passes are timed.
const timings = 3

// record runs the tokens of a prompt in passes of rows and those of an answer one by
// one over the mapped model.
func record(ctx context.Context, ck *checkpoint.Checkpoint, table *kernel.Table, threads, rows int, prompt, answer []int) (*recording, error) {
	model, err := k3.Load(ck)
	if err != nil {
		return nil, err
	}
	pool := kernel.NewPool(table, threads)
	defer pool.Close()
	r := &recorder{ck: ck}
	model = model.WithExperts(r)
	runner := model.NewRunner(pool)
	out := &recording{cost: simulate.Arithmetic{Passes: map[int]*simulate.PassCost{}}}
	times := map[int][]passTimes{} // by rows
	for run := range 2 * timings {
		r.alone = run%2 == 1
		st := model.NewState()
		out.prompt, out.answer = nil, nil
		forward := func(ids []int, head bool) error {
			want := k3.NoLogits
			if head {
				want = k3.LastLogits
			}
			r.begin(len(ids), head)
			if _, err := runner.Forward(ctx, st, ids, want); err != nil {
				return err
			}
			r.end()
			times[len(ids)] = append(times[len(ids)], r.times)
			return nil
		}
		for at := 0; at < len(prompt); at += rows {
			end := min(at+rows, len(prompt))
			if err := forward(prompt[at:end], end == len(prompt)); err != nil {
				return nil, err
			}
			out.prompt = append(out.prompt, r.pass)
		}
		for i := range answer {
			if err := forward(answer[i:i+1], true); err != nil {
				return nil, err
			}
			out.answer = append(out.answer, r.pass)
		}
	}
	for n, t := range times {
		out.cost.Passes[n] = costOf(t)
	}
	return out, nil
}

// costOf makes a cost of the times of passes of equal length.
func costOf(times []passTimes) *simulate.PassCost {
	c := &simulate.PassCost{Layers: make([]simulate.LayerCost, len(times[0].layers))}
	of := func(part func(*passTimes) time.Duration) time.Duration {
		var all []time.Duration
		for i := range times {
			all = append(all, part(&times[i]))
		}
		return median(all)
	}
	for l := range c.Layers {
		c.Layers[l] = simulate.LayerCost{
			Guess:     of(func(p *passTimes) time.Duration { return p.layers[l].Guess }),
			Attention: of(func(p *passTimes) time.Duration { return p.layers[l].Attention }),
			Beside:    of(func(p *passTimes) time.Duration { return p.layers[l].Beside }),
			After:     of(func(p *passTimes) time.Duration { return p.layers[l].After }),
		}
	}
	c.Head = of(func(p *passTimes) time.Duration { return p.head })
	c.Wave, c.Expert, c.Row = fitWaves(times)
	return c
}

// fitWaves finds what a wave costs: its rows from waves of one expert, what is left
// for each expert from the difference to waves of many.
func fitWaves(times []passTimes) (wave, each, row time.Duration) {
	var one, many []waveTime
	for i := range times {
		for _, w := range times[i].waves {
			if w.experts == 1 {
				one = append(one, w)
			} else {
				many = append(many, w)
			}
		}
	}
	if len(one) == 0 || len(many) == 0 {
		return 0, 0, 0
	}
	one, many = calm(one), calm(many)
	// Least squares of time over rows.
	var n, sx, sy, sxx, sxy float64
	for _, w := range one {
		x, y := float64(w.rows), float64(w.took)
		n, sx, sy, sxx, sxy = n+1, sx+x, sy+y, sxx+x*x, sxy+x*y
	}
	slope := 0.0
	if d := n*sxx - sx*sx; d > 1e-9 {
		slope = max((n*sxy-sx*sy)/d, 0)
	}
	alone := (sy - slope*sx) / n // a wave and one expert, without rows
	var experts, left float64
	for _, w := range many {
		experts += float64(w.experts)
		left += float64(w.took) - slope*float64(w.rows)
	}
	// left = waves*(alone - each) + experts*each
	waves := float64(len(many))
	e := min(max((left-waves*alone)/(experts-waves), 0), alone)
	return time.Duration(alone - e), time.Duration(e), time.Duration(slope)
}

// calm leaves out the slower quarter of waves of equal size: those in which something
// else ran.
func calm(ws []waveTime) []waveTime {
	slices.SortFunc(ws, func(a, b waveTime) int { return int(a.took) - int(b.took) })
	by := map[[2]int][]waveTime{}
	for _, w := range ws {
		k := [2]int{w.experts, w.rows}
		by[k] = append(by[k], w)
	}
	var out []waveTime
	for _, same := range by {
		out = append(out, same[:(3*len(same)+3)/4]...)
	}
	return out
}

func median[T int | int64 | float64 | time.Duration](v []T) T {
	if len(v) == 0 {
		return 0
	}
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

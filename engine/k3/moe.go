package k3

import (
	"context"
	"errors"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// maxTopK bounds the experts per token; the router's selection has room for it.
const maxTopK = 256

// moeWeights is one LatentMoE feed-forward without its routed experts (spec 3.5).
type moeWeights struct {
	router   kernel.Matrix // [Experts, Hidden]
	bias     []float32     // [Experts]: for the choice only
	down, up kernel.Matrix // [Latent, Hidden], [Hidden, Latent]
	norm     []float32     // [Latent], nil if the model has none
	shared   *mlpWeights
}

func (l *loader) moe(c *checkpoint.Config, p string) *moeWeights {
	w := &moeWeights{
		router: l.matrix(p+"gate.weight", c.Experts, c.Hidden),
		bias:   l.vector(p+"gate.e_score_correction_bias", c.Experts),
		down:   l.matrix(p+"routed_expert_down_proj.weight", c.Latent, c.Hidden),
		up:     l.matrix(p+"routed_expert_up_proj.weight", c.Hidden, c.Latent),
		shared: l.mlp(p+"shared_experts.", c.Hidden, c.SharedIntermediate()),
	}
	if c.LatentNorm {
		w.norm = l.vector(p+"routed_expert_norm.weight", c.Latent)
	}
	return w
}

// waveRows is how many (row, expert) pairs suffice for a wave: the last expert may
// exceed it by its rows. It bounds the memory of a long prefill: 4096 pairs of K3
// take 220 MB.
const waveRows = 4096

// moeBuffers is the working memory of the LatentMoE layers of a pass.
type moeBuffers struct {
	r      *Runner
	logits []float32 // [n][Experts]
	score  []float32 // [Experts]
	ids    []int32   // [n][TopK]: the router's order
	weight []float32 // [n][TopK]
	z      []float32 // [n][Latent]
	slot   []float32 // [n][TopK][Latent]: each expert's result in its own place
	sum    []float32 // [n][Latent]
	back   []float32 // [n][Hidden]: the routed part, back at full width

	// The rows of each expert: pairs (row*TopK + slot), grouped by expert.
	start []int   // [Experts+1]
	pairs []int32 // [n*TopK]

	xs       []float32 // [pairs of the wave][Latent]
	gate, up []float32 // [pairs of the wave][ExpertIntermediate]
	ys       []float32 // [pairs of the wave][Latent]

	feed    Feed
	want    []Want   // experts of the layer, the most wanted first
	take    []int    // indices into want: the experts of the wave
	experts []Expert // their matrices

	likely []Want  // a guess
	votes  []int32 // [Experts]: rows that would choose an expert

	jobs   []kernel.Job
	shared mlpBuffers
	situ   situTask
	gather sumTask
	first  [4]kernel.Job
}

func (b *moeBuffers) init(r *Runner) {
	b.r = r
	b.shared.init(r)
	b.situ.r = r
	b.gather.b = b
	b.feed = r.m.experts.NewFeed()
}

// run writes the feed-forward of every row of r.x to r.u.
func (b *moeBuffers) run(ctx context.Context, w *moeWeights, layer int) error {
	r, c, n := b.r, b.r.m.cfg, b.r.n
	b.logits = sized(b.logits, n*c.Experts)
	b.z = sized(b.z, n*c.Latent)
	b.shared.size(w.shared)
	b.first = [4]kernel.Job{
		{Y: b.logits, W: &w.router, X: r.x, N: n},
		{Y: b.z, W: &w.down, X: r.x, N: n},
		b.shared.gateJob(w.shared, r.x),
		b.shared.upJob(w.shared, r.x),
	}
	defer b.feed.End()
	if b.feed.Streams() {
		// The router alone, so that the reads are on their way as early as can be;
		// what does not need them runs meanwhile.
		r.pool.MatMuls(b.first[:1])
		if err := b.choose(ctx, w, layer); err != nil {
			return err
		}
		r.pool.MatMuls(b.first[1:])
		b.shared.finish(w.shared, r.u)
		if err := b.routed(ctx); err != nil {
			return err
		}
	} else {
		// Nothing to wait for: one parallel region instead of two.
		r.pool.MatMuls(b.first[:])
		if err := b.choose(ctx, w, layer); err != nil {
			return err
		}
		if err := b.routed(ctx); err != nil {
			return err
		}
		b.shared.finish(w.shared, r.u)
	}
	b.sum = sized(b.sum, n*c.Latent)
	b.back = sized(b.back, n*c.Hidden)
	b.gather.norm = w.norm
	r.pool.Do(&b.gather, n, rowGrain(c.Latent*c.TopK))
	r.pool.MatMul(b.back, &w.up, b.sum, n)
	// The routed part comes first in the sum, as in the specification's step 8.
	r.pool.Add(b.back, r.u)
	copy(r.u, b.back)
	return nil
}

// choose routes all rows and asks for the experts.
func (b *moeBuffers) choose(ctx context.Context, w *moeWeights, layer int) error {
	b.route(w, layer)
	b.group()
	c := b.r.m.cfg
	b.want = b.want[:0]
	if b.r.n == 1 {
		for _, e := range b.ids {
			b.want = append(b.want, Want{e, 1}) // the router's order
		}
	} else {
		for e := range c.Experts {
			if n := b.start[e+1] - b.start[e]; n > 0 {
				b.want = append(b.want, Want{int32(e), int32(n)})
			}
		}
	}
	return b.feed.Begin(ctx, layer, b.want)
}

// route chooses the experts of every row and their weights: the choice uses score
// plus bias, the weight the score alone (steps 1 to 3).
func (b *moeBuffers) route(w *moeWeights, layer int) {
	r, c, n := b.r, b.r.m.cfg, b.r.n
	k := c.TopK
	b.score = sized(b.score, c.Experts)
	b.weight = sized(b.weight, n*k)
	if cap(b.ids) < n*k {
		b.ids = make([]int32, n*k)
	}
	b.ids = b.ids[:n*k]
	for i := range n {
		ids, weight := b.ids[i*k:(i+1)*k], b.weight[i*k:(i+1)*k]
		r.pool.Sigmoid(b.score, b.logits[i*c.Experts:(i+1)*c.Experts])
		kernel.TopK(ids, b.score, w.bias)
		var sum float32
		for j, e := range ids {
			weight[j] = b.score[e]
			sum += b.score[e]
		}
		for j := range weight {
			if c.Renormalize {
				weight[j] /= sum + 1e-20
			}
			weight[j] *= c.RoutedScale
		}
	}
	if o := r.Observe; o != nil && o.Routes != nil {
		o.Routes(layer, n, b.logits, b.ids, b.weight)
	}
}

// routed runs the chosen experts, each once over all its rows and as it comes,
// and leaves the results in their slots (steps 4 and 5).
func (b *moeBuffers) routed(ctx context.Context) error {
	b.slot = sized(b.slot, len(b.pairs)*b.r.m.cfg.Latent)
	for left := len(b.want); left > 0; left -= len(b.take) {
		if err := b.gatherWave(); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return err
		}
		b.wave()
		for _, i := range b.take {
			b.feed.Done(i)
		}
	}
	return nil
}

// gatherWave takes what is in memory: at least one expert, and no more once their
// rows suffice for a wave.
func (b *moeBuffers) gatherWave() error {
	b.take, b.experts = b.take[:0], b.experts[:0]
	for rows := 0; rows < waveRows; {
		i, x, ok, err := b.feed.Next(len(b.take) == 0)
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		b.take, b.experts = append(b.take, i), append(b.experts, x)
		rows += int(b.want[i].Rows)
	}
	if len(b.take) == 0 {
		return errNoExpert
	}
	return nil
}

// errNoExpert is a mistake of a Feed.
var errNoExpert = errors.New("an expert that was asked for did not come")

// group sorts the pairs by expert; within an expert rows stay in order.
func (b *moeBuffers) group() {
	c := b.r.m.cfg
	if len(b.start) < c.Experts+1 {
		b.start = make([]int, c.Experts+1)
	}
	clear(b.start)
	for _, e := range b.ids {
		b.start[e+1]++
	}
	for e := range c.Experts {
		b.start[e+1] += b.start[e]
	}
	if cap(b.pairs) < len(b.ids) {
		b.pairs = make([]int32, len(b.ids))
	}
	b.pairs = b.pairs[:len(b.ids)]
	for p, e := range b.ids {
		b.pairs[b.start[e]] = int32(p)
		b.start[e]++
	}
	// Filling moved every start to its end; move them back.
	copy(b.start[1:], b.start[:c.Experts])
	b.start[0] = 0
}

// wave computes the experts of b.take, whose weights are in b.experts.
func (b *moeBuffers) wave() {
	r, c := b.r, b.r.m.cfg
	n := 0
	for _, i := range b.take {
		n += int(b.want[i].Rows)
	}
	b.xs = sized(b.xs, n*c.Latent)
	b.ys = sized(b.ys, n*c.Latent)
	b.gate = sized(b.gate, n*c.ExpertIntermediate)
	b.up = sized(b.up, n*c.ExpertIntermediate)
	b.jobs = b.jobs[:0]
	b.each(func(x *Expert, at int, pairs []int32) {
		for j, p := range pairs {
			row := int(p) / c.TopK
			copy(b.xs[(at+j)*c.Latent:(at+j+1)*c.Latent], b.z[row*c.Latent:])
		}
		in := b.xs[at*c.Latent:]
		b.jobs = append(b.jobs,
			kernel.Job{Y: b.gate[at*c.ExpertIntermediate:], W: &x.W1, X: in, N: len(pairs)},
			kernel.Job{Y: b.up[at*c.ExpertIntermediate:], W: &x.W3, X: in, N: len(pairs)})
	})
	r.pool.MatMuls(b.jobs)
	b.situ.run(b.gate, b.up)
	b.jobs = b.jobs[:0]
	b.each(func(x *Expert, at int, pairs []int32) {
		b.jobs = append(b.jobs, kernel.Job{Y: b.ys[at*c.Latent:], W: &x.W2, X: b.gate[at*c.ExpertIntermediate:], N: len(pairs)})
	})
	r.pool.MatMuls(b.jobs)
	b.each(func(_ *Expert, at int, pairs []int32) {
		for j, p := range pairs {
			copy(b.slot[int(p)*c.Latent:(int(p)+1)*c.Latent], b.ys[(at+j)*c.Latent:])
		}
	})
}

// each visits the experts of a wave: where their rows begin in the wave, and their
// pairs.
func (b *moeBuffers) each(do func(x *Expert, at int, pairs []int32)) {
	at := 0
	for k, i := range b.take {
		e := b.want[i].Expert
		pairs := b.pairs[b.start[e]:b.start[e+1]]
		do(&b.experts[k], at, pairs)
		at += len(pairs)
	}
}

// sumTask adds up the slots of each row in the router's order, whatever the order
// they were computed in, and norms the sum (steps 6 and 7). Items are rows.
type sumTask struct {
	b    *moeBuffers
	norm []float32
}

func (t *sumTask) Run(_, lo, hi int) {
	b, c, pool := t.b, t.b.r.m.cfg, t.b.r.pool
	for i := lo; i < hi; i++ {
		sum := b.sum[i*c.Latent : (i+1)*c.Latent]
		clear(sum)
		for j := range c.TopK {
			p := i*c.TopK + j
			pool.Axpy(sum, b.weight[p], b.slot[p*c.Latent:(p+1)*c.Latent])
		}
		if t.norm != nil {
			pool.RMSNorm(sum, sum, t.norm, c.Eps)
		}
	}
}

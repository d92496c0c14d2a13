package k3

import (
	"math"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// latentEps is the epsilon of the two norms inside MLA. The official code builds
// them with its class default, not with rms_norm_eps (spec 3.6).
const latentEps = 1e-6

// mlaWeights is one gated latent attention mixer (spec 3.4).
type mlaWeights struct {
	qa     kernel.Matrix // [QLoRA, Hidden]
	qaNorm []float32     // [QLoRA]
	qb     kernel.Matrix // [Heads*(QKNope+QKRope), QLoRA]
	kva    kernel.Matrix // [KVLoRA+QKRope, Hidden]
	kvNorm []float32     // [KVLoRA]
	kvb    kernel.Matrix // [Heads*(QKNope+VHead), KVLoRA]: per head the K rows, then the V rows
	g      kernel.Matrix // [Heads*VHead, Hidden]: output gate
	o      kernel.Matrix // [Hidden, Heads*VHead]
}

func (l *loader) mla(c *checkpoint.Config, p string) *mlaWeights {
	return &mlaWeights{
		qa:     l.matrix(p+"q_a_proj.weight", c.QLoRA, c.Hidden),
		qaNorm: l.vector(p+"q_a_layernorm.weight", c.QLoRA),
		qb:     l.matrix(p+"q_b_proj.weight", c.Heads*(c.QKNope+c.QKRope), c.QLoRA),
		kva:    l.matrix(p+"kv_a_proj_with_mqa.weight", c.KVLoRA+c.QKRope, c.Hidden),
		kvNorm: l.vector(p+"kv_a_layernorm.weight", c.KVLoRA),
		kvb:    l.matrix(p+"kv_b_proj.weight", c.Heads*(c.QKNope+c.VHead), c.KVLoRA),
		g:      l.matrix(p+"g_proj.weight", c.MLAInner(), c.Hidden),
		o:      l.matrix(p+"o_proj.weight", c.Hidden, c.MLAInner()),
	}
}

// mlaBuffers is the working memory of the MLA layers of a pass. The absorbed form
// is used for one row and for many: the keys and values of the past are never
// expanded, the query is brought to the latent space instead.
type mlaBuffers struct {
	r    *Runner
	cq   []float32 // [n][QLoRA]
	q    []float32 // [n][Heads][QKNope+QKRope]
	kv   []float32 // [n][KVLoRA+QKRope], unnormalised
	gate []float32 // [n][Heads*VHead]
	qlat []float32 // [n][Heads][KVLoRA+QKRope]: the query in latent space
	olat []float32 // [n][Heads][KVLoRA]: the attention output in latent space
	out  []float32 // [n][Heads*VHead]
	// score holds the attention weights of one item, per worker: [block][positions].
	score [][]float32
	w     *mlaWeights
	layer int
	block int // heads per item of attend
	jobs  [3]kernel.Job

	absorb absorbTask
	attend attendTask
	expand expandTask
}

func (b *mlaBuffers) init(r *Runner) {
	b.r = r
	b.score = make([][]float32, r.pool.Workers())
	b.absorb.b, b.attend.b, b.expand.b = b, b, b
	b.block = headsPerItem(r.m.cfg.Heads, r.pool.Workers())
}

// headsPerItem: heads that share an item read the cached latents once together.
func headsPerItem(heads, workers int) int { return min(max((heads+workers-1)/workers, 1), 8) }

// run mixes r.x into r.u and appends the rows' latents to the cache.
func (b *mlaBuffers) run(w *mlaWeights, layer int) {
	r, c := b.r, b.r.m.cfg
	n, width := r.n, c.KVLoRA+c.QKRope
	b.w, b.layer = w, layer
	b.cq = sized(b.cq, n*c.QLoRA)
	b.kv = sized(b.kv, n*width)
	b.gate = sized(b.gate, n*c.MLAInner())
	b.jobs = [3]kernel.Job{
		{Y: b.cq, W: &w.qa, X: r.x, N: n},
		{Y: b.kv, W: &w.kva, X: r.x, N: n},
		{Y: b.gate, W: &w.g, X: r.x, N: n},
	}
	r.pool.MatMuls(b.jobs[:])
	for j, p := range r.parts {
		fresh := p.State.layers[layer].grow(len(p.IDs), width)
		for t := range p.IDs {
			i := r.from[j] + t
			row := b.cq[i*c.QLoRA : (i+1)*c.QLoRA]
			r.pool.RMSNorm(row, row, w.qaNorm, latentEps)
			from, to := b.kv[i*width:(i+1)*width], fresh[t*width:(t+1)*width]
			r.pool.RMSNorm(to[:c.KVLoRA], from[:c.KVLoRA], w.kvNorm, latentEps)
			copy(to[c.KVLoRA:], from[c.KVLoRA:]) // neither normalised nor rotated
		}
	}
	b.q = sized(b.q, n*c.Heads*(c.QKNope+c.QKRope))
	r.pool.MatMul(b.q, &w.qb, b.cq, n)

	b.qlat = sized(b.qlat, n*c.Heads*width)
	b.olat = sized(b.olat, n*c.Heads*c.KVLoRA)
	b.out = sized(b.out, n*c.MLAInner())
	r.pool.Do(&b.absorb, c.Heads, 1)
	r.pool.Do(&b.attend, n*b.blocks(), 1)
	r.pool.Do(&b.expand, c.Heads, 1)
	r.pool.SigmoidMul(b.out, b.gate)
	r.pool.MatMul(r.u, &w.o, b.out, n)
}

// blocks is the number of groups of heads.
func (b *mlaBuffers) blocks() int { return (b.r.m.cfg.Heads + b.block - 1) / b.block }

// absorbTask brings the query of each head to latent space: K_h^T q_nope, and the
// shared key part's query beside it. Items are heads; a head's K block is read
// once for all rows.
type absorbTask struct{ b *mlaBuffers }

func (t *absorbTask) Run(worker, lo, hi int) {
	b, c := t.b, t.b.r.m.cfg
	qw, width := c.QKNope+c.QKRope, c.KVLoRA+c.QKRope
	for h := lo; h < hi; h++ {
		at := h * (c.QKNope + c.VHead)
		keys := b.w.kvb.Slice(at, at+c.QKNope)
		b.r.pool.MatTMul(b.r.pool.Scratch(worker), b.qlat[h*width:], c.Heads*width, &keys, 0, c.KVLoRA,
			b.q[h*qw:], c.Heads*qw, b.r.n)
		for i := range b.r.n {
			copy(b.qlat[(i*c.Heads+h)*width+c.KVLoRA:][:c.QKRope], b.q[(i*c.Heads+h)*qw+c.QKNope:][:c.QKRope])
		}
	}
}

// scoreStep is by how many positions the room for scores grows.
const scoreStep = 64

func scoreRoom(positions int) int { return (positions + scoreStep - 1) / scoreStep * scoreStep }

// attendTask scores the cached latents, takes the softmax and sums the latents by
// it. Items are (row, block of heads); a row sees the positions of its part up to
// its own.
type attendTask struct{ b *mlaBuffers }

func (t *attendTask) Run(worker, lo, hi int) {
	b, c, pool := t.b, t.b.r.m.cfg, t.b.r.pool
	width, blocks := c.KVLoRA+c.QKRope, b.blocks()
	scale := float32(1 / math.Sqrt(float64(c.QKNope+c.QKRope)))
	for item := lo; item < hi; item++ {
		i, h := item/blocks, item%blocks*b.block
		heads := min(b.block, c.Heads-h)
		part := b.r.part[i]
		st := b.r.parts[part].State
		seen := st.pos + i - b.r.from[part] + 1
		// Room for some positions more, or every token would ask for new memory.
		b.score[worker] = sized(b.score[worker], heads*scoreRoom(seen))
		score := b.score[worker][:heads*seen]
		past := kernel.F32View(st.layers[b.layer].latent, seen, width, width)
		pool.Table.MatMul(pool.Scratch(worker), score, seen, &past, 0, seen, b.qlat[(i*c.Heads+h)*width:], width, heads)
		for j := range heads {
			row := score[j*seen : (j+1)*seen]
			pool.Scale(row, scale)
			pool.Softmax(row)
		}
		past.Cols = c.KVLoRA
		pool.MatTMul(pool.Scratch(worker), b.olat[(i*c.Heads+h)*c.KVLoRA:], c.KVLoRA, &past, 0, c.KVLoRA,
			score, seen, heads)
	}
}

// expandTask brings the latent outputs back to each head's values: V_h o_lat.
// Items are heads.
type expandTask struct{ b *mlaBuffers }

func (t *expandTask) Run(worker, lo, hi int) {
	b, c := t.b, t.b.r.m.cfg
	for h := lo; h < hi; h++ {
		at := h*(c.QKNope+c.VHead) + c.QKNope
		values := b.w.kvb.Slice(at, at+c.VHead)
		b.r.pool.Table.MatMul(b.r.pool.Scratch(worker), b.out[h*c.VHead:], c.MLAInner(), &values, 0, c.VHead,
			b.olat[h*c.KVLoRA:], c.Heads*c.KVLoRA, b.r.n)
	}
}

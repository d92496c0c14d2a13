package k3

import (
	"math"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// l2Eps is what the official kernel adds under the root when it normalises the
// keys and queries of KDA (spec 3.6).
const l2Eps = 1e-6

// kdaWeights is one Kimi Delta Attention mixer (spec 3.3). C = KDAInner = heads *
// head dim; channel c = head*dim + d.
type kdaWeights struct {
	q, k, v, g kernel.Matrix // [C, Hidden]; g is the output gate
	fa         kernel.Matrix // [dim, Hidden]: forget gate, low-rank half
	fb         kernel.Matrix // [C, dim]
	b          kernel.Matrix // [heads, Hidden]: write strength
	o          kernel.Matrix // [Hidden, C]
	taps       [3][]float32  // q, k, v: [ConvKernel][C], oldest tap first
	expA       []float32     // [heads]: exp(A_log), per head (pitfall 1)
	dt         []float32     // [C]
	norm       []float32     // [dim]: shared by all heads
}

func (l *loader) kda(c *checkpoint.Config, layer int, p string) *kdaWeights {
	inner, dim, heads := c.KDAInner(), c.KDAHeadDim, c.KDAHeads
	w := &kdaWeights{
		q:    l.matrix(p+"q_proj.weight", inner, c.Hidden),
		k:    l.matrix(p+"k_proj.weight", inner, c.Hidden),
		v:    l.matrix(p+"v_proj.weight", inner, c.Hidden),
		g:    l.matrix(p+"g_proj.weight", inner, c.Hidden),
		fa:   l.matrix(p+"f_a_proj.weight", dim, c.Hidden),
		fb:   l.matrix(p+"f_b_proj.weight", inner, dim),
		b:    l.matrix(p+"b_proj.weight", heads, c.Hidden),
		o:    l.matrix(p+"o_proj.weight", c.Hidden, inner),
		dt:   l.vector(p+"dt_bias", inner),
		norm: l.vector(p+"o_norm.weight", dim),
	}
	for i, name := range []string{"q_conv1d.weight", "k_conv1d.weight", "v_conv1d.weight"} {
		w.taps[i] = transpose(l.vector(p+name, inner, 1, c.ConvKernel), inner, c.ConvKernel)
	}
	if l.err == nil {
		w.expA, l.err = l.ck.ALog(layer)
	}
	for i, a := range w.expA {
		w.expA[i] = kernel.Exp(a)
	}
	return w
}

// transpose returns x [rows][cols] as [cols][rows]: a tap then multiplies all
// channels at once.
func transpose(x []float32, rows, cols int) []float32 {
	out := make([]float32, len(x)) // empty after an earlier error
	for i := range x {
		out[i%cols*rows+i/cols] = x[i]
	}
	return out
}

// kdaBuffers is the working memory of the KDA layers of a pass and the task that
// runs their heads.
type kdaBuffers struct {
	r *Runner
	// raw holds the projections before the convolution, q, k, v, part after part:
	// [3][taps-1+rows][C]; the first rows are those of the tokens before this pass.
	raw   [3][]float32
	proj  [3][]float32 // [n][C]: with several parts, before they get their place in raw
	f     []float32    // [n][C]: forget gate before its bias
	fa    []float32    // [n][dim]
	beta  []float32    // [n][heads]
	gate  []float32    // [n][C]
	out   []float32    // [n][C]
	work  [][]float32
	w     *kdaWeights
	layer int
	jobs  [6]kernel.Job
}

func (b *kdaBuffers) init(r *Runner) {
	b.r = r
	b.work = make([][]float32, r.pool.Workers())
	for i := range b.work {
		b.work[i] = kernel.Floats(5 * r.m.cfg.KDAHeadDim)
	}
}

// run mixes r.x into r.u and advances the state of the layer by all rows.
func (b *kdaBuffers) run(w *kdaWeights, layer int) {
	r, c := b.r, b.r.m.cfg
	n, inner := r.n, c.KDAInner()
	b.f = sized(b.f, n*inner)
	b.fa = sized(b.fa, n*c.KDAHeadDim)
	b.beta = sized(b.beta, n*c.KDAHeads)
	b.gate = sized(b.gate, n*inner)
	b.out = sized(b.out, n*inner)
	y := b.load(layer)
	b.jobs = [6]kernel.Job{
		{Y: y[0], W: &w.q, X: r.x, N: n},
		{Y: y[1], W: &w.k, X: r.x, N: n},
		{Y: y[2], W: &w.v, X: r.x, N: n},
		{Y: b.gate, W: &w.g, X: r.x, N: n},
		{Y: b.fa, W: &w.fa, X: r.x, N: n},
		{Y: b.beta, W: &w.b, X: r.x, N: n},
	}
	r.pool.MatMuls(b.jobs[:])
	b.spread()
	r.pool.MatMul(b.f, &w.fb, b.fa, n)
	r.pool.Sigmoid(b.beta, b.beta)
	b.w, b.layer = w, layer
	if r.draft.on {
		r.draft.layer(layer, b)
	}
	r.pool.Do(b, c.KDAHeads, 1)
	b.store(layer)
	r.pool.MatMul(r.u, &w.o, b.out, n)
}

// rows is where the rows of a part stand in raw, those before the pass included.
func (b *kdaBuffers) rows(raw []float32, part int) []float32 {
	old, inner := b.r.m.cfg.ConvKernel-1, b.r.m.cfg.KDAInner()
	from := part*old + b.r.from[part]
	return raw[from*inner : (from+old+len(b.r.parts[part].IDs))*inner]
}

// load brings the rows before the pass from the states to raw, and says where the
// projections go: with one part to their place at once.
func (b *kdaBuffers) load(layer int) (y [3][]float32) {
	r, c := b.r, b.r.m.cfg
	old, inner := c.ConvKernel-1, c.KDAInner()
	for i := range b.raw {
		b.raw[i] = sized(b.raw[i], (len(r.parts)*old+r.n)*inner)
		for j, p := range r.parts {
			copy(b.rows(b.raw[i], j), p.State.layers[layer].conv[i*old*inner:(i+1)*old*inner])
		}
		if y[i] = b.raw[i][old*inner:]; len(r.parts) > 1 {
			b.proj[i] = sized(b.proj[i], r.n*inner)
			y[i] = b.proj[i]
		}
	}
	return y
}

// spread puts the projections of several parts in their places.
func (b *kdaBuffers) spread() {
	r, c := b.r, b.r.m.cfg
	if len(r.parts) == 1 {
		return
	}
	inner := c.KDAInner()
	for i := range b.raw {
		for j := range r.parts {
			copy(b.rows(b.raw[i], j)[(c.ConvKernel-1)*inner:], b.proj[i][r.from[j]*inner:])
		}
	}
}

// store keeps the last rows for the next pass.
func (b *kdaBuffers) store(layer int) {
	old, inner := b.r.m.cfg.ConvKernel-1, b.r.m.cfg.KDAInner()
	for i := range b.raw {
		for j, p := range b.r.parts {
			rows := b.rows(b.raw[i], j)
			copy(p.State.layers[layer].conv[i*old*inner:(i+1)*old*inner], rows[len(rows)-old*inner:])
		}
	}
}

// Run scans heads [lo, hi) over all rows of each part, oldest first. The state of a
// head stays in the cache of the worker while it does.
func (b *kdaBuffers) Run(worker, lo, hi int) {
	for h := lo; h < hi; h++ {
		for part := range b.r.parts {
			b.scan(b.work[worker], h, part)
		}
	}
}

// scan runs one head over the rows of one part.
func (b *kdaBuffers) scan(buf []float32, h, part int) {
	c, dim := b.r.m.cfg, b.r.m.cfg.KDAHeadDim
	inner := c.KDAInner()
	cut := func(i int) []float32 { return buf[i*dim : (i+1)*dim : (i+1)*dim] }
	q, k, v, decay, u := cut(0), cut(1), cut(2), cut(3), cut(4)
	qk := [3][]float32{q, k, v}
	k0 := b.r.pool
	scale := float32(1 / math.Sqrt(float64(dim)))
	s := b.r.parts[part].State.layers[b.layer].s[h*dim*dim : (h+1)*dim*dim]
	dt := b.w.dt[h*dim : (h+1)*dim]
	raw := [3][]float32{b.rows(b.raw[0], part), b.rows(b.raw[1], part), b.rows(b.raw[2], part)}
	from := b.r.from[part]
	var note *draftLayer
	if b.r.draft.on {
		note = &b.r.draft.layers[b.layer]
		copy(note.s[h*dim*dim:], s) // it comes to the cache for the first row anyway
	}
	for t := range b.r.parts[part].IDs {
		at := t*inner + h*dim
		for i, y := range qk {
			clear(y)
			for j := range c.ConvKernel {
				o := j*inner + h*dim
				k0.FMA(y, b.w.taps[i][o:o+dim], raw[i][at+j*inner:at+j*inner+dim])
			}
			k0.SiLU(y)
		}
		k0.L2Norm(q, l2Eps, scale)
		k0.L2Norm(k, l2Eps, 1)
		at += from * inner // in what has no rows from before the pass
		f := b.f[at : at+dim]
		if c.HasGateLowerBound {
			k0.DecayLower(decay, f, dt, b.w.expA[h], c.GateLowerBound)
		} else {
			k0.DecaySoftplus(decay, f, dt, b.w.expA[h])
		}
		if note != nil {
			copy(note.k[at:], k)
			copy(note.v[at:], v)
			copy(note.decay[at:], decay)
		}
		out := b.out[at : at+dim]
		k0.KDAStep(out, s, q, k, v, decay, b.beta[(from+t)*c.KDAHeads+h], u)
		k0.RMSNorm(out, out, b.w.norm, c.Eps)
		k0.SigmoidMul(out, b.gate[at:at+dim])
	}
}

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
	// raw holds the projections before the convolution, q, k, v: [3][taps-1+n][C];
	// the first rows are those of the tokens before this pass.
	raw   [3][]float32
	f     []float32 // [n][C]: forget gate before its bias
	fa    []float32 // [n][dim]
	beta  []float32 // [n][heads]
	gate  []float32 // [n][C]
	out   []float32 // [n][C]
	work  [][]float32
	w     *kdaWeights
	state *layerState
	jobs  [6]kernel.Job
}

func (b *kdaBuffers) init(r *Runner) {
	b.r = r
	b.work = make([][]float32, r.pool.Workers())
	for i := range b.work {
		b.work[i] = make([]float32, 5*r.m.cfg.KDAHeadDim)
	}
}

// run mixes r.x into r.u and advances the state of the layer by all rows.
func (b *kdaBuffers) run(w *kdaWeights, st *layerState) {
	r, c := b.r, b.r.m.cfg
	n, inner, old := r.n, c.KDAInner(), c.ConvKernel-1
	for i := range b.raw {
		b.raw[i] = sized(b.raw[i], (old+n)*inner)
		copy(b.raw[i], st.conv[i*old*inner:(i+1)*old*inner])
	}
	b.f = sized(b.f, n*inner)
	b.fa = sized(b.fa, n*c.KDAHeadDim)
	b.beta = sized(b.beta, n*c.KDAHeads)
	b.gate = sized(b.gate, n*inner)
	b.out = sized(b.out, n*inner)
	b.jobs = [6]kernel.Job{
		{Y: b.raw[0][old*inner:], W: &w.q, X: r.x, N: n},
		{Y: b.raw[1][old*inner:], W: &w.k, X: r.x, N: n},
		{Y: b.raw[2][old*inner:], W: &w.v, X: r.x, N: n},
		{Y: b.gate, W: &w.g, X: r.x, N: n},
		{Y: b.fa, W: &w.fa, X: r.x, N: n},
		{Y: b.beta, W: &w.b, X: r.x, N: n},
	}
	r.pool.MatMuls(b.jobs[:])
	r.pool.MatMul(b.f, &w.fb, b.fa, n)
	r.pool.Sigmoid(b.beta, b.beta)
	b.w, b.state = w, st
	r.pool.Do(b, c.KDAHeads, 1)
	for i := range b.raw {
		copy(st.conv[i*old*inner:(i+1)*old*inner], b.raw[i][n*inner:])
	}
	r.pool.MatMul(r.u, &w.o, b.out, n)
}

// Run scans heads [lo, hi) over all rows, oldest first. The state of a head stays
// in the cache of the worker while it does.
func (b *kdaBuffers) Run(worker, lo, hi int) {
	c, dim := b.r.m.cfg, b.r.m.cfg.KDAHeadDim
	inner := c.KDAInner()
	buf := b.work[worker]
	cut := func(i int) []float32 { return buf[i*dim : (i+1)*dim : (i+1)*dim] }
	q, k, v, decay, u := cut(0), cut(1), cut(2), cut(3), cut(4)
	qk := [3][]float32{q, k, v}
	k0 := b.r.pool
	scale := float32(1 / math.Sqrt(float64(dim)))
	for h := lo; h < hi; h++ {
		s := b.state.s[h*dim*dim : (h+1)*dim*dim]
		dt := b.w.dt[h*dim : (h+1)*dim]
		for t := range b.r.n {
			at := t*inner + h*dim
			for i, y := range qk {
				clear(y)
				for j := range c.ConvKernel {
					o := j*inner + h*dim
					k0.FMA(y, b.w.taps[i][o:o+dim], b.raw[i][at+j*inner:at+j*inner+dim])
				}
				k0.SiLU(y)
			}
			k0.L2Norm(q, l2Eps, scale)
			k0.L2Norm(k, l2Eps, 1)
			f := b.f[at : at+dim]
			if c.HasGateLowerBound {
				k0.DecayLower(decay, f, dt, b.w.expA[h], c.GateLowerBound)
			} else {
				k0.DecaySoftplus(decay, f, dt, b.w.expA[h])
			}
			out := b.out[at : at+dim]
			k0.KDAStep(out, s, q, k, v, decay, b.beta[t*c.KDAHeads+h], u)
			k0.RMSNorm(out, out, b.w.norm, c.Eps)
			k0.SigmoidMul(out, b.gate[at:at+dim])
		}
	}
}

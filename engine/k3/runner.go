package k3

import (
	"context"
	"fmt"

	"deltafin/engine/kernel"
)

// A Runner does forward passes of one Model with one Pool. It owns the working
// memory, which grows to the largest number of rows asked for. It serves one call
// at a time.
type Runner struct {
	// Observe, if not nil, is called with intermediate results.
	Observe *Observer

	m    *Model
	pool *kernel.Pool

	n     int         // rows of this pass
	p     []float32   // [n][Hidden]: the running sum of the current block
	bank  [][]float32 // banked block sums, each [n][Hidden]
	banks int         // how many of bank are in use
	h, x  []float32   // [n][Hidden]: a mixture, and its norm
	u     []float32   // [n][Hidden]: what a sub-layer gave

	logits []float32
	mix    mixTask
	norm   normTask
	kda    kdaBuffers
	mla    mlaBuffers
	moe    moeBuffers
	mlp    mlpBuffers
}

// An Observer sees intermediate results of a pass. The slices are valid during
// the call. The functions run on the caller's goroutine of Forward.
type Observer struct {
	// Stream gets the running vector after the embedding (layer -1) and after
	// each layer: p [n][Hidden].
	Stream func(layer, n int, p []float32)
	// Routes gets the router's work: logits [n][Experts], and the chosen experts
	// and their weights [n][TopK] in the router's order.
	Routes func(layer, n int, logits []float32, experts []int32, weights []float32)
	// Layer is called when a layer is done.
	Layer func(layer int)
}

// NewRunner returns a Runner. The Pool is used, not owned.
func (m *Model) NewRunner(pool *kernel.Pool) *Runner {
	r := &Runner{m: m, pool: pool}
	r.mix.r, r.norm.r = r, r
	r.kda.init(r)
	r.mla.init(r)
	r.moe.init(r)
	r.mlp.init(r)
	return r
}

// Logits selects the positions whose logits Forward returns.
type Logits int

// None, last or all positions of a pass.
const (
	NoLogits Logits = iota
	LastLogits
	AllLogits
)

// Forward advances st by ids, one row each, and returns the logits of the wanted
// positions, [rows][Vocab], valid until the next call. The context is looked at
// between layers; if it ends, the error is its cause and st is broken. The same
// holds for an expert that cannot be read.
func (r *Runner) Forward(ctx context.Context, st *State, ids []int, want Logits) ([]float32, error) {
	c := r.m.cfg
	switch {
	case st.broken:
		return nil, ErrBroken
	case len(ids) == 0:
		return nil, nil
	case st.pos+len(ids) > c.MaxContext:
		return nil, fmt.Errorf("%d tokens do not fit: the context has %d and %d are used", len(ids), c.MaxContext, st.pos)
	}
	for i, id := range ids {
		if id < 0 || id >= c.Vocab {
			return nil, fmt.Errorf("token %d at position %d: ids run from 0 to %d", id, st.pos+i, c.Vocab-1)
		}
	}
	st.broken = true // until every layer has seen every row
	r.begin(ids)
	for i := range r.m.layers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := r.layer(ctx, st, i); err != nil {
			return nil, err
		}
		if o := r.Observe; o != nil {
			if o.Stream != nil {
				o.Stream(i, r.n, r.p)
			}
			if o.Layer != nil {
				o.Layer(i)
			}
		}
	}
	st.pos += r.n
	st.broken = false
	switch want {
	case LastLogits:
		return r.head(r.n-1, 1), nil
	case AllLogits:
		return r.head(0, r.n), nil
	}
	return nil, nil
}

// layer runs steps 1 to 7 of one layer (spec 3.2).
func (r *Runner) layer(ctx context.Context, st *State, i int) error {
	w, c := &r.m.layers[i], r.m.cfg
	r.mixRows(r.h, w.attnRes, 0, r.n)
	opens := i%c.ResBlock == 0
	if opens {
		r.bankPrefix()
	}
	r.normRows(r.x, r.h, w.attnNorm, r.n)
	if w.kda != nil {
		r.kda.run(w.kda, &st.layers[i])
	} else {
		r.mla.run(w.mla, &st.layers[i], st.pos)
	}
	if opens {
		copy(r.p, r.u)
	} else {
		r.pool.Add(r.p, r.u)
	}
	r.mixRows(r.h, w.mlpRes, 0, r.n)
	r.normRows(r.x, r.h, w.mlpNorm, r.n)
	if w.moe != nil {
		if err := r.moe.run(ctx, w.moe, i); err != nil {
			return err
		}
	} else {
		r.mlp.run(w.dense, r.u, r.x)
	}
	r.pool.Add(r.p, r.u)
	return nil
}

// normRows writes the RMSNorm of n rows of x to y.
func (r *Runner) normRows(y, x, w []float32, n int) {
	r.norm.y, r.norm.x, r.norm.w = y, x, w
	r.pool.Do(&r.norm, n, rowGrain(len(w)))
}

type normTask struct {
	r       *Runner
	y, x, w []float32
}

func (t *normTask) Run(_, lo, hi int) {
	d := len(t.w)
	for i := lo; i < hi; i++ {
		t.r.pool.RMSNorm(t.y[i*d:(i+1)*d], t.x[i*d:(i+1)*d], t.w, t.r.m.cfg.Eps)
	}
}

// rowGrain is how many rows of width d to hand out at a time: about 16,000
// elements, which take longer than handing them out.
func rowGrain(d int) int { return max(16384/max(d, 1), 1) }

// sized returns n floats, reusing buf if it is large enough. Content is arbitrary.
func sized(buf []float32, n int) []float32 {
	if cap(buf) < n {
		return make([]float32, n)
	}
	return buf[:n]
}

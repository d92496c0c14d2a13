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
	// Yield, if not nil, is called several times per layer, when nothing of the
	// Runner is at work: another Runner of the same Pool may run during the call.
	Yield func()

	m    *Model
	pool *kernel.Pool

	parts []Part      // the sequences of this pass
	from  []int       // [parts]: first row of each
	part  []int32     // [n]: part of each row
	n     int         // rows of this pass
	p     []float32   // [n][Hidden]: the running sum of the current block
	bank  [][]float32 // banked block sums, each [n][Hidden]
	banks int         // how many of bank are in use
	h, x  []float32   // [n][Hidden]: a mixture, and its norm
	u     []float32   // [n][Hidden]: what a sub-layer gave

	trunk  trunkLayers
	out    kernel.Matrix // [Vocab, Hidden]: the head
	logits []float32
	mix    mixTask
	norm   normTask
	kda    kdaBuffers
	mla    mlaBuffers
	moe    moeBuffers
	mlp    mlpBuffers
	draft  draftBuffers
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
	r.out = r.trunk.open(m)
	r.mix.r, r.norm.r = r, r
	r.kda.init(r)
	r.mla.init(r)
	r.moe.init(r)
	r.mlp.init(r)
	r.draft.r = r
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

// A Part is a sequence in a pass: its state and the ids that the pass adds.
type Part struct {
	State *State
	IDs   []int
}

// Forward advances st by ids, one row each, and returns the logits of the wanted
// positions, [rows][Vocab], valid until the next call. The context is looked at
// between layers; if it ends, the error is its cause and st is broken. The same
// holds for weights that cannot be read.
func (r *Runner) Forward(ctx context.Context, st *State, ids []int, want Logits) ([]float32, error) {
	if len(ids) == 0 && !st.broken {
		return nil, nil
	}
	r.parts = append(r.parts[:0], Part{st, ids})
	return r.forward(ctx, want)
}

// ForwardAll is Forward for several sequences in one pass, which reads every weight
// once for all of them. Each State may be named once, and each part needs an id.
// The results of a row are those it has alone. LastLogits gives one row per part.
func (r *Runner) ForwardAll(ctx context.Context, parts []Part, want Logits) ([]float32, error) {
	r.parts = append(r.parts[:0], parts...)
	for i, p := range parts {
		if len(p.IDs) == 0 {
			return nil, fmt.Errorf("part %d of the pass has no tokens", i)
		}
		for j := range i {
			if parts[j].State == p.State {
				return nil, fmt.Errorf("parts %d and %d of the pass are the same sequence", j, i)
			}
		}
	}
	if len(parts) == 0 {
		return nil, nil
	}
	return r.forward(ctx, want)
}

// check refuses a pass before anything is computed.
func (r *Runner) check() error {
	c := r.m.cfg
	for _, p := range r.parts {
		st := p.State
		if st.broken {
			return ErrBroken
		}
		if st.pos+len(p.IDs) > c.MaxContext {
			return fmt.Errorf("%d tokens do not fit: the context has %d and %d are used", len(p.IDs), c.MaxContext, st.pos)
		}
		for i, id := range p.IDs {
			if id < 0 || id >= c.Vocab {
				return fmt.Errorf("token %d at position %d: ids run from 0 to %d", id, st.pos+i, c.Vocab-1)
			}
		}
	}
	return nil
}

// forward runs the parts.
func (r *Runner) forward(ctx context.Context, want Logits) ([]float32, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	for _, p := range r.parts {
		p.State.broken = true // until every layer has seen every row
		if p.State == r.draft.st && !r.draft.on {
			r.draft.st = nil // its rows are no longer the last
		}
	}
	r.begin()
	defer r.moe.feed.End() // a guess may be outstanding when a layer fails
	for i := range r.m.layers {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err := r.layer(ctx, i); err != nil {
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
	for _, p := range r.parts {
		p.State.pos += len(p.IDs)
		p.State.broken = false
	}
	switch want {
	case LastLogits:
		return r.head(true), nil
	case AllLogits:
		return r.head(false), nil
	}
	return nil, nil
}

// yield lets another Runner go on.
func (r *Runner) yield() {
	if r.Yield != nil {
		r.Yield()
	}
}

// layer runs steps 1 to 7 of one layer (spec 3.2).
func (r *Runner) layer(ctx context.Context, i int) error {
	c := r.m.cfg
	w, err := r.trunk.take(ctx, i)
	if err != nil {
		return err
	}
	defer r.trunk.done(i)
	r.moe.guess(i)
	r.mixRows(r.h, w.attnRes, 0, r.n)
	opens := i%c.ResBlock == 0
	if opens {
		r.bankPrefix()
	}
	r.normRows(r.x, r.h, w.attnNorm, r.n)
	if w.kda != nil {
		r.kda.run(w.kda, i)
	} else {
		r.mla.run(w.mla, i)
	}
	r.yield()
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
	r.yield()
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
		return kernel.Floats(n)
	}
	return buf[:n]
}

package k3

import (
	"context"
	"fmt"
	"math/bits"

	"deltafin/engine/checkpoint"
)

// Draft passes: several tokens that may turn out wrong go through the model at once,
// and only the first of them are kept. Attention forgets rows by cutting its cache.
// The delta rule does not: its state is one matrix per head that every token changed.
// So the matrices are copied before the pass, and what each row put into them is
// noted; keeping a part of the rows means to begin with the copy and to repeat their
// steps, with the same numbers in the same order, so that the bits are those of a
// pass over these rows alone. Keeping all of them costs nothing.

// ForwardDraft advances st by ids, one row each, and returns the logits of all rows,
// [len(ids)][Vocab], valid until the next call. Commit then says how many of the rows
// are kept; until it does, st is broken. After an error st is as it was before.
func (r *Runner) ForwardDraft(ctx context.Context, st *State, ids []int) ([]float32, error) {
	if st.broken {
		return nil, ErrBroken
	}
	if len(ids) == 0 {
		return nil, fmt.Errorf("a draft pass at position %d has no tokens", st.pos)
	}
	r.parts = append(r.parts[:0], Part{st, ids})
	r.draft.begin(st, len(ids))
	r.draft.on = true
	logits, err := r.forward(ctx, AllLogits)
	r.draft.on = false
	if err != nil {
		r.draft.end(0)
		r.draft.st = nil
		return nil, err
	}
	st.broken = true
	return logits, nil
}

// Commit keeps the first m rows of the draft pass of st, 0 to all of them: st is then
// what a pass over these rows would have left, bit for bit. It may be called again,
// for more rows or fewer, until the next pass of st or the next draft of the Runner.
func (r *Runner) Commit(st *State, m int) error {
	d := &r.draft
	if st == nil || d.st != st {
		return fmt.Errorf("%d rows cannot be kept: this Runner has no draft pass of the state", m)
	}
	if m < 0 || m > d.rows {
		return fmt.Errorf("%d rows cannot be kept: the draft pass has %d", m, d.rows)
	}
	d.end(m)
	return nil
}

// DraftBytes is the memory that draft passes of up to rows take in a Runner, beside
// what PassBytes says.
func DraftBytes(c *checkpoint.Config, rows int) int64 {
	room := int64(draftRoom(rows))
	inner, dim, old := int64(c.KDAInner()), int64(c.KDAHeadDim), int64(c.ConvKernel-1)
	layer := int64(c.KDAHeads)*dim*dim + // s
		3*(room+old)*inner + // raw
		3*room*inner + room*int64(c.KDAHeads) // k, v, decay, beta
	return 4 * (int64(c.Layers-c.MLALayers())*layer + int64(max(rows-1, 0))*int64(c.Vocab))
}

// draftRoom is for how many rows room is made: a power of two, so that widths which
// change from pass to pass do not ask for new memory each time.
func draftRoom(rows int) int { return 1 << bits.Len(uint(max(rows, 1)-1)) }

// draftBuffers is what a Runner notes of a draft pass.
type draftBuffers struct {
	r      *Runner
	on     bool   // a draft pass is under way
	st     *State // whose pass it was; nil: there is none
	pos    int    // of st before it
	rows   int    // of the pass
	at     int    // rows that st holds
	from   int    // first row to repeat
	to     int    // and the one behind the last
	layers []draftLayer
	kda    []int       // layers with a recurrent state
	work   [][]float32 // per worker: [2][dim]
}

// draftLayer is the part of one KDA layer. C = KDAInner.
type draftLayer struct {
	seen  bool      // the layer has seen the rows
	s     []float32 // the state before the pass
	raw   []float32 // [3][taps-1+rows][C]: q, k, v before the convolution, with the rows before the pass
	k, v  []float32 // [rows][C]: what the delta rule got
	decay []float32 // [rows][C]
	beta  []float32 // [rows][heads]
}

// begin prepares for a pass. Memory is taken when it is needed for the first time.
func (d *draftBuffers) begin(st *State, rows int) {
	c := d.r.m.cfg
	if d.layers == nil {
		d.layers = make([]draftLayer, c.Layers)
		for i, mla := range c.MLALayer {
			if !mla {
				d.kda = append(d.kda, i)
			}
		}
		d.work = make([][]float32, d.r.pool.Workers())
		for i := range d.work {
			d.work[i] = make([]float32, 2*c.KDAHeadDim)
		}
	}
	room, inner := draftRoom(rows), c.KDAInner()
	for _, i := range d.kda {
		l := &d.layers[i]
		l.seen = false
		l.s = sized(l.s, len(st.layers[i].s))
		l.raw = sized(l.raw, 3*(room+c.ConvKernel-1)*inner)
		l.k, l.v, l.decay = sized(l.k, room*inner), sized(l.v, room*inner), sized(l.decay, room*inner)
		l.beta = sized(l.beta, room*c.KDAHeads)
	}
	d.st, d.pos, d.rows, d.at = st, st.pos, rows, rows
}

// layer notes what the rows of a layer are made of, before its heads run.
func (d *draftBuffers) layer(i int, b *kdaBuffers) {
	l := &d.layers[i]
	l.seen = true
	n := len(b.raw[0])
	for j, raw := range b.raw {
		copy(l.raw[j*n:(j+1)*n], raw)
	}
	copy(l.beta, b.beta)
}

// end leaves the first m rows of the pass in the state.
func (d *draftBuffers) end(m int) {
	c, st := d.r.m.cfg, d.st
	d.from, d.to = d.at, m
	if m < d.at {
		d.from = 0
	}
	if m != d.at {
		d.r.pool.Do(d, len(d.kda)*c.KDAHeads, 1)
	}
	inner, old, width := c.KDAInner(), c.ConvKernel-1, c.KVLoRA+c.QKRope
	for i := range st.layers {
		x := &st.layers[i]
		if c.MLALayer[i] {
			// The rows behind the end stay where they are, for a Commit of more.
			x.latent = x.latent[:(d.pos+m)*width]
			continue
		}
		l := &d.layers[i]
		if !l.seen {
			continue // the pass ended before it
		}
		for j := range 3 {
			copy(x.conv[j*old*inner:(j+1)*old*inner], l.raw[(j*(old+d.rows)+m)*inner:])
		}
	}
	st.pos, st.broken = d.pos+m, false
	d.at = m
}

// Run gives heads their old state back if rows are taken away, and repeats the steps
// of rows that are kept. Items are heads of all KDA layers.
func (d *draftBuffers) Run(worker, lo, hi int) {
	c := d.r.m.cfg
	dim, inner := c.KDAHeadDim, c.KDAInner()
	out, u := d.work[worker][:dim], d.work[worker][dim:]
	for item := lo; item < hi; item++ {
		i, h := d.kda[item/c.KDAHeads], item%c.KDAHeads
		l := &d.layers[i]
		if !l.seen {
			continue
		}
		s := d.st.layers[i].s[h*dim*dim : (h+1)*dim*dim]
		if d.from == 0 {
			copy(s, l.s[h*dim*dim:])
		}
		for t := d.from; t < d.to; t++ {
			at := t*inner + h*dim
			k := l.k[at : at+dim]
			// The output is not needed, so any query will do.
			d.r.pool.KDAStep(out, s, k, k, l.v[at:at+dim], l.decay[at:at+dim], l.beta[t*c.KDAHeads+h], u)
		}
	}
}

package k3

import "deltafin/engine/kernel"

// begin lays out the rows of the parts, one after the other, sizes the buffers and
// embeds the ids: p = E[token], no scale and no position (spec 3.1).
func (r *Runner) begin() {
	c, n := r.m.cfg, 0
	r.from, r.part = r.from[:0], r.part[:0]
	for i, p := range r.parts {
		r.from = append(r.from, n)
		n += len(p.IDs)
		for range p.IDs {
			r.part = append(r.part, int32(i))
		}
	}
	r.n, r.banks = n, 0
	r.p = sized(r.p, n*c.Hidden)
	r.h = sized(r.h, n*c.Hidden)
	r.x = sized(r.x, n*c.Hidden)
	r.u = sized(r.u, n*c.Hidden)
	row := 0
	for _, p := range r.parts {
		for _, id := range p.IDs {
			kernel.Row(r.p[row*c.Hidden:(row+1)*c.Hidden], &r.m.embed, id)
			row++
		}
	}
	if r.Observe != nil && r.Observe.Stream != nil {
		r.Observe.Stream(-1, n, r.p)
	}
}

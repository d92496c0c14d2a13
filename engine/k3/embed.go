package k3

import "deltafin/engine/kernel"

// begin sizes the buffers for the ids and embeds them: p = E[token], no scale and
// no position (spec 3.1).
func (r *Runner) begin(ids []int) {
	c, n := r.m.cfg, len(ids)
	r.n, r.banks = n, 0
	r.p = sized(r.p, n*c.Hidden)
	r.h = sized(r.h, n*c.Hidden)
	r.x = sized(r.x, n*c.Hidden)
	r.u = sized(r.u, n*c.Hidden)
	for i, id := range ids {
		kernel.Row(r.p[i*c.Hidden:(i+1)*c.Hidden], &r.m.embed, id)
	}
	if r.Observe != nil && r.Observe.Stream != nil {
		r.Observe.Stream(-1, n, r.p)
	}
}

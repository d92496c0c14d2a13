package k3

import "math"

// head returns the logits of all rows, or of the last row of each part: final
// mixture over the depth, final norm, output matrix (spec 3.2, last paragraph).
// Rows nobody asked for cost nothing.
func (r *Runner) head(last bool) []float32 {
	c, n := r.m.cfg, r.n
	if last {
		n = len(r.parts)
		for i, p := range r.parts {
			r.mixRows(r.h[i*c.Hidden:(i+1)*c.Hidden], r.m.outRes, r.from[i]+len(p.IDs)-1, 1)
		}
	} else {
		r.mixRows(r.h, r.m.outRes, 0, n)
	}
	r.normRows(r.x, r.h, r.m.norm, n)
	r.logits = sized(r.logits, n*c.Vocab)
	r.pool.MatMul(r.logits, &r.out, r.x, n)
	return r.logits
}

// invRMS is 1 / sqrt(sum/n + eps), rounded at every step.
func invRMS(sum float32, n int, eps float32) float32 {
	return 1 / float32(math.Sqrt(float64(sum/float32(n)+eps)))
}

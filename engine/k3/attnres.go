package k3

// The block attention residual (spec 3.2): a sub-layer does not read the sum of
// all that came before it, but a softmax mixture of the banked block sums and the
// running sum p of its own block. Nothing of this outlives a pass.

// bankPrefix appends the raw running sum to the bank: the block it summed is over.
func (r *Runner) bankPrefix() {
	if r.banks == len(r.bank) {
		r.bank = append(r.bank, nil)
	}
	b := sized(r.bank[r.banks], len(r.p))
	copy(b, r.p)
	r.bank[r.banks] = b
	r.banks++
}

// mixRows writes the mixture that the folded score weights w choose, for rows
// [from, from+n) of the pass, to rows 0 to n of dst. With an empty bank that is p
// itself.
func (r *Runner) mixRows(dst, w []float32, from, n int) {
	if r.banks == 0 {
		copy(dst, r.p[from*len(w):(from+n)*len(w)])
		return
	}
	r.mix.dst, r.mix.w, r.mix.from = dst, w, from
	r.pool.Do(&r.mix, n, rowGrain(len(w)*(r.banks+1)))
}

type mixTask struct {
	r      *Runner
	dst, w []float32
	from   int
}

// maxSources bounds banks + 1; a model of 93 layers in blocks of 12 has 9.
const maxSources = 128

func (t *mixTask) Run(_, lo, hi int) {
	r, d := t.r, len(t.w)
	var buf [maxSources]float32
	score := buf[:r.banks+1]
	for i := lo; i < hi; i++ {
		row := func(s int) []float32 {
			if s == r.banks {
				return r.p[(t.from+i)*d : (t.from+i+1)*d]
			}
			return r.bank[s][(t.from+i)*d : (t.from+i+1)*d]
		}
		// Scores use the normalised sources, the sum the sources as they are.
		for s := range score {
			v := row(s)
			score[s] = r.pool.Dot(v, t.w) * invRMS(r.pool.Dot(v, v), d, r.m.cfg.Eps)
		}
		r.pool.Softmax(score)
		dst := t.dst[i*d : (i+1)*d]
		clear(dst)
		for s, a := range score {
			r.pool.Axpy(dst, a, row(s))
		}
	}
}

//go:build !noasm && (amd64 || arm64)

package kernel

// The functions over rows: whole blocks of 16 go to the primitives. What is left
// of a cheap function is done by its definition; an expensive one gets a padded
// copy of the rest.

const whole = -lanes // n & whole is n without what does not fill the lanes

// Add is addGeneric.
func (s *simd) Add(y, x []float32) {
	x = x[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.add(&y[0], &x[0], n)
	}
	addGeneric(y[n:], x[n:])
}

// Axpy is axpyGeneric.
func (s *simd) Axpy(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.axpy(&y[0], &x[0], n, a)
	}
	axpyGeneric(y[n:], a, x[n:])
}

// FMA is fmaGeneric.
func (s *simd) FMA(y, a, b []float32) {
	a, b = a[:len(y)], b[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.fma(&y[0], &a[0], &b[0], n)
	}
	fmaGeneric(y[n:], a[n:], b[n:])
}

// Scale is scaleGeneric.
func (s *simd) Scale(y []float32, a float32) {
	n := len(y) & whole
	if n > 0 {
		s.scale(&y[0], n, a)
	}
	scaleGeneric(y[n:], a)
}

// Dot is dotGeneric.
func (s *simd) Dot(a, b []float32) float32 {
	b = b[:len(a)]
	var acc [lanes]float32
	n := len(a) & whole
	if n > 0 {
		s.dot(&acc[0], &a[0], &b[0], n)
	}
	dotInto(&acc, a[n:], b[n:])
	return fold(&acc)
}

// RMSNorm is rmsNormGeneric.
func (s *simd) RMSNorm(y, x, w []float32, eps float32) {
	inv := invRMS(s.Dot(x, x), len(x), eps)
	x, w = x[:len(y)], w[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.norm(&y[0], &x[0], &w[0], n, inv)
	}
	for i := n; i < len(y); i++ {
		y[i] = x[i] * inv * w[i]
	}
}

// L2Norm is l2NormGeneric.
func (s *simd) L2Norm(x []float32, eps, scale float32) {
	s.Scale(x, 1/sqrt32(s.Dot(x, x)+eps)*scale)
}

// Softmax is softmaxGeneric. A NaN makes every result NaN whatever maximum is
// found beside it. The rest is padded with -Inf, whose exponential adds +0.
func (s *simd) Softmax(x []float32) {
	if len(x) == 0 {
		return
	}
	n := len(x) & whole
	m := x[0]
	var acc [lanes]float32
	if n > 0 {
		copy(acc[:], x)
		s.max(&acc[0], &x[0], n)
		for _, v := range acc {
			m = max(m, v)
		}
	}
	for _, v := range x[n:] {
		m = max(m, v)
	}
	acc = [lanes]float32{}
	if n > 0 {
		s.expSum(&acc[0], &x[0], n, m)
	}
	if n < len(x) {
		rest := [lanes]float32{}
		for i := range rest {
			rest[i] = negInf
		}
		copy(rest[:], x[n:])
		s.expSum(&acc[0], &rest[0], lanes, m)
		copy(x[n:], rest[:])
	}
	s.Scale(x, 1/fold(&acc))
}

// Sigmoid is sigmoidGeneric.
func (s *simd) Sigmoid(y, x []float32) {
	x = x[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.sigmoid(&y[0], &x[0], n)
	}
	if n < len(y) {
		var a [lanes]float32
		copy(a[:], x[n:])
		s.sigmoid(&a[0], &a[0], lanes)
		copy(y[n:], a[:])
	}
}

// SigmoidMul is sigmoidMulGeneric.
func (s *simd) SigmoidMul(y, g []float32) {
	g = g[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.sigmoidMul(&y[0], &g[0], n)
	}
	if n < len(y) {
		var a, b [lanes]float32
		copy(a[:], y[n:])
		copy(b[:], g[n:])
		s.sigmoidMul(&a[0], &b[0], lanes)
		copy(y[n:], a[:])
	}
}

// SiLU is siluGeneric.
func (s *simd) SiLU(y []float32) { s.SigmoidMul(y, y) }

// SiTU is situGeneric.
func (s *simd) SiTU(y, g, u []float32, beta, lin float32) {
	g, u = g[:len(y)], u[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.situ(&y[0], &g[0], &u[0], n, beta, lin)
	}
	if n < len(y) {
		var a, b [lanes]float32
		copy(a[:], g[n:])
		copy(b[:], u[n:])
		s.situ(&a[0], &a[0], &b[0], lanes, beta, lin)
		copy(y[n:], a[:])
	}
}

// DecayLower is decayLowerGeneric.
func (s *simd) DecayLower(y, f, dt []float32, a, bound float32) {
	f, dt = f[:len(y)], dt[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.decayLower(&y[0], &f[0], &dt[0], n, a, bound)
	}
	if n < len(y) {
		var p, q [lanes]float32
		copy(p[:], f[n:])
		copy(q[:], dt[n:])
		s.decayLower(&p[0], &p[0], &q[0], lanes, a, bound)
		copy(y[n:], p[:])
	}
}

// DecaySoftplus is decaySoftplusGeneric.
func (s *simd) DecaySoftplus(y, f, dt []float32, a float32) {
	f, dt = f[:len(y)], dt[:len(y)]
	n := len(y) & whole
	if n > 0 {
		s.decaySoftplus(&y[0], &f[0], &dt[0], n, a)
	}
	if n < len(y) {
		var p, q [lanes]float32
		copy(p[:], f[n:])
		copy(q[:], dt[n:])
		s.decaySoftplus(&p[0], &p[0], &q[0], lanes, a)
		copy(y[n:], p[:])
	}
}

// KDAStep is kdaStepGeneric. Columns are independent of each other.
func (s *simd) KDAStep(out, st, q, k, v, decay []float32, beta float32, u []float32) {
	nk, nv := len(decay), len(v)
	if nk == 0 || nv == 0 {
		kdaStepGeneric(out, st, q, k, v, decay, beta, u)
		return
	}
	raceWrite(st)
	raceWrite(out)
	out, st, q, k = out[:nv], st[:nk*nv], q[:nk], k[:nk]
	n := nv & whole
	if n > 0 {
		s.kda(&out[0], &st[0], &q[0], &k[0], &v[0], &decay[0], nk, nv, n, beta)
	}
	kdaColumns(out, st, q, k, v, decay, beta, u, n, nv)
}

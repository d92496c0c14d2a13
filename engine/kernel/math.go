package kernel

import "math"

// The transcendental functions of the model as fixed sequences of float32
// operations, so that every level and every machine returns the same bits. The
// polynomials are the classical single-precision minimax ones (Moshier, Cephes).
// Error bounds against the exact value, measured over a dense sample of all
// float32 in math_test.go: exp 1.5 ulp, sigmoid 2.5, tanh 2, softplus 3. A sigmoid
// below the normal range (arguments under -87.3) may come out as 0.

const (
	log2e   = 1.44269504088896341
	ln2Hi   = 0.693359375    // ln 2 in few bits, so that n*ln2Hi is exact
	ln2Lo   = -2.12194440e-4 // ln 2 - ln2Hi
	roundUp = 12582912       // 1.5 * 2^23: adding it rounds a small float to an integer
	expMin  = -110           // below, exp is 0 in float32
	expMax  = 100            // above, exp is +Inf in float32
)

// exp32 returns e^x. Arguments beyond [expMin, expMax] are cut there, which
// gives 0 and +Inf; NaN stays NaN.
func exp32(x float32) float32 {
	if x > expMax {
		x = expMax
	}
	if x < expMin {
		x = expMin
	}
	t := fma32(x, log2e, roundUp)
	n := t - roundUp
	r := fma32(n, -ln2Hi, x)
	r = fma32(n, -ln2Lo, r)
	p := fma32(1.9875691500e-4, r, 1.3981999507e-3)
	p = fma32(p, r, 8.3334519073e-3)
	p = fma32(p, r, 4.1665795894e-2)
	p = fma32(p, r, 1.6666665459e-1)
	p = fma32(p, r, 5.0000001201e-1)
	p = fma32(p, r*r, r)
	p += 1
	// 2^n in two factors: n may lie outside the exponents of one float32. The
	// integer is the low bits of t, where the rounding constant put it.
	k := int32(math.Float32bits(t)) - int32(math.Float32bits(roundUp))
	a := k >> 1
	b := k - a
	// The conversion keeps a compiler from fusing the product with a sum of the
	// caller's, which would round once instead of twice.
	return float32(p * math.Float32frombits(uint32(a+127)<<23) * math.Float32frombits(uint32(b+127)<<23))
}

// sigmoid32 returns 1 / (1 + e^-x).
func sigmoid32(x float32) float32 { return 1 / (1 + exp32(-x)) }

// tanhSmall is where the polynomial of tanh takes over from the exponential.
const tanhSmall = 0.625

// tanh32 returns the hyperbolic tangent.
func tanh32(x float32) float32 {
	z := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	if z < tanhSmall {
		s := x * x
		p := fma32(-5.70498872745e-3, s, 2.06390887954e-2)
		p = fma32(p, s, -5.37397155531e-2)
		p = fma32(p, s, 1.33314422036e-1)
		p = fma32(p, s, -3.33332819422e-1)
		return fma32(p*s, x, x)
	}
	y := 1 - 2/(exp32(z+z)+1)
	return math.Float32frombits(math.Float32bits(y) | math.Float32bits(x)&(1<<31))
}

// softplus32 returns log(1 + e^x) = max(x, 0) + log1p(e^-|x|); the logarithm is
// the series of 2 atanh(t / (2 + t)), which converges by a factor 9 per term.
func softplus32(x float32) float32 {
	z := math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	t := exp32(-z)
	s := t / (2 + t)
	q := s * s
	p := fma32(1.0/17, q, 1.0/15)
	p = fma32(p, q, 1.0/13)
	p = fma32(p, q, 1.0/11)
	p = fma32(p, q, 1.0/9)
	p = fma32(p, q, 1.0/7)
	p = fma32(p, q, 1.0/5)
	p = fma32(p, q, 1.0/3)
	l := 2 * fma32(p*q, s, s)
	if x > 0 {
		return x + l
	}
	return l
}

// situGeneric writes y = beta*tanh(g/beta) * sigmoid(g) * lin*tanh(u/lin), the
// activation of spec 3.5. y may be g or u.
func situGeneric(y, g, u []float32, beta, lin float32) {
	for i := range y {
		a := beta * tanh32(g[i]/beta) * sigmoid32(g[i])
		y[i] = a * (lin * tanh32(u[i]/lin))
	}
}

// siluGeneric writes y = y * sigmoid(y).
func siluGeneric(y []float32) {
	for i, v := range y {
		y[i] = v * sigmoid32(v)
	}
}

// sigmoidMulGeneric writes y = y * sigmoid(g).
func sigmoidMulGeneric(y, g []float32) {
	for i := range y {
		y[i] *= sigmoid32(g[i])
	}
}

// sigmoidGeneric writes y = sigmoid(x). y may be x.
func sigmoidGeneric(y, x []float32) {
	for i := range y {
		y[i] = sigmoid32(x[i])
	}
}

// decayLowerGeneric writes the KDA decay exp(bound * sigmoid(a * (f + dt))) of
// spec 3.3, a = exp(A_log) of the head. y may be f.
func decayLowerGeneric(y, f, dt []float32, a, bound float32) {
	for i := range y {
		y[i] = exp32(bound * sigmoid32(a*(f[i]+dt[i])))
	}
}

// decaySoftplusGeneric writes the unbounded form exp(-a * softplus(f + dt)), which
// models without gate_lower_bound use. y may be f.
func decaySoftplusGeneric(y, f, dt []float32, a float32) {
	for i := range y {
		y[i] = exp32(-a * softplus32(f[i]+dt[i]))
	}
}

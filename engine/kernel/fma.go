package kernel

import "math"

// fma32 returns x*y + z with one rounding to float32, as the hardware's fused
// multiply-add does. Go has that operation for float64 only, so it is built from
// it: the product of two float32 is exact in float64, and rounding the float64
// sum once more is right unless the sum lies exactly in the middle between two
// float32 (its 29 surplus bits are 1000...) or below the normal range, where the
// middle lies elsewhere. Those cases take the slow path.
func fma32(x, y, z float32) float32 {
	s := float64(x)*float64(y) + float64(z)
	if doubtful(s) {
		return fmaSlow(x, y, z)
	}
	return float32(s)
}

// doubtful reports whether a sum may go wrong when it is rounded twice. fma32 is
// beyond the compiler's inlining budget; loops that matter write it out with this.
func doubtful(s float64) bool {
	b := math.Float64bits(s)
	return b<<35 == 1<<63 || b<<1 < 897<<53
}

// fmaSlow rounds the exact sum to odd before it rounds to float32: with 29 bits
// to spare that makes the second rounding correct (Boldo and Melquiond, 2008).
//
//go:noinline
func fmaSlow(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	s := p + c
	// The rounding error of p + c, exact (Knuth's two-sum).
	bb := s - p
	e := (p - (s - bb)) + (c - bb)
	if e != 0 && !math.IsInf(s, 0) && s == s {
		if b := math.Float64bits(s); b&1 == 0 {
			if (e > 0) == (s > 0) {
				b++
			} else {
				b--
			}
			s = math.Float64frombits(b)
		}
	}
	return float32(s)
}

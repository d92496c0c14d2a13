package kernel

import "math"

// lanes is the number of running sums of a dot product; see the package comment.
const lanes = 16

// dotGeneric is the definition of a dot product of two float32 rows.
func dotGeneric(a, b []float32) float32 {
	var acc [lanes]float32
	dotInto(&acc, a, b)
	return fold(&acc)
}

// dotInto adds the products of a and b to the lanes. The first element must
// belong to lane 0.
func dotInto(acc *[lanes]float32, a, b []float32) {
	b = b[:len(a)]
	for i, v := range a {
		acc[i%lanes] = fma32(v, b[i], acc[i%lanes])
	}
}

// dotInto64 is dotInto for operands that were widened before, with lanes that
// hold float32 values: the same results in half the time, since the widening is
// shared by all rows. fma32 is written out because it is beyond the inlining
// budget, and a call per weight would double the time of the generic level.
func dotInto64(acc *[lanes]float64, a, b []float64) {
	b = b[:len(a)]
	for ; len(a) >= lanes; a, b = a[lanes:], b[lanes:] {
		x, y := (*[lanes]float64)(a), (*[lanes]float64)(b)
		for l := range acc {
			s := x[l]*y[l] + acc[l]
			if t := math.Float64bits(s); t<<35 == 1<<63 || t<<1 < 897<<53 {
				s = float64(fmaSlow(float32(x[l]), float32(y[l]), float32(acc[l])))
			}
			acc[l] = float64(float32(s))
		}
	}
	for l := range a {
		acc[l] = float64(fma32(float32(a[l]), float32(b[l]), float32(acc[l])))
	}
}

// fold adds up the lanes in the fixed tree.
func fold(acc *[lanes]float32) float32 {
	for w := lanes / 2; w > 0; w /= 2 {
		for l := range w {
			acc[l] += acc[l+w]
		}
	}
	return acc[0]
}

// matMulGeneric is the definition of the product with weight rows:
// y[i*ldy+r] = sum over c of w[r][c] * x[i*ldx+c], r in [lo, hi), i in [0, n).
// Each weight is decoded once for all n rows.
func matMulGeneric(s *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	k := w.Cols
	wide := s.doubles((n + 1) * k)
	xs, ws := wide[:n*k], wide[n*k:]
	for i := range n {
		widen(xs[i*k:(i+1)*k], x[i*ldx:])
	}
	for r := lo; r < hi; r++ {
		decodeRow(ws, w, r, 0)
		for i := range n {
			var acc [lanes]float64
			dotInto64(&acc, ws, xs[i*k:(i+1)*k])
			var sums [lanes]float32
			for l := range sums {
				sums[l] = float32(acc[l])
			}
			y[i*ldy+r] = fold(&sums)
		}
	}
}

func widen(dst []float64, src []float32) {
	src = src[:len(dst)]
	for i := range dst {
		dst[i] = float64(src[i])
	}
}

// matTMulGeneric is the definition of the transposed product:
// y[i*ldy+j] = sum over r of x[i*ldx+r] * w[r][j], j in [lo, hi), i in [0, n),
// rows in rising order. lo is a multiple of 32.
func matTMulGeneric(s *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	for i := range n {
		clear(y[i*ldy+lo : i*ldy+hi])
	}
	row := s.floats(hi - lo)
	for r := range w.Rows {
		decodeRow(row, w, r, lo)
		for i := range n {
			axpyGeneric(y[i*ldy+lo:i*ldy+hi], x[i*ldx+r], row)
		}
	}
}

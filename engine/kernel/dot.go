package kernel

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
// Each weight is decoded once for all n rows; dotWide is dotGeneric at twice the
// speed.
func matMulGeneric(s *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	k := w.Cols
	wide := s.doubles((n + 1) * k)
	xs, ws := wide[:n*k], wide[n*k:]
	low := 1 << 20
	for i := range n {
		low = min(low, widen(xs[i*k:(i+1)*k], x[i*ldx:]))
	}
	if n == 1 && w.Format == BF16 && low+lowestBF16 >= tinyLSB {
		for r := lo; r < hi; r++ {
			y[r] = dotBF16(w.Data[r*w.Stride:], xs)
		}
		return
	}
	if w.Format == Int8 {
		for r := lo; r < hi; r++ {
			for c, v := range w.Data[r*w.Stride:][:k] {
				ws[c] = float64(int8(v))
			}
			for i := range n {
				y[i*ldy+r] = dotInt8(ws, xs[i*k:(i+1)*k], w, r)
			}
		}
		return
	}
	for r := lo; r < hi; r++ {
		lsb := decodeWide(ws, w, r) + low
		for i := range n {
			y[i*ldy+r] = dotWide(ws, xs[i*k:(i+1)*k], lsb)
		}
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

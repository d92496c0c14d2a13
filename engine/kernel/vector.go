package kernel

import "math"

// addGeneric writes y += x.
func addGeneric(y, x []float32) {
	for i := range y {
		y[i] += x[i]
	}
}

// axpyGeneric writes y = a*x + y, fused.
func axpyGeneric(y []float32, a float32, x []float32) {
	x = x[:len(y)]
	for i, v := range x {
		s := float64(a)*float64(v) + float64(y[i])
		if doubtful(s) {
			y[i] = fmaSlow(a, v, y[i])
			continue
		}
		y[i] = float32(s)
	}
}

// fmaGeneric writes y = a*b + y element by element, fused.
func fmaGeneric(y, a, b []float32) {
	for i := range y {
		y[i] = fma32(a[i], b[i], y[i])
	}
}

// scaleGeneric writes y = a*y.
func scaleGeneric(y []float32, a float32) {
	for i := range y {
		y[i] *= a
	}
}

// rmsNormGeneric writes y = x / sqrt(mean(x^2) + eps) * w. y may be x.
func rmsNormGeneric(y, x, w []float32, eps float32) {
	inv := invRMS(dotGeneric(x, x), len(x), eps)
	for i := range y {
		y[i] = x[i] * inv * w[i]
	}
}

// invRMS is 1 / sqrt(sum/n + eps). math.Sqrt of a float32 value, rounded to
// float32, is the correctly rounded float32 square root.
func invRMS(sum float32, n int, eps float32) float32 {
	return 1 / sqrt32(sum/float32(n)+eps)
}

func sqrt32(x float32) float32 { return float32(math.Sqrt(float64(x))) }

// softmaxGeneric replaces x by its softmax. The sum runs in lanes like a dot
// product. An empty x stays empty.
func softmaxGeneric(x []float32) {
	if len(x) == 0 {
		return
	}
	m := x[0]
	for _, v := range x {
		if v > m {
			m = v
		}
	}
	var acc [lanes]float32
	for i, v := range x {
		e := exp32(v - m)
		x[i] = e
		acc[i%lanes] += e
	}
	scaleGeneric(x, 1/fold(&acc))
}

// l2NormGeneric writes x = x / sqrt(sum(x^2) + eps) * scale (spec 3.3, keys and
// queries of KDA).
func l2NormGeneric(x []float32, eps, scale float32) {
	inv := 1 / sqrt32(dotGeneric(x, x)+eps) * scale
	scaleGeneric(x, inv)
}

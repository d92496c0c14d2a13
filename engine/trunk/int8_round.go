package trunk

import (
	"encoding/binary"
	"math"
)

// Symmetric rounding, group by group: of the largest magnitude m of a group the scale
// is m/127, a code is the weight over the scale to the nearest integer, ties to even.
// So a weight moves by half a scale at most, and zero stays zero. Every step is
// rounded to float32 on its own, so that all machines write the same bytes.

// leastScaled is the magnitude below which a group counts as zero: its scale would
// lose bits below the smallest normal number. Weights of that size cannot be told
// from zero in any sum with others.
const leastScaled = 1e-30

// mostScaled keeps 127 times a scale that was rounded up from becoming infinite.
const mostScaled = 3.4e38

// magic added to a small float32 rounds it to an integer, ties to even.
const magic = 3 << 22

// rowError is how far a rounded row is from the weights.
type rowError struct {
	max         float64 // largest difference
	err, weight float64 // sums of squares, of the differences and of the weights
	bad         bool    // a weight is infinite or no number
}

// roundRow writes the codes and scales of a row; scales has 4 bytes for a group.
func roundRow(codes, scales []byte, w []float32, group int) (e rowError) {
	for len(w) > 0 {
		n := min(group, len(w))
		x, out := w[:n], codes[:n]
		top, whole := float32(0), float32(0)
		for _, v := range x {
			top = max(top, float32(math.Abs(float64(v))))
			whole += v * 0 // no number once a weight is infinite or no number
		}
		if whole != 0 {
			return rowError{bad: true}
		}
		scale, inv := float32(0), float32(0)
		if top >= leastScaled {
			scale, inv = min(top, mostScaled)/127, 127/top
		}
		for i, v := range x {
			q := float32(float32(v*inv)+magic) - magic
			out[i] = byte(int8(q))
			d := float64(v) - float64(float32(q*scale))
			e.max = max(e.max, math.Abs(d))
			e.err += float64(d * d)
			e.weight += float64(float64(v) * float64(v))
		}
		binary.LittleEndian.PutUint32(scales, math.Float32bits(scale))
		w, codes, scales = w[n:], codes[n:], scales[4:]
	}
	return e
}

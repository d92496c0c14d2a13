//go:build !noasm && (amd64 || arm64)

package kernel

import "unsafe"

// tmulFloats is the size of an unpacked tile of the transposed product: 32 KiB.
const tmulFloats = 8192

// MatTMul is matTMulGeneric. Rows of w are unpacked a few at a time (float32 is
// used where it lies) and added to all rows of y while they are in the cache.
func (s *simd) MatTMul(sc *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	if lo >= hi || n <= 0 {
		return
	}
	_ = y[(n-1)*ldy+hi-1]
	end := lo + (hi-lo)&^(2*lanes-1)
	if end < hi { // less than a group: by the definition
		matTMulGeneric(sc, y, ldy, w, end, hi, x, ldx, n)
	}
	if end == lo {
		return
	}
	for i := range n {
		clear(y[i*ldy+lo : i*ldy+end])
	}
	if w.Rows == 0 {
		return
	}
	raceProduct(y, ldy, lo, end, x, ldx, w.Rows, n)
	_, _ = x[(n-1)*ldx+w.Rows-1], w.Data[(w.Rows-1)*w.Stride+w.Format.RowBytes(w.Cols)-1]
	for c := lo; c < end; c += tileCols {
		cols := min(tileCols, end-c)
		t := tmul{s: s, y: y[c:], ldy: ldy, x: x, ldx: ldx, n: n, cols: cols}
		// The stride of the tile is off a power of two: its rows must not
		// compete for the same lines of the cache.
		stride := cols + lanes
		step := max(8, tmulFloats/stride)
		buf := sc.floats(step * stride)
		for r := 0; r < w.Rows; r += step {
			rows := min(step, w.Rows-r)
			if w.Format == F32 {
				t.add((*float32)(unsafe.Pointer(&w.Data[r*w.Stride+4*c])), w.Stride, r, rows)
				continue
			}
			for i := range rows {
				s.unpack(buf[i*stride:i*stride+cols], w, r+i, c)
			}
			t.add(&buf[0], 4*stride, r, rows)
		}
	}
}

// tmul is a transposed product under way, for cols columns.
type tmul struct {
	s    *simd
	y    []float32
	ldy  int
	x    []float32
	ldx  int
	n    int
	cols int
}

// add adds rows rows at w, the first of which is row r of the matrix.
func (t *tmul) add(w *float32, stride, r, rows int) {
	for i := 0; i < t.n; {
		f, k := t.s.tmul3, 3
		switch t.n - i {
		case 1:
			f, k = t.s.tmul1, 1
		case 2, 4:
			f, k = t.s.tmul2, 2
		}
		f(&t.y[i*t.ldy], 4*t.ldy, w, stride, rows, &t.x[i*t.ldx+r], 4*t.ldx, t.cols)
		i += k
	}
}

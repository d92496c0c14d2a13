package kernel

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkGenericMatVec is the plain Go product with one row, by format.
func BenchmarkGenericMatVec(b *testing.B) {
	const rows, cols = 256, 3584
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float32, cols)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	for _, f := range []Format{F32, BF16, MXFP4} {
		w := Matrix{Format: f, Rows: rows, Cols: cols, Stride: f.RowBytes(cols), Data: make([]byte, rows*f.RowBytes(cols)), Scale: make([]byte, rows*cols/MXGroup)}
		for i := range w.Data {
			w.Data[i] = byte(r.Uint32())
			if f != MXFP4 && i%(f.RowBytes(1)) == f.RowBytes(1)-1 {
				w.Data[i] = 0x3C | w.Data[i]&0x80 // around one hundredth
			}
		}
		for i := range w.Scale {
			w.Scale[i] = byte(118 + r.IntN(4))
		}
		b.Run(f.String(), func(b *testing.B) {
			y := make([]float32, rows)
			var s Scratch
			b.SetBytes(int64(w.Bytes()))
			for b.Loop() {
				matMulGeneric(&s, y, rows, &w, 0, rows, x, cols, 1)
			}
			b.ReportMetric(float64(b.N)*rows*cols/b.Elapsed().Seconds()/1e6, "MMAC/s")
		})
	}
}

package kernel

import "testing"

func BenchmarkGenericMatVecMXFP4(b *testing.B) {
	w := Matrix{Format: MXFP4, Rows: 256, Cols: 3584, Stride: 1792, Data: make([]byte, 256*1792), Scale: make([]byte, 256*112)}
	for i := range w.Data {
		w.Data[i] = byte(i * 7)
	}
	for i := range w.Scale {
		w.Scale[i] = 120
	}
	x := make([]float32, 3584)
	for i := range x {
		x[i] = float32(i%13) - 6.3
	}
	y := make([]float32, 256)
	var s Scratch
	b.SetBytes(int64(w.Bytes()))
	for b.Loop() {
		matMulGeneric(&s, y, 256, &w, 0, 256, x, 3584, 1)
	}
	b.ReportMetric(float64(b.N)*256*3584/b.Elapsed().Seconds()/1e6, "MMAC/s")
}

package kernel

import (
	"fmt"
	"testing"
)

// The ladder: every level on the shapes of K3, for benchstat. Package kernelbench
// measures the same beside the limits of the machine.

func BenchmarkMatMul(b *testing.B) {
	f := floats{Rand: newRand(31)}
	for _, level := range Levels() {
		for _, c := range []struct {
			format        Format
			rows, cols, n int
		}{
			{MXFP4, 512, 3584, 1},
			{MXFP4, 512, 3072, 1},
			{BF16, 256, 7168, 1},
			{Int8, 256, 7168, 1},
			{F32, 256, 3584, 1},
			{MXFP4, 64, 3584, 4},
			{MXFP4, 64, 3584, 64},
			{BF16, 64, 7168, 64},
		} {
			w := f.matrix(c.format, c.rows, c.cols, 128)
			x, y := f.some(c.n*c.cols), make([]float32, c.n*c.rows)
			b.Run(fmt.Sprintf("%s/%s/%dx%dx%d", level.Name, c.format, c.rows, c.cols, c.n), func(b *testing.B) {
				var s Scratch
				b.SetBytes(int64(w.Bytes()))
				for b.Loop() {
					level.MatMul(&s, y, c.rows, &w, 0, c.rows, x, c.cols, c.n)
				}
				b.ReportMetric(2e-9*float64(b.N)*float64(c.rows*c.cols*c.n)/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
	}
}

func BenchmarkKDAStep(b *testing.B) {
	f := floats{Rand: newRand(32)}
	s, q, k, v, d := f.some(128*128), f.some(128), f.some(128), f.some(128), make([]float32, 128)
	for i := range d {
		d[i] = 0.97
	}
	out, u := make([]float32, 128), make([]float32, 128)
	for _, level := range Levels() {
		b.Run(level.Name+"/128x128", func(b *testing.B) {
			b.SetBytes(2 * 4 * 128 * 128)
			for b.Loop() {
				level.KDAStep(out, s, q, k, v, d, 0.01, u)
			}
		})
	}
}

func BenchmarkRows(b *testing.B) {
	f := floats{Rand: newRand(33)}
	const n = 3072
	in, y := [][]float32{f.some(n), f.some(n)}, f.some(n)
	for _, level := range Levels() {
		for _, fn := range rowFuncs() {
			b.Run(fmt.Sprintf("%s/%s/%d", level.Name, fn.name, n), func(b *testing.B) {
				b.SetBytes(4 * n)
				for b.Loop() {
					fn.run(level, y, in, 1, 1)
				}
			})
		}
	}
}

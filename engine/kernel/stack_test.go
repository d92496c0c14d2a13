package kernel

import (
	"math"
	"slices"
	"testing"
)

// TestStacksMove: a goroutine's stack is moved when it is full, at whatever call that
// happens. The vector functions hand buffers on the stack to assembly, so each is
// called at every depth of a fresh stack, and must not notice. Under the race detector
// the compiler puts more calls between taking an address and using it.
func TestStacksMove(t *testing.T) {
	f := floats{Rand: newRand(8)}
	a, b, c := f.some(37), f.some(37), f.some(37)
	forLevels(t, func(t *testing.T, level, _ *Table) {
		for name, call := range map[string]func(y []float32){
			"Dot":           func(y []float32) { y[0] = level.Dot(a, b) },
			"RMSNorm":       func(y []float32) { level.RMSNorm(y, a, b, 1e-5) },
			"L2Norm":        func(y []float32) { level.L2Norm(y, 1e-6, 0.5) },
			"Softmax":       func(y []float32) { level.Softmax(y) },
			"SiTU":          func(y []float32) { level.SiTU(y, a, b, 4, 25) },
			"SiLU":          func(y []float32) { level.SiLU(y) },
			"Sigmoid":       func(y []float32) { level.Sigmoid(y, a) },
			"SigmoidMul":    func(y []float32) { level.SigmoidMul(y, a) },
			"DecayLower":    func(y []float32) { level.DecayLower(y, a, b, 0.7, -5) },
			"DecaySoftplus": func(y []float32) { level.DecaySoftplus(y, a, b, 0.7) },
		} {
			want := slices.Clone(c)
			call(want)
			for depth := range 600 {
				got := slices.Clone(c)
				done := make(chan struct{})
				go func() {
					defer close(done)
					dive(depth, func() { call(got) })
				}()
				<-done
				for i := range want {
					if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
						t.Fatalf("%s, %d frames down: element %d is %g, want %g", name, depth, i, got[i], want[i])
					}
				}
			}
		}
	})
}

// dive calls f so many frames further down the stack.
//
//go:noinline
func dive(frames int, f func()) int {
	if frames == 0 {
		f()
		return 0
	}
	return dive(frames-1, f) + 1
}

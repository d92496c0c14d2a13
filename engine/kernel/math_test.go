package kernel

import (
	"math"
	"testing"
)

// ulps is the distance of got from the exact value in units of the last place of
// a float32 of that size; below the normal range, of the smallest float32.
func ulps(got float32, exact float64) float64 {
	_, e := math.Frexp(exact)
	unit := math.Ldexp(1, max(e-24, -149))
	return math.Abs(float64(got)-exact) / unit
}

// TestAccuracy measures the functions of math.go against float64 over a dense
// sample of all float32. The bounds are what was measured, rounded up; below
// the normal range a unit is the smallest float32.
func TestAccuracy(t *testing.T) {
	for _, c := range []struct {
		name  string
		f     func(float32) float32
		exact func(float64) float64
		bound float64
		flush bool // results below the normal range may be 0
	}{
		{"exp", exp32, math.Exp, 1.5, false},
		{"sigmoid", sigmoid32, func(x float64) float64 { return 1 / (1 + math.Exp(-x)) }, 2.5, true},
		{"tanh", tanh32, math.Tanh, 2, false},
		{"softplus", softplus32, func(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }, 3, false},
	} {
		step := uint64(1511) // a prime: every exponent, many fractions
		if testing.Short() {
			step = 40009
		}
		worst, at := 0.0, float32(0)
		for b := uint64(0); b < 1<<32; b += step {
			x := math.Float32frombits(uint32(b))
			got := c.f(x)
			if x != x {
				if got == got {
					t.Fatalf("%s(NaN) = %g", c.name, got)
				}
				continue
			}
			want := c.exact(float64(x))
			if float64(float32(want)) > math.MaxFloat32 {
				if !math.IsInf(float64(got), 1) {
					t.Fatalf("%s(%g) = %g, want +Inf", c.name, x, got)
				}
				continue
			}
			if c.flush && want < 1.0/(1<<63)/(1<<63) {
				if got < 0 || got >= 1.0/(1<<63)/(1<<63) {
					t.Fatalf("%s(%g) = %g, want a result below the normal range", c.name, x, got)
				}
				continue
			}
			if u := ulps(got, want); u > worst {
				worst, at = u, x
			}
		}
		t.Logf("%s: at most %.2f ulp, at %g", c.name, worst, at)
		if !(worst <= c.bound) {
			t.Errorf("%s(%g) is off by %.2f ulp, more than %.2f", c.name, at, worst, c.bound)
		}
	}
}

func TestSpecialValues(t *testing.T) {
	inf, zero := float32(math.Inf(1)), float32(0)
	for _, c := range []struct {
		name      string
		got, want float32
	}{
		{"exp(0)", exp32(0), 1},
		{"exp(-0)", exp32(-zero), 1},
		{"exp(-Inf)", exp32(-inf), 0},
		{"exp(Inf)", exp32(inf), inf},
		{"exp(-104)", exp32(-104), 0},
		{"sigmoid(-Inf)", sigmoid32(-inf), 0},
		{"sigmoid(Inf)", sigmoid32(inf), 1},
		{"sigmoid(0)", sigmoid32(0), 0.5},
		{"tanh(Inf)", tanh32(inf), 1},
		{"tanh(-Inf)", tanh32(-inf), -1},
		{"tanh(0)", tanh32(0), 0},
		{"softplus(-Inf)", softplus32(-inf), 0},
		{"softplus(Inf)", softplus32(inf), inf},
	} {
		if c.got != c.want {
			t.Errorf("%s = %g, want %g", c.name, c.got, c.want)
		}
	}
}

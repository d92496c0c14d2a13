package kernel

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// exactFMA is x*y + z rounded once, by arbitrary precision.
func exactFMA(x, y, z float32) float32 {
	p := new(big.Float).SetPrec(2000)
	p.Mul(big.NewFloat(float64(x)), big.NewFloat(float64(y)).SetPrec(2000))
	p.Add(p, big.NewFloat(float64(z)))
	f, _ := p.Float32()
	return f
}

func TestFMARoundsOnce(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	random := func() float32 {
		for {
			b := r.Uint32()
			switch r.IntN(4) {
			case 0: // few significant bits: ties are common
				b &= 0xFFF00000
			case 1: // exponents near each other
				b = b&0x807FFFFF | uint32(120+r.IntN(16))<<23
			case 2: // subnormal results
				b = b&0x807FFFFF | uint32(r.IntN(70))<<23
			}
			if f := math.Float32frombits(b); !math.IsInf(float64(f), 0) && f == f {
				return f
			}
		}
	}
	n := 400000
	if testing.Short() {
		n = 20000
	}
	for range n {
		x, y, z := random(), random(), random()
		if r.IntN(8) == 0 {
			z = -float32(float64(x) * float64(y)) // cancellation
		}
		got, want := fma32(x, y, z), exactFMA(x, y, z)
		if math.IsInf(float64(z), 0) {
			continue
		}
		if got != want {
			t.Fatalf("fma32(%b, %b, %b) = %b, want %b", x, y, z, got, want)
		}
	}
}

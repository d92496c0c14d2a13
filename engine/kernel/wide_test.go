package kernel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestWideIsTheDefinition: the fast generic product gives the bits of dotGeneric,
// with ordinary values, with many ties, and with results below the normal range.
func TestWideIsTheDefinition(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	kinds := map[string]func() float32{
		"normal":    func() float32 { return float32(r.NormFloat64()) },
		"ties":      func() float32 { return math.Float32frombits(math.Float32bits(float32(r.NormFloat64())) &^ 0x1FFFFF) },
		"tiny":      func() float32 { return float32(r.NormFloat64() * 1e-21) },
		"subnormal": func() float32 { return math.Float32frombits(r.Uint32() & 0x807FFFFF) },
		"mixed":     func() float32 { return float32(r.NormFloat64()) * float32(math.Ldexp(1, r.IntN(200)-130)) },
	}
	for na, a := range kinds {
		for nb, b := range kinds {
			for range 60 {
				k := 1 + r.IntN(150)
				w, x := make([]float32, k), make([]float32, k)
				for i := range w {
					w[i], x[i] = a(), b()
				}
				m := F32View(w, 1, k, k)
				var s Scratch
				var y [1]float32
				matMulGeneric(&s, y[:], 1, &m, 0, 1, x, k, 1)
				check := func(f Format) {
					t.Helper()
					want := dotGeneric(w, x)
					if y[0] != want && (y[0] == y[0] || want == want) {
						t.Fatalf("%s x %s, %d %v columns: %b, want %b", na, nb, k, f, y[0], want)
					}
				}
				check(F32)
				raw := make([]byte, 2*k)
				for i := range w {
					b := math.Float32bits(w[i]) &^ 0xFFFF
					w[i] = math.Float32frombits(b)
					raw[2*i], raw[2*i+1] = byte(b>>16), byte(b>>24)
				}
				m = Matrix{Format: BF16, Rows: 1, Cols: k, Stride: 2 * k, Data: raw}
				matMulGeneric(&s, y[:], 1, &m, 0, 1, x, k, 1)
				check(BF16)
			}
		}
	}
}

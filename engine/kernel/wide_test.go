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

// TestInt8IsTheDefinition: the fast generic product of int8 codes gives the bits
// of the package comment, step by step, for groups that end inside the lanes too.
func TestInt8IsTheDefinition(t *testing.T) {
	f := floats{newRand(31), 0}
	for range 400 {
		k, group := 1+f.IntN(200), 16*(1+f.IntN(5))
		f.wild = []int{0, 50}[f.IntN(2)]
		m := f.matrix(Int8, 1, k, group)
		x := f.some(k)
		var s Scratch
		var y [1]float32
		matMulGeneric(&s, y[:], 1, &m, 0, 1, x, k, 1)
		var acc [lanes]float32
		for g := 0; g*group < k; g++ {
			var sum [lanes]float32
			end := min((g+1)*group, k)
			for c := g * group; c < end; c++ {
				sum[c%lanes] = fma32(float32(int8(m.Data[c])), x[c], sum[c%lanes])
			}
			for l := range min(lanes, end-g*group) {
				acc[l] = fma32(sum[l], m.scaleAt(0, g), acc[l])
			}
		}
		if err := sameBits(y[:], []float32{fold(&acc)}); err != nil {
			t.Fatalf("%d columns, groups of %d: %v", k, group, err)
		}
	}
}

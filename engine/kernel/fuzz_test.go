package kernel

import (
	"math/rand/v2"
	"testing"
)

// FuzzTwins holds every level of the machine to the definitions: the input picks
// the function, the shape, the alignment and the kind of values, a seed picks the
// values themselves. wild says how often they are special: 0 never, else one of
// that many is a zero, a subnormal, an infinity, a NaN or any bits.
func FuzzTwins(f *testing.F) {
	for kind := range uint8(24) {
		f.Add(uint64(kind), kind, uint16(5), uint16(96), uint8(1), uint8(0))
		f.Add(uint64(kind)+100, kind, uint16(17), uint16(83), uint8(4), uint8(9))
		f.Add(uint64(kind)+200, kind, uint16(70), uint16(33), uint8(75), uint8(200))
	}
	levels := Levels()
	rows := rowFuncs()
	f.Fuzz(func(t *testing.T, seed uint64, kind uint8, a, b uint16, n, wild uint8) {
		for _, level := range levels[1:] {
			v := floats{rand.New(rand.NewPCG(seed, 2)), int(wild)}
			var err error
			switch kind % 4 {
			case 0, 1: // a product, plain and transposed
				format := Format(kind / 4 % 4)
				w := v.matrix(format, 1+int(a)%90, cols(format, b), 16*(1+v.IntN(5)))
				if kind%4 == 0 {
					lo := v.IntN(w.Rows)
					err = compareMatMul(level, levels[0], v, &w, lo, w.Rows-v.IntN(w.Rows-lo), int(n)%80, v.IntN(3), v.IntN(3))
				} else {
					err = compareMatTMul(level, levels[0], v, &w, int(n)%12)
				}
			case 2:
				spread := []float32{1, 10, 100, 1e-30, 1e30}[v.IntN(5)]
				err = compareRow(level, levels[0], v, rows[int(kind/4)%len(rows)], int(b)%600, spread)
			case 3:
				err = compareKDA(level, levels[0], v, int(a)%140, 1+int(b)%140, 1+int(n)%3)
			}
			if err != nil {
				t.Fatalf("%s: %v", level.Name, err)
			}
		}
	})
}

// cols makes a number of columns that the format allows; products stay small
// enough for many runs a second, and cross the border of a tile now and then.
func cols(format Format, b uint16) int {
	c := 1 + int(b)%700
	if format == MXFP4 {
		c = (c + MXGroup - 1) / MXGroup * MXGroup
	}
	return c
}

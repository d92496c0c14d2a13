package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// forLevels runs f for every assembly level of this machine.
func forLevels(t *testing.T, f func(t *testing.T, level, generic *Table)) {
	levels := Levels()
	for _, l := range levels[1:] {
		t.Run(l.Name, func(t *testing.T) { f(t, l, levels[0]) })
	}
}

// A source of float32 that are not only nice: mostly normal values, now and then
// zeros, subnormals, huge ones, infinities and NaN.
type floats struct {
	*rand.Rand
	wild int // one of so many is special; 0: none
}

func newRand(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

func (f floats) one() float32 {
	if f.wild > 0 && f.IntN(f.wild) == 0 {
		special := []uint32{0, 1 << 31, 1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001}
		if f.IntN(2) == 0 {
			return math.Float32frombits(f.Uint32())
		}
		return math.Float32frombits(special[f.IntN(len(special))])
	}
	return float32(f.NormFloat64())
}

func (f floats) some(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = f.one()
	}
	return out
}

// matrix makes a random matrix whose bytes start at any address and whose rows
// may have a gap.
func (f floats) matrix(format Format, rows, cols, group int) Matrix {
	stride := format.RowBytes(cols) + f.IntN(3)*8*f.IntN(2)
	m := Matrix{Format: format, Rows: rows, Cols: cols, Stride: stride, Group: group}
	shift := f.IntN(4)
	m.Data = make([]byte, shift+rows*stride)[shift:]
	for i := range m.Data {
		m.Data[i] = byte(f.Uint32())
	}
	put := func(b []byte, v float32, n int) {
		u := math.Float32bits(v)
		for i := range n {
			b[i] = byte(u >> (8 * (4 - n + i)))
		}
	}
	switch format {
	case F32, BF16:
		size := format.RowBytes(1)
		for r := range rows {
			for c := range cols {
				put(m.Data[r*stride+c*size:], f.one(), size)
			}
		}
	case MXFP4:
		m.Scale = make([]byte, 1+rows*m.scaleStride())[1:]
		for i := range m.Scale {
			m.Scale[i] = byte(118 + f.IntN(10))
			if f.wild > 0 && f.IntN(f.wild) == 0 {
				m.Scale[i] = byte(f.Uint32())
			}
		}
	case Int8:
		m.Scale = make([]byte, 1+rows*m.scaleStride())[1:]
		for i := 0; i < len(m.Scale); i += 4 {
			put(m.Scale[i:], f.one()/64, 4)
		}
	}
	return m
}

// compareMatMul runs MatMul of both levels on the same operands.
func compareMatMul(level, generic *Table, f floats, w *Matrix, lo, hi, n, gapY, gapX int) error {
	ldy, ldx := w.Rows+gapY, w.Cols+gapX
	x := f.some(n*ldx + 3)[f.IntN(4):][:n*ldx]
	a, b := make([]float32, n*ldy), make([]float32, n*ldy)
	for i := range a {
		a[i] = 77
		b[i] = 77
	}
	var s, sg Scratch
	for i := range s.floats(1 << 12) {
		s.f[i] = float32(math.NaN()) // scratch holds anything
	}
	level.MatMul(&s, a, ldy, w, lo, hi, x, ldx, n)
	generic.MatMul(&sg, b, ldy, w, lo, hi, x, ldx, n)
	if err := sameBits(a, b); err != nil {
		return fmt.Errorf("MatMul %v %dx%d stride %d group %d rows [%d,%d) n %d ldy %d ldx %d: %w",
			w.Format, w.Rows, w.Cols, w.Stride, w.Group, lo, hi, n, ldy, ldx, err)
	}
	return nil
}

func TestMatMulTwins(t *testing.T) {
	forLevels(t, func(t *testing.T, level, generic *Table) {
		f := floats{rand.New(rand.NewPCG(5, 6)), 0}
		for _, format := range []Format{F32, BF16, MXFP4, Int8} {
			for _, rows := range []int{1, 2, 3, 4, 5, 8, 11, 17} {
				for _, cols := range []int{1, 7, 16, 31, 32, 48, 96, 160, 544, 1100} {
					for _, n := range []int{0, 1, 2, 3, 4, 5, 7} {
						if format == MXFP4 {
							cols = (cols + 31) &^ 31
						}
						if rows*cols*n > 30000 {
							continue
						}
						f.wild = []int{0, 0, 300, 20}[f.IntN(4)]
						w := f.matrix(format, rows, cols, 16*(1+f.IntN(4)))
						lo := f.IntN(rows)
						hi := lo + f.IntN(rows-lo+1)
						if f.IntN(2) == 0 {
							lo, hi = 0, rows
						}
						if err := compareMatMul(level, generic, f, &w, lo, hi, n, f.IntN(3), f.IntN(3)); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	})
}

// TestManyRowsTwins crosses the borders of strips and of blocks of x.
func TestManyRowsTwins(t *testing.T) {
	forLevels(t, func(t *testing.T, level, generic *Table) {
		f := floats{newRand(21), 300}
		for _, format := range []Format{F32, BF16, MXFP4, Int8} {
			for _, n := range []int{8, 71, 73, 150} {
				w := f.matrix(format, 70, 64, 48)
				if err := compareMatMul(level, generic, f, &w, 1, 70, n, 1, 2); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, group := range []int{16, 128, 720, 4096} { // shorter and longer than a tile
			w := f.matrix(Int8, 13, 1456, group)
			if err := compareMatMul(level, generic, f, &w, 0, 13, 7, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAllMXScales runs every code under every scale byte.
func TestAllMXScales(t *testing.T) {
	forLevels(t, func(t *testing.T, level, generic *Table) {
		f := floats{rand.New(rand.NewPCG(7, 8)), 0}
		w := f.matrix(MXFP4, 256, 32, 0)
		for r := range 256 {
			w.Scale[r] = byte(r)
			for i := range 16 {
				w.Data[r*w.Stride+i] = byte(i | (i+5)&15<<4)
			}
		}
		for _, n := range []int{1, 2, 3} {
			if err := compareMatMul(level, generic, f, &w, 0, 256, n, 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// compareMatTMul runs MatTMul of both levels on random columns of w.
func compareMatTMul(level, generic *Table, f floats, w *Matrix, n int) error {
	lo := f.IntN(w.Cols/32+1) * 32
	hi := lo + f.IntN(w.Cols-lo+1)
	ldy, ldx := w.Cols+f.IntN(3), w.Rows+f.IntN(3)
	x := f.some(n * ldx)
	a, b := make([]float32, n*ldy), make([]float32, n*ldy)
	var s, sg Scratch
	level.MatTMul(&s, a, ldy, w, lo, hi, x, ldx, n)
	generic.MatTMul(&sg, b, ldy, w, lo, hi, x, ldx, n)
	if err := sameBits(a, b); err != nil {
		return fmt.Errorf("MatTMul %v %dx%d columns [%d,%d) n %d: %w", w.Format, w.Rows, w.Cols, lo, hi, n, err)
	}
	return nil
}

func TestMatTMulTwins(t *testing.T) {
	forLevels(t, func(t *testing.T, level, generic *Table) {
		f := floats{rand.New(rand.NewPCG(9, 10)), 0}
		for _, format := range []Format{F32, BF16, MXFP4, Int8} {
			for range 120 {
				rows, cols, n := f.IntN(40), 1+f.IntN(300), f.IntN(8)
				if format == MXFP4 {
					cols = (cols + 31) &^ 31
				}
				f.wild = []int{0, 0, 300, 20}[f.IntN(4)]
				w := f.matrix(format, rows, cols, 16*(1+f.IntN(4)))
				if err := compareMatTMul(level, generic, f, &w, n); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// compareRow runs one function of both levels on rows of n elements.
func compareRow(level, generic *Table, f floats, fn rowFunc, n int, spread float32) error {
	shift := f.IntN(4)
	in := make([][]float32, fn.in)
	for i := range in {
		in[i] = f.some(n + shift)[shift:]
		for j := range in[i] {
			in[i][j] *= spread
		}
	}
	y := f.some(n + shift)[shift:]
	for j := range y {
		y[j] *= spread
	}
	a, b := f.one(), f.one()
	want := append([]float32(nil), y...)
	before := append([]float32(nil), y...)
	fn.run(level, y, in, a, b)
	fn.run(generic, want, in, a, b)
	if err := sameBits(y, want); err != nil {
		return fmt.Errorf("%s of %d, spread %g, a %g, b %g: %w; y was %v", fn.name, n, spread, a, b, err, before[:min(n, 4)])
	}
	return nil
}

func TestRowTwins(t *testing.T) {
	forLevels(t, func(t *testing.T, level, generic *Table) {
		f := floats{rand.New(rand.NewPCG(11, 12)), 0}
		for _, fn := range rowFuncs() {
			for n := range 80 {
				for _, spread := range []float32{1, 30, 1e-20, 1e20} {
					f.wild = []int{0, 0, 50, 4}[f.IntN(4)]
					if err := compareRow(level, generic, f, fn, n, spread); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

// compareKDA runs some steps of one head on both levels.
func compareKDA(level, generic *Table, f floats, nk, nv, steps int) error {
	s, out, u := f.some(nk*nv), make([]float32, nv), make([]float32, nv)
	sg := append([]float32(nil), s...)
	outG := make([]float32, nv)
	for step := range steps {
		q, k, v, d := f.some(nk), f.some(nk), f.some(nv), f.some(nk)
		for i := range d {
			d[i] = sigmoid32(d[i])
		}
		beta := f.one()
		level.KDAStep(out, s, q, k, v, d, beta, u)
		generic.KDAStep(outG, sg, q, k, v, d, beta, u)
		if err := sameBits(out, outG); err != nil {
			return fmt.Errorf("KDAStep %dx%d, step %d, out: %w", nk, nv, step, err)
		}
		if err := sameBits(s, sg); err != nil {
			return fmt.Errorf("KDAStep %dx%d, step %d, state: %w", nk, nv, step, err)
		}
	}
	return nil
}

func TestKDATwins(t *testing.T) {
	forLevels(t, func(t *testing.T, level, generic *Table) {
		f := floats{rand.New(rand.NewPCG(13, 14)), 0}
		for _, c := range [][2]int{{128, 128}, {1, 1}, {5, 16}, {16, 40}, {3, 100}, {64, 64}, {7, 15}, {0, 3}} {
			for _, wild := range []int{0, 100} {
				f.wild = wild
				if err := compareKDA(level, generic, f, c[0], c[1], 3); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

package kernel

import (
	"fmt"
	"math"
)

// sameBits compares results of two levels: equal bits, or NaN in both.
func sameBits(a, b []float32) error {
	if len(a) != len(b) {
		return fmt.Errorf("lengths %d and %d", len(a), len(b))
	}
	for i := range a {
		x, y := math.Float32bits(a[i]), math.Float32bits(b[i])
		if x != y && (a[i] == a[i] || b[i] == b[i]) {
			return fmt.Errorf("element %d: %g (%#08x), generic %g (%#08x)", i, a[i], x, b[i], y)
		}
	}
	return nil
}

// rowFunc is a function over rows, under one form for all of them.
type rowFunc struct {
	name string
	in   int // input rows, besides y
	run  func(t *Table, y []float32, in [][]float32, a, b float32)
}

// rowFuncs lists the functions over rows.
func rowFuncs() []rowFunc {
	return []rowFunc{
		{"Add", 1, func(t *Table, y []float32, in [][]float32, a, b float32) { t.Add(y, in[0]) }},
		{"Axpy", 1, func(t *Table, y []float32, in [][]float32, a, b float32) { t.Axpy(y, a, in[0]) }},
		{"FMA", 2, func(t *Table, y []float32, in [][]float32, a, b float32) { t.FMA(y, in[0], in[1]) }},
		{"Scale", 0, func(t *Table, y []float32, in [][]float32, a, b float32) { t.Scale(y, a) }},
		{"Dot", 1, func(t *Table, y []float32, in [][]float32, a, b float32) {
			if d := t.Dot(y, in[0]); len(y) > 0 {
				y[0] = d
			}
		}},
		{"RMSNorm", 2, func(t *Table, y []float32, in [][]float32, a, b float32) { t.RMSNorm(y, in[0], in[1], 1e-5) }},
		{"RMSNorm in place", 1, func(t *Table, y []float32, in [][]float32, a, b float32) { t.RMSNorm(y, y, in[0], 1e-5) }},
		{"L2Norm", 0, func(t *Table, y []float32, in [][]float32, a, b float32) { t.L2Norm(y, 1e-6, a) }},
		{"Softmax", 0, func(t *Table, y []float32, in [][]float32, a, b float32) { t.Softmax(y) }},
		{"SiTU", 2, func(t *Table, y []float32, in [][]float32, a, b float32) { t.SiTU(y, in[0], in[1], 4, 25) }},
		{"SiTU in place", 1, func(t *Table, y []float32, in [][]float32, a, b float32) { t.SiTU(y, y, in[0], a, b) }},
		{"SiLU", 0, func(t *Table, y []float32, in [][]float32, a, b float32) { t.SiLU(y) }},
		{"Sigmoid", 1, func(t *Table, y []float32, in [][]float32, a, b float32) { t.Sigmoid(y, in[0]) }},
		{"Sigmoid in place", 0, func(t *Table, y []float32, in [][]float32, a, b float32) { t.Sigmoid(y, y) }},
		{"SigmoidMul", 1, func(t *Table, y []float32, in [][]float32, a, b float32) { t.SigmoidMul(y, in[0]) }},
		{"DecayLower", 2, func(t *Table, y []float32, in [][]float32, a, b float32) { t.DecayLower(y, in[0], in[1], a, -5) }},
		{"DecaySoftplus", 2, func(t *Table, y []float32, in [][]float32, a, b float32) { t.DecaySoftplus(y, in[0], in[1], a) }},
	}
}

// check compares every function of a level with its definition on a few small
// inputs, in about a millisecond. Select runs it, so that a processor or an
// emulator that does not keep the contract is refused at the start, instead of
// writing other text than the rest of the world.
func (t *Table) check(generic *Table) error {
	v := &checkValues{state: 0x9E3779B97F4A7C15}
	for _, f := range rowFuncs() {
		for _, n := range []int{1, 16, 45} {
			in := make([][]float32, f.in)
			for i := range in {
				in[i] = v.row(n)
			}
			y := v.row(n)
			want := append([]float32(nil), y...)
			f.run(t, y, in, 0.7, 1.3)
			f.run(generic, want, in, 0.7, 1.3)
			if err := sameBits(y, want); err != nil {
				return t.broken(f.name, err)
			}
		}
	}
	for _, format := range []Format{F32, BF16, MXFP4, Int8} {
		for _, cols := range []int{96, 160, 83} {
			if format == MXFP4 {
				cols &^= MXGroup - 1
			}
			if err := t.checkProducts(generic, v.matrix(format, 7, cols), v); err != nil {
				return err
			}
		}
	}
	const nk, nv = 9, 53
	s, q, k, d, x := v.row(nk*nv), v.row(nk), v.row(nk), v.row(nk), v.row(nv)
	sg := append([]float32(nil), s...)
	out, want, u := make([]float32, nv), make([]float32, nv), make([]float32, nv)
	t.KDAStep(out, s, q, k, x, d, 0.4, u)
	generic.KDAStep(want, sg, q, k, x, d, 0.4, u)
	if err := sameBits(append(out, s...), append(want, sg...)); err != nil {
		return t.broken("KDAStep", err)
	}
	return nil
}

func (t *Table) checkProducts(generic *Table, w Matrix, v *checkValues) error {
	var s, sg Scratch
	for _, n := range []int{1, 3, 4} {
		x := v.row(n * w.Cols)
		y, want := make([]float32, n*w.Rows), make([]float32, n*w.Rows)
		t.MatMul(&s, y, w.Rows, &w, 0, w.Rows, x, w.Cols, n)
		generic.MatMul(&sg, want, w.Rows, &w, 0, w.Rows, x, w.Cols, n)
		if err := sameBits(y, want); err != nil {
			return t.broken(fmt.Sprintf("MatMul of %d rows, %s, %d columns", n, w.Format, w.Cols), err)
		}
		x = v.row(n * w.Rows)
		y, want = make([]float32, n*w.Cols), make([]float32, n*w.Cols)
		t.MatTMul(&s, y, w.Cols, &w, 0, w.Cols, x, w.Rows, n)
		generic.MatTMul(&sg, want, w.Cols, &w, 0, w.Cols, x, w.Rows, n)
		if err := sameBits(y, want); err != nil {
			return t.broken(fmt.Sprintf("MatTMul of %d rows, %s, %d columns", n, w.Format, w.Cols), err)
		}
	}
	return nil
}

func (t *Table) broken(function string, err error) error {
	return fmt.Errorf("kernel level %s computes %s differently from its definition on this machine (%w); "+
		"choose another level with %s=generic and please report the processor", t.Name, function, err, EnvLevel)
}

// checkValues is a fixed sequence of values for check.
type checkValues struct{ state uint64 }

func (v *checkValues) next() uint64 {
	v.state ^= v.state << 13
	v.state ^= v.state >> 7
	v.state ^= v.state << 17
	return v.state
}

// row returns n values between -4 and 4.
func (v *checkValues) row(n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(int32(v.next()>>32)) / (1 << 29)
	}
	return out
}

func (v *checkValues) matrix(format Format, rows, cols int) Matrix {
	m := Matrix{Format: format, Rows: rows, Cols: cols, Stride: format.RowBytes(cols), Group: 2 * lanes}
	switch format {
	case F32:
		return F32View(v.row(rows*cols), rows, cols, cols)
	case Int8:
		scale := F32View(v.row(rows*m.scaleStride()/4), 1, rows*m.scaleStride()/4, 0)
		m.Scale = scale.Data
	case MXFP4:
		m.Scale = make([]byte, rows*m.scaleStride())
		for i := range m.Scale {
			m.Scale[i] = byte(124 + v.next()%8)
		}
	}
	m.Data = make([]byte, rows*m.Stride)
	for i := range m.Data {
		m.Data[i] = byte(v.next() >> 20)
		if format == BF16 && i&1 == 1 { // the upper byte: an exponent near 1
			m.Data[i] = m.Data[i]&0x80 | 0x3F
		}
	}
	return m
}

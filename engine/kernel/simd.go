//go:build !noasm && (amd64 || arm64)

package kernel

import "unsafe"

// primitives are the assembly functions of one level. They know pointers and
// counts, no shapes: the Go code around them (simd_*.go) checks lengths, cuts
// work into tiles and treats what does not fill a register. Each comment is the
// meaning in plain Go; lengths n and cols are multiples of 16, a block is 16
// columns, strides (stride, ldx, ldy, scaleStride) are in bytes. Those that are given
// buffers from the stack are methods, in locals_*.go.
type primitives struct {
	width    int // float32 in a register
	tileRows int // weight rows per panel of gemm

	add   func(y, x *float32, n int)            // y[i] += x[i]
	axpy  func(y, x *float32, n int, a float32) // y[i] = fma32(a, x[i], y[i])
	fma   func(y, a, b *float32, n int)         // y[i] = fma32(a[i], b[i], y[i])
	scale func(y *float32, n int, a float32)    // y[i] *= a
	norm  func(y, x, w *float32, n int, a float32)
	// norm is y[i] = x[i] * a * w[i]

	kda func(out, s, q, k, v, decay *float32, nk, nv, cols int, beta float32)
	// kda is kdaColumns for columns 0 to cols

	// unpackX writes blocks*16 (MX: groups*32) columns as float32, as decodeRow
	// does; unpackInt8 without the scale.
	unpackBF16 func(dst *float32, src *byte, blocks int)
	unpackInt8 func(dst *float32, src *byte, blocks int)
	unpackMX   func(dst *float32, src *byte, groups int, scale, table *byte)

	// matVecX writes y[r] = the dot product of row r of w and x, for rows rows.
	// Scales of MX rows follow without gaps; an Int8 scale counts for groupBlocks
	// blocks, and lanes is working memory of 64 floats. matVecMX and
	// matVecBF16 take x in the order that permuteMX and permuteBF16 write (nil: as
	// it is).
	matVecF32              func(y *float32, w *byte, stride, rows int, x *float32, blocks int)
	matVecBF16             func(y *float32, w *byte, stride, rows int, x *float32, blocks int)
	matVecInt8             func(y *float32, w *byte, stride, rows int, x *float32, blocks int, scale *byte, scaleStride, groupBlocks int, lanes *float32)
	matVecMX               func(y *float32, w *byte, stride, rows int, x *float32, groups int, scale, table *byte, lanes *float32)
	permuteMX, permuteBF16 func(dst, x *float32, blocks int)

	// gemmN adds the products of panels*tileRows rows of w and N rows of x over
	// blocks blocks to their lanes: lane c%16 of (row r, i) is fma32 over the
	// columns c. mode&1: the lanes start at 0, else they are in acc; mode&2: the
	// lanes are folded into y[i][r], else they go to acc, in the order [r/tileRows]
	// [r%tileRows][i][16].
	gemm1, gemm2, gemm3 func(y *float32, ldy int, acc, w *float32, stride, panels int, x *float32, ldx, blocks, mode int)

	// gemmGroupN does it for one group of int8 codes: the sums of the group start
	// at 0, and acc[c%16] = fma32(sum, scale[r], acc[c%16]). mode&1 means nothing.
	gemmGroup1, gemmGroup2, gemmGroup3 func(y *float32, ldy int, acc, w *float32, stride, panels int, x *float32, ldx, blocks, mode int, scale *float32)

	// tmulN writes y[i][j] = fma32(x[i][r], w[r][j], y[i][j]) for N rows of x, cols
	// columns j and the rows r in rising order.
	tmul1, tmul2, tmul3 func(y *float32, ldy int, w *float32, stride, rows int, x *float32, ldx, cols int)

	read func(p *byte, stride, lines int) // loads lines*64 bytes of each of four rows
	peak func(rounds int)                 // 12 multiply-adds of a whole register per round
}

// simd is a level made of primitives.
type simd struct {
	*primitives
	mx *byte // table of MXFP4 values by scale; see mxtable.go
}

// newTable makes the level called name from its primitives.
func newTable(name string, p *primitives, mx []byte) *Table {
	s := &simd{p, unsafe.SliceData(mx)}
	return &Table{
		Name:   name,
		MatMul: s.MatMul, MatTMul: s.MatTMul,
		Dot: s.Dot, Add: s.Add, Axpy: s.Axpy, FMA: s.FMA, Scale: s.Scale,
		RMSNorm: s.RMSNorm, L2Norm: s.L2Norm, Softmax: s.Softmax,
		SiTU: s.SiTU, SiLU: s.SiLU, Sigmoid: s.Sigmoid, SigmoidMul: s.SigmoidMul,
		DecayLower: s.DecayLower, DecaySoftplus: s.DecaySoftplus,
		KDAStep:   s.KDAStep,
		ReadBytes: s.ReadBytes, MulAdds: s.peak, MulAddsPerRound: 12 * p.width,
		blockWork: 40000,
	}
}

// ReadBytes reads the quarters of b side by side, in whole lines of 64 bytes.
func (s *simd) ReadBytes(b []byte) {
	if lines := len(b) / 256; lines > 0 {
		s.read(&b[0], 64*lines, lines)
	}
}

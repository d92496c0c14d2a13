package kernel

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// The generic product at a bearable speed. It computes the same bits as dotInto:
// rows are widened to float64 once, so that the fused multiply-add of fma.go
// costs a product, a sum and one test per weight, and the lanes stay in
// registers.

// tinyLSB is the weight of the lowest bit of a product (as a power of two) from
// which on the test for results below the normal range may be left out: a sum of
// multiples of 2^-178 that is below 2^-126 has at most 52 bits and is exact.
const tinyLSB = -178

// lsb32 is the exponent of the lowest bit that a float32 of these bits can have,
// or a large number for zero.
func lsb32(bits uint32) int {
	switch e := int(bits >> 23 & 255); {
	case bits<<1 == 0:
		return 1 << 20
	case e == 0:
		return -149
	default:
		return e - 150
	}
}

// widen copies src to dst and returns the lowest lsb32 of it.
func widen(dst []float64, src []float32) int {
	src = src[:len(dst)]
	low := uint32(math.MaxUint32)
	for i, v := range src {
		dst[i] = float64(v)
		// Minus one: zero becomes the largest.
		low = min(low, math.Float32bits(v)<<1-1)
	}
	return lsb32((low + 1) >> 1)
}

// lowestBF16 is the lowest lsb32 that any BF16 can have: a subnormal's.
const lowestBF16 = -133

// decodeWide is decodeRow for a whole row in float64, with the lowest lsb32 of
// its weights.
func decodeWide(dst []float64, m *Matrix, r int) int {
	row := m.Data[r*m.Stride:]
	switch m.Format {
	case BF16:
		return widenBF16(dst, row)
	case MXFP4:
		scale := m.Scale[r*m.scaleStride() : (r+1)*m.scaleStride()]
		decodeMX(dst, row, scale)
		low := byte(255)
		for _, s := range scale {
			low = min(low, s)
		}
		return int(low) - 127 - 1 // codes are multiples of one half
	default:
		decodeRow(dst, m, r, 0)
		low := 1 << 20
		for _, v := range dst {
			low = min(low, lsb32(math.Float32bits(float32(v))))
		}
		return low
	}
}

// smallBF16 is 2^-60 as float32 bits: weights are hardly ever smaller, so that one
// test for all of a row replaces the search for its lowest bit.
const smallBF16 = (127 - 60) << 23

// widenBF16 decodes a row of BF16 and returns its lowest lsb32.
func widenBF16(dst []float64, row []byte) int {
	out, in := dst, row
	var small uint32 // top bit set once a value is below smallBF16
	for ; len(out) >= 4 && len(in) >= 8; out, in = out[4:], in[8:] {
		v := binary.LittleEndian.Uint64(in)
		a, b := uint32(v)<<16, uint32(v)&0xFFFF0000
		c, d := uint32(v>>32)<<16, uint32(v>>32)&0xFFFF0000
		small |= (a&^(1<<31) - smallBF16) | (b&^(1<<31) - smallBF16) | (c&^(1<<31) - smallBF16) | (d&^(1<<31) - smallBF16)
		out[0], out[1] = float64(math.Float32frombits(a)), float64(math.Float32frombits(b))
		out[2], out[3] = float64(math.Float32frombits(c)), float64(math.Float32frombits(d))
	}
	for i := range out {
		a := uint32(binary.LittleEndian.Uint16(in[2*i:])) << 16
		small |= a&^(1<<31) - smallBF16
		out[i] = float64(math.Float32frombits(a))
	}
	if small>>31 == 0 {
		return -60 - 23
	}
	low := 1 << 20
	for _, v := range dst {
		low = min(low, lsb32(math.Float32bits(float32(v))))
	}
	return low
}

// dotWide is dotInto from empty lanes, folded. The sum of lsbs says whether
// results can be so small that they round elsewhere.
func dotWide(a, b []float64, lsb int) float32 {
	var acc [lanes]float32
	whole := len(a) &^ (lanes - 1)
	if lsb < tinyLSB {
		for i, v := range a[:whole] {
			acc[i%lanes] = fma32(float32(v), float32(b[i]), acc[i%lanes])
		}
	} else if whole > 0 {
		dotEight((*[8]float32)(acc[:8]), a[:whole], b[:whole])
		dotEight((*[8]float32)(acc[8:]), a[8:whole], b[8:whole])
	}
	for i := whole; i < len(a); i++ {
		acc[i-whole] = fma32(float32(a[i]), float32(b[i]), acc[i-whole])
	}
	return fold(&acc)
}

// dotInt8 is the definition of a dot product with row r of an Int8 matrix, whose
// codes are a: the lanes of a group start at +0, and a lane of the row takes in the
// group's times the scale. Codes are whole numbers, so no product with them has a
// bit below the lowest of a float32 and the test of dotWide is not needed.
func dotInt8(a, b []float64, w *Matrix, r int) float32 {
	var acc [lanes]float32
	for g := 0; len(a) > 0; g++ {
		n := min(w.Group, len(a))
		var sum [lanes]float32
		whole := n &^ (lanes - 1)
		if whole > 0 {
			dotEight((*[8]float32)(sum[:8]), a[:whole], b[:whole])
			dotEight((*[8]float32)(sum[8:]), a[8:whole], b[8:whole])
		}
		for i := whole; i < n; i++ {
			sum[i-whole] = fma32(float32(a[i]), float32(b[i]), sum[i-whole])
		}
		scale := w.scaleAt(r, g)
		for l := range min(n, lanes) {
			acc[l] = fma32(sum[l], scale, acc[l])
		}
		a, b = a[n:], b[n:]
	}
	return fold(&acc)
}

// dotBF16 is dotWide for a row of BF16 bytes and activations none of which is so
// small that the weights would have to be looked at.
func dotBF16(row []byte, b []float64) float32 {
	var acc [lanes]float32
	whole := len(b) &^ (lanes - 1)
	if whole > 0 {
		dotEightBF16((*[8]float32)(acc[:8]), row[:2*whole], b[:whole])
		dotEightBF16((*[8]float32)(acc[8:]), row[16:2*whole], b[8:whole])
	}
	for i := whole; i < len(b); i++ {
		w := math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16)
		acc[i-whole] = fma32(w, float32(b[i]), acc[i-whole])
	}
	return fold(&acc)
}

// dotEight runs eight lanes over every second group of eight columns of two rows of
// n floats. Each step is fma32 for an exact product: only a sum in the middle
// between two float32 can go wrong when it is rounded twice. Unrolled by hand and
// read through pointers, so that the lanes stay in registers and a step costs
// little more than its arithmetic.
func dotEight(acc *[8]float32, a, b []float64) {
	n := min(len(a), len(b))
	if n < 8 {
		return
	}
	var l0, l1, l2, l3, l4, l5, l6, l7 float64
	pa, pb := unsafe.Pointer(unsafe.SliceData(a)), unsafe.Pointer(unsafe.SliceData(b))
	for at := uintptr(0); at+8 <= uintptr(n); at += lanes {
		x, y := (*[8]float64)(unsafe.Add(pa, 8*at)), (*[8]float64)(unsafe.Add(pb, 8*at))
		s0 := x[0]*y[0] + l0
		s1 := x[1]*y[1] + l1
		s2 := x[2]*y[2] + l2
		s3 := x[3]*y[3] + l3
		if middle(s0) {
			s0 = untie(s0, x[0]*y[0], l0)
		}
		if middle(s1) {
			s1 = untie(s1, x[1]*y[1], l1)
		}
		if middle(s2) {
			s2 = untie(s2, x[2]*y[2], l2)
		}
		if middle(s3) {
			s3 = untie(s3, x[3]*y[3], l3)
		}
		l0, l1, l2, l3 = float64(float32(s0)), float64(float32(s1)), float64(float32(s2)), float64(float32(s3))
		s4 := x[4]*y[4] + l4
		s5 := x[5]*y[5] + l5
		s6 := x[6]*y[6] + l6
		s7 := x[7]*y[7] + l7
		if middle(s4) {
			s4 = untie(s4, x[4]*y[4], l4)
		}
		if middle(s5) {
			s5 = untie(s5, x[5]*y[5], l5)
		}
		if middle(s6) {
			s6 = untie(s6, x[6]*y[6], l6)
		}
		if middle(s7) {
			s7 = untie(s7, x[7]*y[7], l7)
		}
		l4, l5, l6, l7 = float64(float32(s4)), float64(float32(s5)), float64(float32(s6)), float64(float32(s7))
	}
	*acc = [8]float32{float32(l0), float32(l1), float32(l2), float32(l3), float32(l4), float32(l5), float32(l6), float32(l7)}
}

// dotEightBF16 is dotEight with a row of BF16 bytes, decoded on the way: for a
// single row of activations, storing the decoded weights would cost more than
// using them.
func dotEightBF16(acc *[8]float32, row []byte, b []float64) {
	n := min(len(row)/2, len(b))
	if n < 8 {
		return
	}
	var l0, l1, l2, l3, l4, l5, l6, l7 float64
	pa, pb := unsafe.Pointer(unsafe.SliceData(row)), unsafe.Pointer(unsafe.SliceData(b))
	for at := uintptr(0); at+8 <= uintptr(n); at += lanes {
		w, y := (*[16]byte)(unsafe.Add(pa, 2*at)), (*[8]float64)(unsafe.Add(pb, 8*at))
		u, v := binary.LittleEndian.Uint64(w[:8]), binary.LittleEndian.Uint64(w[8:])
		s0 := low(u)*y[0] + l0
		s1 := high(u)*y[1] + l1
		s2 := low(u>>32)*y[2] + l2
		s3 := high(u>>32)*y[3] + l3
		if middle(s0) {
			s0 = untie(s0, low(u)*y[0], l0)
		}
		if middle(s1) {
			s1 = untie(s1, high(u)*y[1], l1)
		}
		if middle(s2) {
			s2 = untie(s2, low(u>>32)*y[2], l2)
		}
		if middle(s3) {
			s3 = untie(s3, high(u>>32)*y[3], l3)
		}
		l0, l1, l2, l3 = float64(float32(s0)), float64(float32(s1)), float64(float32(s2)), float64(float32(s3))
		s4 := low(v)*y[4] + l4
		s5 := high(v)*y[5] + l5
		s6 := low(v>>32)*y[6] + l6
		s7 := high(v>>32)*y[7] + l7
		if middle(s4) {
			s4 = untie(s4, low(v)*y[4], l4)
		}
		if middle(s5) {
			s5 = untie(s5, high(v)*y[5], l5)
		}
		if middle(s6) {
			s6 = untie(s6, low(v>>32)*y[6], l6)
		}
		if middle(s7) {
			s7 = untie(s7, high(v>>32)*y[7], l7)
		}
		l4, l5, l6, l7 = float64(float32(s4)), float64(float32(s5)), float64(float32(s6)), float64(float32(s7))
	}
	*acc = [8]float32{float32(l0), float32(l1), float32(l2), float32(l3), float32(l4), float32(l5), float32(l6), float32(l7)}
}

// low and high are the two BF16 in the lower 32 bits of w.
func low(w uint64) float64  { return float64(math.Float32frombits(uint32(w) << 16)) }
func high(w uint64) float64 { return float64(math.Float32frombits(uint32(w) &^ 0xFFFF)) }

// middle reports whether s lies exactly between two neighbouring float32.
func middle(s float64) bool { return uint32(math.Float64bits(s))<<3 == 1<<31 }

// untie moves s = p + c off the middle if the exact sum is not there: the error of
// the first rounding (two-sum) decides. It must stay small enough to be inlined: a
// call would spill all lanes.
func untie(s, p, c float64) float64 {
	bb := s - p
	e := (p - (s - bb)) + (c - bb)
	if e == 0 || e != e {
		return s
	}
	if (e > 0) == (s > 0) {
		return math.Float64frombits(math.Float64bits(s) + 1)
	}
	return math.Float64frombits(math.Float64bits(s) - 1)
}

package main

import (
	"fmt"
	"math/bits"
)

// matVecs writes y[r] = w[r] . x for rows of whole 16-column blocks.
//
// A lane is one chain of dependent additions, so four rows are worked on at a time
// to fill the pipes (MXFP4 on avx2: two, see matVecMX). They are not neighbours but
// a quarter of all rows apart: each of the four streams then runs through memory
// without a gap, which is what the hardware fetches ahead best. What is left over
// after four equal streams is done row by row.
func matVecs(m *asm) {
	for _, format := range []string{"f32", "bf16"} {
		name := map[string]string{"f32": "matVecF32", "bf16": "matVecBF16"}[format]
		m.fn(name, "y *float32, w *byte, stride, rows int, x *float32, blocks int", func() {
			matVecPlain(m, format)
		})
	}
	m.fn("matVecInt8", "y *float32, w *byte, stride, rows int, x *float32, blocks int, scale *byte, scaleStride, groupBlocks int, lanes *float32", func() {
		matVecInt8(m)
	})
	m.fn("matVecMX", "y *float32, w *byte, stride, rows int, x *float32, groups int, scale, table *byte", func() {
		matVecMX(m)
	})
}

// streams writes the frame of a one-row product: row for n rows at a time (2 or 4),
// then for one. row must move w on by rowBytes bytes and s, whose rows follow
// without gaps, by one row of scaleStride bytes ("": there are no scales).
func (m *asm) streams(n int, scaleStride string, rowBytes func(t reg), fold func([][]vec) vec, row func(n int, w, s rows, acc [][]vec)) {
	wp, left, apart := m.loadArg("w"), m.loadArg("rows"), m.reg()
	var sp, scaleApart reg
	m.shrR(left, log2(n))
	m.argTo(apart, "stride")
	m.mulR(apart, left)
	if scaleStride != "" {
		sp, scaleApart = m.loadArg("scale"), m.reg()
		m.argTo(scaleApart, scaleStride)
		m.mulR(scaleApart, left)
	}
	turn := func(n int, w, s rows) {
		acc := m.accumulators(n)
		row(n, w, s, acc)
		m.finish(acc, fold)
		t := m.reg()
		rowBytes(t) // from the end of a row to the start of the next
		m.subRows(w, t)
		m.argTo(t, "stride")
		m.addRows(w, t)
		m.freeReg(t)
	}
	w, s := m.rowsFrom(wp, n, apart), rows{}
	if scaleStride != "" {
		s = m.rowsFrom(sp, n, scaleApart)
	}
	m.loop(left, func() { turn(n, w, s) })
	m.freeRows(w)
	for range n - 1 {
		m.addR(wp, apart)
		if scaleStride != "" {
			m.addR(sp, scaleApart)
		}
	}
	if scaleStride != "" {
		m.freeRows(s)
	}
	m.yApart(apart, n) // y stands at the end of the first stream
	m.argTo(left, "y")
	for range n - 1 {
		m.addR(left, apart)
	}
	m.toArg("y", left)
	m.argTo(left, "rows")
	m.andR(left, n-1)
	one := rows{n: 1, ptr: []reg{wp}}
	m.loop(left, func() { turn(1, one, rows{n: 1, ptr: []reg{sp}}) })
}

// yApart writes r = bytes between the results of two of n streams: 4 * (rows / n).
func (m *asm) yApart(r reg, n int) {
	m.argTo(r, "rows")
	m.shrR(r, log2(n))
	m.shlR(r, 2)
}

func log2(n int) int { return bits.TrailingZeros(uint(n)) }

// prefetchAhead is the distance in bytes, found by measurement.
const prefetchAhead = 512

// prefetch asks for what a stream needs soon.
func (m *asm) prefetch(p mem) {
	if m.level != neon {
		m.i("PREFETCHT0 %s", p.plus(prefetchAhead))
	}
}

// unrolled runs body for by steps at a time while count lasts, then for one. Loop
// counting and prefetching would cost a tenth of the work otherwise.
func (m *asm) unrolled(count reg, by int, body func(n int)) {
	m.chunks(count, by, func() { body(by) })
	m.loop(count, func() { body(1) })
}

// matVecPlain multiplies rows of one number per column. For bf16 on avx2, x must be
// in the order even columns, odd columns of each 16, which permutes makes: one load
// then brings 16 weights, of which a shift makes the even and a mask the odd ones.
// Widening them in order would take half as many operations again.
func matVecPlain(m *asm, format string) {
	size := map[string]int{"f32": 4, "bf16": 2}[format]
	shift := map[string]int{"f32": 6, "bf16": 5}[format]
	xp, count := m.reg(), m.reg()
	rowBytes := func(t reg) { m.argTo(t, "blocks"); m.shlR(t, shift) }
	unpack, fold := func(d []vec, p mem) { m.unpack16(format, d, p) }, m.foldRows
	if format == "bf16" && m.level == avx2 {
		upper := m.konst(bitsConst(0xFFFF0000))
		fold = m.foldEvenOdd
		unpack = func(d []vec, p mem) {
			m.load(d[1], p)
			m.shl(d[0], d[1], 16)
			m.op(opAnd, d[1], d[1], upper)
		}
	}
	m.streams(4, "", rowBytes, fold, func(n int, w, _ rows, acc [][]vec) {
		m.argTo(xp, "x")
		m.argTo(count, "blocks")
		m.unrolled(count, 64/(16*size)*2, func(blocks int) {
			for b := range blocks {
				xs := m.vecN(m.regsPer16())
				m.unpack16("f32", xs, at(xp, 64*b))
				for i := range n {
					d := m.vecN(m.regsPer16())
					p := m.row(w, i, 16*size*b)
					unpack(d, p)
					if 16*size*b%64 == 0 {
						m.prefetch(p)
					}
					for j := range d {
						m.fma(acc[i][j], d[j], xs[j])
					}
					m.free(d...)
				}
				m.free(xs...)
			}
			m.advance(w, 16*size*blocks)
			m.addI(xp, 64*blocks)
		})
	})
}

// accumulators takes and clears the lanes of n rows.
func (m *asm) accumulators(n int) [][]vec {
	acc := make([][]vec, n)
	for i := range acc {
		acc[i] = m.vecN(m.regsPer16())
		for _, v := range acc[i] {
			m.zero(v)
		}
	}
	return acc
}

// finish folds the rows, stores their sums at y, one per stream, and moves y on by
// one. y lives in its parameter.
func (m *asm) finish(acc [][]vec, fold func([][]vec) vec) {
	s := fold(acc)
	y, apart := m.loadArg("y"), m.reg()
	m.storeLow(at(y, 0), s, 1)
	m.addI(y, 4)
	m.toArg("y", y)
	m.addI(y, -4)
	if len(acc) > 1 {
		m.yApart(apart, len(acc))
		for i := 1; i < len(acc); i++ {
			m.addR(y, apart)
			m.storeLane(y, s, i)
		}
	}
	m.freeReg(y, apart)
	for _, a := range acc {
		m.free(a...)
	}
}

// matVecInt8 walks the groups of a row, and the blocks of a group inside. The
// registers hold the sums of the group at hand; the lanes of the rows wait in
// memory, 16 floats each, and take the group in when it is done.
func matVecInt8(m *asm) {
	xp, left, count, lp := m.reg(), m.reg(), m.reg(), m.loadArg("lanes")
	rowBytes := func(t reg) { m.argTo(t, "blocks"); m.shlR(t, 4) }
	eachLane := func(acc [][]vec, f func(v vec, i int, p mem)) {
		for i := range acc {
			for j, v := range acc[i] {
				f(v, i, at(lp, 64*i+4*m.width()*j))
			}
		}
	}
	m.streams(4, "scaleStride", rowBytes, m.foldRows, func(n int, w, s rows, acc [][]vec) {
		m.argTo(xp, "x")
		m.argTo(left, "blocks")
		eachLane(acc, func(v vec, _ int, p mem) { m.store(p, v) })
		top, end := m.newLabel("group"), m.newLabel("end")
		m.place(top)
		m.jumpIfZero(left, end)
		m.minArg(count, left, "groupBlocks")
		m.subR(left, count)
		eachLane(acc, func(v vec, _ int, _ mem) { m.zero(v) })
		m.unrolled(count, 4, func(blocks int) {
			for b := range blocks {
				xs := m.vecN(m.regsPer16())
				m.unpack16("f32", xs, at(xp, 64*b))
				for i := range n {
					d := m.vecN(m.regsPer16())
					p := m.row(w, i, 16*b)
					m.unpack16("int8", d, p)
					if b == 0 {
						m.prefetch(p)
					}
					for j := range d {
						m.fma(acc[i][j], d[j], xs[j])
					}
					m.free(d...)
				}
				m.free(xs...)
			}
			m.advance(w, 16*blocks)
			m.addI(xp, 64*blocks)
		})
		k, t := m.vec(), m.vec()
		eachLane(acc, func(v vec, i int, p mem) {
			if v == acc[i][0] {
				m.bcast(k, m.row(s, i, 0))
			}
			m.load(t, p)
			m.fma(t, v, k)
			m.store(p, t)
		})
		m.free(k, t)
		m.advance(s, 4)
		m.jump(top)
		m.place(end)
		eachLane(acc, func(v vec, _ int, p mem) { m.load(v, p) })
	})
}

// permutes writes the reorderings of x for matVecMX and, on avx2, matVecBF16.
func permutes(m *asm) {
	if m.level == neon {
		return
	}
	const sig = "dst, x *float32, blocks int"
	if m.level == avx512 {
		m.fn("permuteMX", sig, func() {
			order := m.vec()
			m.i("VMOVDQU32 %s, %s", m.konstInts(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), m.v(order))
			m.eachBlock(func(dst, xp reg) {
				a := m.vec()
				m.i("VPERMPS %s, %s, %s", at(xp, 0), m.v(order), m.v(a))
				m.store(at(dst, 0), a)
				m.free(a)
			})
		})
		return
	}
	m.fn("permuteMX", sig, func() {
		order := m.vec()
		m.i("VMOVDQU %s, %s", m.konstInts(0, 4, 1, 5, 2, 6, 3, 7), m.v(order))
		m.eachBlock(func(dst, xp reg) {
			a, b, t := m.vec(), m.vec(), m.vec()
			m.load(a, at(xp, 0))
			m.load(b, at(xp, 32))
			m.i("VUNPCKLPS %s, %s, %s", m.v(b), m.v(a), m.v(t)) // 0 8 1 9 | 4 12 5 13
			m.i("VUNPCKHPS %s, %s, %s", m.v(b), m.v(a), m.v(a)) // 2 10 3 11 | 6 14 7 15
			m.i("VPERMPS %s, %s, %s", m.v(t), m.v(order), m.v(t))
			m.i("VPERMPS %s, %s, %s", m.v(a), m.v(order), m.v(a))
			m.store(at(dst, 0), t)
			m.store(at(dst, 32), a)
			m.free(a, b, t)
		})
	})
	m.fn("permuteBF16", sig, func() {
		m.eachBlock(func(dst, xp reg) {
			a, t := m.vec(), m.vec()
			m.load(a, at(xp, 0))
			for j, pick := range []int{0x88, 0xDD} { // even, odd
				m.i("VSHUFPS $%#x, %s, %s, %s", pick, at(xp, 32), m.v(a), m.v(t)) // of 0..3, 8..11 | 4..7, 12..15
				m.i("VPERMQ $0xD8, %s, %s", m.v(t), m.v(t))
				m.store(at(dst, 32*j), t)
			}
			m.free(a, t)
		})
	})
}

// eachBlock runs body for every 16 floats at the parameters x and dst.
func (m *asm) eachBlock(body func(dst, xp reg)) {
	dst, xp, blocks := m.loadArg("dst"), m.loadArg("x"), m.loadArg("blocks")
	m.loop(blocks, func() {
		body(dst, xp)
		m.addI(xp, 64)
		m.addI(dst, 64)
	})
}

// konstInts is the address of a vector of integers.
func (m *asm) konstInts(v ...uint32) string {
	name := fmt.Sprintf("%sInts%d<>", m.level, len(m.ints))
	for i, old := range m.ints {
		if fmt.Sprint(old) == fmt.Sprint(v) {
			return fmt.Sprintf("%sInts%d<>(SB)", m.level, i)
		}
	}
	m.ints = append(m.ints, v)
	return name + "(SB)"
}

func (m *asm) jump(label string) {
	if m.level == neon {
		m.i("B %s", label)
		return
	}
	m.i("JMP %s", label)
}

func (m *asm) jumpIfZero(r reg, label string) {
	if m.level == neon {
		m.i("CBZ %s, %s", r, label)
		return
	}
	m.i("TESTQ %s, %s", r, r)
	m.i("JZ %s", label)
}

// minArg writes d = min(a, parameter).
func (m *asm) minArg(d, a reg, name string) {
	m.argTo(d, name)
	if m.level == neon {
		m.i("CMP %s, %s", a, d)
		m.i("CSEL LT, %s, %s, %s", d, a, d)
		return
	}
	m.i("CMPQ %s, %s", a, d)
	m.i("CMOVQLT %s, %s", a, d)
}

package main

import "fmt"

// inFlight is the number of weight rows that a one-row product works on at a
// time. A lane is one chain of dependent additions, so several rows are needed
// to fill the pipes; they also share the loads of x.
const inFlight = 4

// byRows writes the frame of a one-row product: body for four rows at a time,
// then for one. body moves the row starts on.
func (m *asm) byRows(body func(n int)) {
	left := m.loadArg("rows")
	m.chunks(left, inFlight, func() { body(inFlight) })
	m.loop(left, func() { body(1) })
}

// matVecs writes y[r] = w[r] . x for rows of whole 16-column blocks.
func matVecs(m *asm) {
	for _, format := range []string{"f32", "bf16"} {
		name := map[string]string{"f32": "matVecF32", "bf16": "matVecBF16"}[format]
		m.fn(name, "y *float32, w *byte, stride, rows int, x *float32, blocks int", func() {
			matVecPlain(m, format)
		})
	}
	m.fn("matVecInt8", "y *float32, w *byte, stride, rows int, x *float32, blocks int, scale *byte, scaleStride, groupBlocks int", func() {
		matVecInt8(m)
	})
	m.fn("matVecMX", "y *float32, w *byte, stride, rows int, x *float32, groups int, scale, table *byte", func() {
		matVecMX(m)
	})
}

// An ahead points at the rows that come after those at hand. They are asked for
// while these are worked on: rows are too short for the hardware to see a
// stream in each, and the next ones begin where these end. amd64 only.
type ahead struct {
	rows
	on bool
}

func (m *asm) newAhead(r rows) ahead {
	if m.level == neon || r.n != inFlight {
		return ahead{}
	}
	a := ahead{rows: r, on: true}
	a.ptr = []reg{m.reg()}
	m.i("LEAQ (%s)(%s*%d), %s", r.ptr[0], r.stride, r.n, a.ptr[0])
	return a
}

func (m *asm) prefetch(a ahead, row, off int) {
	if a.on {
		m.i("PREFETCHT1 %s", m.row(a.rows, row, off))
	}
}

func (m *asm) advanceAhead(a ahead, n int) {
	if a.on {
		m.advance(a.rows, n)
	}
}

// unrolled runs body for by steps at a time while count lasts, then for one. Loop
// counting and prefetching would cost a tenth of the work otherwise.
func (m *asm) unrolled(count reg, by int, body func(n int)) {
	m.chunks(count, by, func() { body(by) })
	m.loop(count, func() { body(1) })
}

func (m *asm) freeAhead(a ahead) {
	if a.on {
		m.freeReg(a.ptr...)
	}
}

func matVecPlain(m *asm, format string) {
	size := map[string]int{"f32": 4, "bf16": 2}[format]
	w, stride, xp := m.loadArg("w"), m.loadArg("stride"), m.reg()
	count := m.reg()
	m.byRows(func(n int) {
		r := m.newRows(n, stride)
		m.start(r, w)
		next := m.newAhead(r)
		m.argTo(xp, "x")
		m.argTo(count, "blocks")
		acc := m.accumulators(n)
		m.unrolled(count, 64/(16*size)*2, func(blocks int) {
			for b := range blocks {
				xs := m.vecN(m.regsPer16())
				m.unpack16("f32", xs, at(xp, 64*b), 0)
				for i := range n {
					d := m.vecN(m.regsPer16())
					m.unpack16(format, d, m.row(r, i, 16*size*b), 0)
					if 16*size*b%64 == 0 {
						m.prefetch(next, i, 16*size*b)
					}
					for j := range d {
						m.fma(acc[i][j], d[j], xs[j])
					}
					m.free(d...)
				}
				m.free(xs...)
			}
			m.advance(r, 16*size*blocks)
			m.advanceAhead(next, 16*size*blocks)
			m.addI(xp, 64*blocks)
		})
		m.finish(acc, count, m.foldRows)
		m.freeAhead(next)
		m.freeRows(r)
		for range n {
			m.addR(w, stride)
		}
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

// finish folds the rows, stores their sums at y and moves y on. y stays in its
// parameter meanwhile; t is a free register.
func (m *asm) finish(acc [][]vec, t reg, fold func([][]vec) vec) {
	s := fold(acc)
	m.argTo(t, "y")
	m.storeLow(at(t, 0), s, len(acc))
	m.addI(t, 4*len(acc))
	m.toArg("y", t)
	for _, a := range acc {
		m.free(a...)
	}
}

// matVecInt8 walks the groups of a row, and the blocks of a group inside.
func matVecInt8(m *asm) {
	w, stride, xp := m.loadArg("w"), m.loadArg("stride"), m.reg()
	scale, scaleStride := m.loadArg("scale"), m.loadArg("scaleStride")
	left, count := m.reg(), m.reg()
	m.byRows(func(n int) {
		r := m.newRows(n, stride)
		m.start(r, w)
		next := m.newAhead(r)
		s := m.newRows(n, scaleStride)
		m.start(s, scale)
		m.argTo(xp, "x")
		m.argTo(left, "blocks")
		acc := m.accumulators(n)
		top, end := m.newLabel("group"), m.newLabel("end")
		m.place(top)
		m.jumpIfZero(left, end)
		m.minArg(count, left, "groupBlocks")
		m.subR(left, count)
		k := m.vecN(n)
		for i := range n {
			m.bcast(k[i], m.row(s, i, 0))
		}
		m.advance(s, 4)
		m.unrolled(count, 4, func(blocks int) {
			for b := range blocks {
				xs := m.vecN(m.regsPer16())
				m.unpack16("f32", xs, at(xp, 64*b), 0)
				for i := range n {
					d := m.vecN(m.regsPer16())
					m.unpack16("int8", d, m.row(r, i, 16*b), k[i])
					if b == 0 {
						m.prefetch(next, i, 0)
					}
					for j := range d {
						m.fma(acc[i][j], d[j], xs[j])
					}
					m.free(d...)
				}
				m.free(xs...)
			}
			m.advance(r, 16*blocks)
			m.advanceAhead(next, 16*blocks)
			m.addI(xp, 64*blocks)
		})
		m.jump(top)
		m.place(end)
		m.free(k...)
		m.finish(acc, count, m.foldRows)
		m.freeAhead(next)
		m.freeRows(r)
		m.freeRows(s)
		for range n {
			m.addR(w, stride)
			m.addR(scale, scaleStride)
		}
	})
}

// matVecMX multiplies MXFP4 rows. On amd64 x must be in the order in which the
// codes unpack cheaply; permute makes it.
//
// avx2: the 16 bytes of a group go to both halves of a register and are shifted
// by 0 and 4, which makes the codes of the even columns in the lower and of the
// odd ones in the upper half. Two lookups give the upper and lower bytes of their
// bfloat16 values, scale included; interleaved they are words, even words move up
// by 16 bits, odd ones lose their lower neighbour. Each 16 columns arrive as
// 0 4 8 12 | 1 5 9 13 and 2 6 10 14 | 3 7 11 15.
//
// avx512: 8 bytes go to every 64-bit lane, each 32-bit lane is shifted until its
// code lies lowest, and one lookup in 16 float32 does the rest. The columns
// arrive as 0 8 1 9 2 10 ... 7 15.
//
// neon: in order.
func matVecMX(m *asm) {
	w, stride, xp := m.loadArg("w"), m.loadArg("stride"), m.reg()
	scale, table, groups := m.loadArg("scale"), m.loadArg("table"), m.loadArg("groups")
	t, count := m.reg(), m.reg()
	var k []vec // constants of the unpacking
	switch m.level {
	case avx2:
		k = []vec{m.mxMask(), m.konst(bitsConst(0xFFFF0000)), m.vec()}
		m.i("VMOVDQU %s, %s", m.konstInts(0, 0, 0, 0, 4, 4, 4, 4), m.v(k[2]))
	case avx512:
		k = []vec{m.vec()}
		m.i("VMOVDQU32 %s, %s", m.konstInts(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28), m.v(k[0]))
	case neon:
		k = []vec{m.mxMask()}
	}
	m.byRows(func(n int) {
		r := m.newRows(n, stride)
		m.start(r, w)
		next := m.newAhead(r)
		s := m.rowsFrom(scale, n, groups) // its rows follow without gaps
		m.argTo(xp, "x")
		m.movR(count, groups)
		acc := m.accumulators(n)
		m.unrolled(count, 4, func(gs int) {
			for g := range gs {
				for i := range n {
					m.mxTable(t, m.row(s, i, g), table)
					if g == 0 {
						m.prefetch(next, i, 0)
					}
					m.mxRow(acc[i], m.row(r, i, 16*g), at(xp, 128*g), t, table, k)
				}
			}
			m.advance(r, 16*gs)
			m.advanceAhead(next, 16*gs)
			m.advance(s, gs)
			m.addI(xp, 128*gs)
		})
		m.finish(acc, count, [...]func([][]vec) vec{m.foldMX2, m.foldMX512, m.foldRows}[m.level])
		m.freeAhead(next)
		m.freeRows(r)
		m.freeRows(s)
		for i := range n {
			m.addR(w, stride)
			if i > 0 {
				m.addR(scale, groups)
			}
		}
	})
}

// mxRow adds one group of one row to its lanes.
func (m *asm) mxRow(acc []vec, p, xp mem, t, table reg, k []vec) {
	switch m.level {
	case avx2:
		c, hi, lo := m.vec(), m.vec(), m.vec()
		m.i("VBROADCASTI128 %s, %s", p, m.v(c))
		m.i("VPSRLVD %s, %s, %s", m.v(k[2]), m.v(c), m.v(c))
		m.op(opAnd, c, c, k[0])
		m.i("VBROADCASTI128 %s, %s", m.tableMem(t, table, 0), m.v(hi))
		m.i("VBROADCASTI128 %s, %s", m.tableMem(t, table, 16), m.v(lo))
		m.i("VPSHUFB %s, %s, %s", m.v(c), m.v(hi), m.v(hi))
		m.i("VPSHUFB %s, %s, %s", m.v(c), m.v(lo), m.v(lo))
		m.i("VPUNPCKLBW %s, %s, %s", m.v(hi), m.v(lo), m.v(c))
		m.i("VPUNPCKHBW %s, %s, %s", m.v(hi), m.v(lo), m.v(hi))
		for j, words := range []vec{c, hi} {
			m.shl(lo, words, 16)
			m.fmaMem(acc[0], lo, xp.plus(64*j))
			m.op(opAnd, words, words, k[1])
			m.fmaMem(acc[1], words, xp.plus(64*j+32))
		}
		m.free(c, hi, lo)
	case avx512:
		for j := range 2 {
			c := m.vec()
			m.i("VPBROADCASTQ %s, %s", p.plus(8*j), m.v(c))
			m.i("VPSRLVD %s, %s, %s", m.v(k[0]), m.v(c), m.v(c))
			m.i("VPERMPS %s, %s, %s", m.tableMem(t, table, 0), m.v(c), m.v(c))
			m.fmaMem(acc[0], c, xp.plus(64*j))
			m.free(c)
		}
	case neon:
		d := m.vecN(8)
		m.unpackMXNatural(d, p, t, table, k[0])
		for j := range d {
			m.fmaMem(acc[j%4], d[j], xp.plus(16*j))
		}
		m.free(d...)
	}
}

// permutes writes the reordering of x for matVecMX.
func permutes(m *asm) {
	if m.level == neon {
		return
	}
	m.fn("permute", "dst, x *float32, blocks int", func() {
		dst, xp, blocks := m.loadArg("dst"), m.loadArg("x"), m.loadArg("blocks")
		order := m.vec()
		if m.level == avx512 {
			m.i("VMOVDQU32 %s, %s", m.konstInts(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15), m.v(order))
		} else {
			m.i("VMOVDQU %s, %s", m.konstInts(0, 4, 1, 5, 2, 6, 3, 7), m.v(order))
		}
		m.loop(blocks, func() {
			if m.level == avx512 {
				a := m.vec()
				m.i("VPERMPS %s, %s, %s", at(xp, 0), m.v(order), m.v(a))
				m.store(at(dst, 0), a)
				m.free(a)
			} else {
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
			}
			m.addI(xp, 64)
			m.addI(dst, 64)
		})
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

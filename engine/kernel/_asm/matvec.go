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
	m.fn("matVecMX", "y *float32, w *byte, stride, rows int, x *float32, groups int, scale, table *byte, lanes *float32", func() {
		matVecMX(m)
	})
}

// A product is what streams needs to know of one kind of weights.
type product struct {
	n           int    // rows at a time, 2 or 4
	scaleStride string // parameter: bytes of a row's scales, which follow without gaps; "": there are none
	// hold is a parameter too: memory where the lanes of n rows wait for those of the
	// next n, to be folded with them: four rows cost no more to fold than two. "": n
	// rows are folded when they are done.
	hold     string
	rowBytes func(t reg)
	fold     func([][]vec) vec
	// row adds up n rows. It must move w on by rowBytes bytes and s by one row of
	// scales.
	row func(n int, w, s rows, acc [][]vec)
}

// streams writes the frame of a one-row product: row for n rows at a time, then for
// one.
func (m *asm) streams(p product) {
	wp, left, apart := m.loadArg("w"), m.reg(), m.reg()
	var sp, scaleApart reg
	p.each(m, left)
	m.argTo(apart, "stride")
	m.mulR(apart, left)
	if p.scaleStride != "" {
		sp, scaleApart = m.loadArg("scale"), m.reg()
		m.argTo(scaleApart, p.scaleStride)
		m.mulR(scaleApart, left)
	}
	turn := func(n int, w, s rows, end func(acc [][]vec)) {
		acc := m.accumulators(n)
		p.row(n, w, s, acc)
		end(acc)
		for _, a := range acc {
			m.free(a...)
		}
		t := m.reg()
		p.rowBytes(t) // from the end of a row to the start of the next
		m.subRows(w, t)
		m.argTo(t, "stride")
		m.addRows(w, t)
		m.freeReg(t)
	}
	w, s := m.rowsFrom(wp, p.n, apart), rows{}
	if p.scaleStride != "" {
		s = m.rowsFrom(sp, p.n, scaleApart)
	}
	m.loop(left, func() {
		turn(p.n, w, s, func(acc [][]vec) {
			if p.hold == "" {
				p.finish(m, acc, 1)
				return
			}
			m.ifEven(left, func() { p.wait(m, acc) }, func() {
				all, old := p.waited(m, acc)
				p.finish(m, all, 2)
				m.free(old...)
			})
		})
	})
	m.freeRows(w)
	for range p.n - 1 {
		m.addR(wp, apart)
		if p.scaleStride != "" {
			m.addR(sp, scaleApart)
		}
	}
	if p.scaleStride != "" {
		m.freeRows(s)
	}
	p.yApart(m, apart) // y stands at the end of the first stream
	m.argTo(left, "y")
	for range p.n - 1 {
		m.addR(left, apart)
	}
	m.toArg("y", left)
	m.argTo(left, "rows")
	m.andR(left, p.block()-1)
	one := rows{n: 1, ptr: []reg{wp}}
	m.loop(left, func() {
		turn(1, one, rows{n: 1, ptr: []reg{sp}}, func(acc [][]vec) { p.finish(m, acc, 1) })
	})
}

// block is how many rows are folded together: what is left of them goes one by one.
func (p *product) block() int {
	if p.hold != "" {
		return 2 * p.n
	}
	return p.n
}

// each writes r = the rows of a stream.
func (p *product) each(m *asm, r reg) {
	m.argTo(r, "rows")
	m.shrR(r, log2(p.block()))
	if p.hold != "" {
		m.shlR(r, 1)
	}
}

// yApart writes r = bytes between the results of two streams.
func (p *product) yApart(m *asm, r reg) {
	p.each(m, r)
	m.shlR(r, 2)
}

// finish folds n rows of each stream, acc being [stream][n], stores their sums at y,
// and moves y on. y lives in its parameter.
func (p *product) finish(m *asm, acc [][]vec, n int) {
	s := p.fold(acc)
	y := m.loadArg("y")
	m.storeLow(at(y, 0), s, n)
	m.addI(y, 4*n)
	m.toArg("y", y)
	m.addI(y, -4*n)
	apart := m.reg()
	if streams := len(acc) / n; streams > 1 {
		p.yApart(m, apart)
		for i := 1; i < streams; i++ {
			m.addR(y, apart)
			if n == 2 {
				m.storeHigh(at(y, 0), s)
			} else {
				m.storeLane(y, s, i)
			}
		}
	}
	m.freeReg(y, apart)
}

// wait stores lanes, waited loads them again and puts each row before the one of its
// stream that came after it.
func (p *product) wait(m *asm, acc [][]vec) {
	t := m.loadArg(p.hold)
	for i, a := range acc {
		for j, v := range a {
			m.store(p.held(m, t, i, j), v)
		}
	}
	m.freeReg(t)
}

func (p *product) waited(m *asm, acc [][]vec) (all [][]vec, old []vec) {
	t := m.loadArg(p.hold)
	for i, a := range acc {
		row := m.vecN(len(a))
		for j, v := range row {
			m.load(v, p.held(m, t, i, j))
		}
		all, old = append(all, row, a), append(old, row...)
	}
	m.freeReg(t)
	return all, old
}

func (p *product) held(m *asm, base reg, row, j int) mem { return at(base, 64*row+4*m.width()*j) }

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
	m.streams(product{n: 4, rowBytes: rowBytes, fold: fold, row: func(n int, w, _ rows, acc [][]vec) {
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
	}})
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

package main

// matVecMX multiplies MXFP4 rows. On amd64 x must be in the order in which the
// codes unpack cheaply; permutes makes it. It is the kernel that the drives wait
// for: 14 vector operations for 32 weights, so the pipes are the bound, never the
// memory.
//
// avx2: the 16 bytes of a group go to both halves of a register and are shifted
// by 0 and 4, which makes the codes of the even columns in the lower and of the
// odd ones in the upper half. Two lookups give the upper and lower bytes of their
// bfloat16 values, scale included; interleaved they are words, even words move up
// by 16 bits, odd ones lose their lower neighbour. Each 16 columns arrive as
// 0 4 8 12 | 1 5 9 13 and 2 6 10 14 | 3 7 11 15. Two rows at a time keep enough
// sums under way, and leave registers for the pipeline of mxPipeline.
//
// avx512: 8 bytes go to every 64-bit lane, each 32-bit lane is shifted until its
// code lies lowest, and one lookup in 16 float32 does the rest. The columns
// arrive as 0 8 1 9 2 10 ... 7 15.
//
// neon: in order.
func matVecMX(m *asm) {
	xp, table, t, count := m.reg(), m.loadArg("table"), m.reg(), m.reg()
	var k []vec // constants of the unpacking
	switch m.level {
	case avx2:
		k = []vec{m.mxMask(), m.konst(bitsConst(0xFFFF0000)), m.vec(), m.konst(bitsConst(1 << 16))}
		m.i("VMOVDQU %s, %s", m.konstInts(0, 0, 0, 0, 4, 4, 4, 4), m.v(k[2]))
	case avx512:
		k = []vec{m.vec()}
		m.i("VMOVDQU32 %s, %s", m.konstInts(0, 0, 4, 4, 8, 8, 12, 12, 16, 16, 20, 20, 24, 24, 28, 28), m.v(k[0]))
	case neon:
		k = []vec{m.mxMask()}
	}
	rowBytes := func(t reg) { m.argTo(t, "groups"); m.shlR(t, 4) }
	fold := [...]func([][]vec) vec{m.foldMX2, m.foldMX512, m.foldRows}[m.level]
	n, by, hold := 4, 4, ""
	if m.level == avx2 {
		n, by, hold = 2, 8, "lanes"
	}
	m.streams(product{n: n, scaleStride: "groups", hold: hold, rowBytes: rowBytes, fold: fold, row: func(n int, w, s rows, acc [][]vec) {
		m.argTo(xp, "x")
		m.argTo(count, "groups")
		if m.level == avx2 && n > 1 {
			m.i("PCALIGN $64") // how a full loop lies in lines is worth up to a tenth
		}
		m.unrolled(count, by, func(gs int) {
			steps := make([]mxStep, 0, n*gs)
			for g := range gs {
				for i := range n {
					steps = append(steps, mxStep{acc[i], m.row(w, i, 16*g), m.row(s, i, g), at(xp, 128*g), g%4 == 0})
				}
			}
			if m.level == avx2 && n > 1 && gs > 1 {
				m.mxPipeline(steps, table, k)
			} else {
				m.mxInTurn(steps, t, table, k)
			}
			m.advance(w, 16*gs)
			m.advance(s, gs)
			m.addI(xp, 128*gs)
		})
	}})
}

// An mxStep is one group of one row: its lanes, the places of its 32 codes, of its
// scale and of its columns of x, and whether it is the first in 64 bytes of codes.
type mxStep struct {
	acc             []vec
	codes, scale, x mem
	line            bool
}

// mxInTurn does one step after the other.
func (m *asm) mxInTurn(steps []mxStep, t, table reg, k []vec) {
	for _, s := range steps {
		m.mxTable(t, s.scale, table)
		if s.line {
			m.prefetch(s.codes)
		}
		m.mxRow(s.acc, s.codes, s.x, t, table, k)
	}
}

// mxAhead is how far ahead codes are fetched into the L2, in bytes: the hardware follows
// two streams by itself, but begins anew with every page of 4 KiB. Found by measurement.
const mxAhead = 2048

// mxPipeline does the steps as a pipeline of four stages, avx2 only: codes, bytes,
// words, sums. A turn takes each stage one step on, the last stage first, so that
// whatever an instruction reads was made a turn ago and nothing waits in the
// schedulers. A multiplication by 2^16 shifts the even words: it runs where no shuffle
// does, and those pipes are the full ones. Both together are worth a fifth on Zen 3.
// Of a million other orders and stages, annealed there, none takes less time than this
// one, which has room for the prefetch: beside an addition it costs nothing.
func (m *asm) mxPipeline(steps []mxStep, table reg, k []vec) {
	r := m.vecN(7)
	c, hi, lo, w0, w1, e0, e1 := r[0], r[1], r[2], r[3], r[4], r[5], r[6]
	entry := []reg{m.reg(), m.reg()} // of the scale table, for this step and the last
	step := func(i int) (mxStep, bool) {
		if i < 0 || i >= len(steps) {
			return mxStep{}, false
		}
		return steps[i], true
	}
	for i := range len(steps) + 3 {
		if s, ok := step(i); ok {
			m.mxTable(entry[i%2], s.scale, table)
		}
		if _, ok := step(i - 1); ok {
			m.op(opAnd, c, c, k[0])
		}
		if s, ok := step(i - 3); ok {
			m.i("VPMULLD %s, %s, %s", m.v(k[3]), m.v(w1), m.v(e1))
			m.i("VPMULLD %s, %s, %s", m.v(k[3]), m.v(w0), m.v(e0))
			m.op(opAnd, w0, w0, k[1])
			m.op(opAnd, w1, w1, k[1])
			m.fmaMem(s.acc[1], w0, s.x.plus(32))
			m.fmaMem(s.acc[0], e0, s.x)
			m.fmaMem(s.acc[1], w1, s.x.plus(96))
			if s.line {
				m.i("PREFETCHT1 %s", s.codes.plus(mxAhead))
			}
			m.fmaMem(s.acc[0], e1, s.x.plus(64))
		}
		if _, ok := step(i - 2); ok {
			m.i("VPUNPCKHBW %s, %s, %s", m.v(hi), m.v(lo), m.v(w1))
			m.i("VPUNPCKLBW %s, %s, %s", m.v(hi), m.v(lo), m.v(w0))
		}
		if _, ok := step(i - 1); ok {
			t := entry[(i-1)%2]
			m.i("VBROADCASTI128 %s, %s", m.tableMem(t, table, 0), m.v(hi))
			m.i("VBROADCASTI128 %s, %s", m.tableMem(t, table, 16), m.v(lo))
			m.i("VPSHUFB %s, %s, %s", m.v(c), m.v(lo), m.v(lo))
			m.i("VPSHUFB %s, %s, %s", m.v(c), m.v(hi), m.v(hi))
		}
		if s, ok := step(i); ok {
			m.i("VBROADCASTI128 %s, %s", s.codes, m.v(c))
			m.i("VPSRLVD %s, %s, %s", m.v(k[2]), m.v(c), m.v(c))
		}
	}
	m.free(r...)
	m.freeReg(entry...)
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

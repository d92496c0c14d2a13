package main

// matVecInt8 walks the groups of a row, and the blocks of a group inside. The
// registers hold the sums of the group at hand; the lanes of the rows wait in
// memory, 16 floats each, and take the group in when it is done.
//
// On avx2 groups of 128 columns, which is what a converted trunk has, are one straight
// run of instructions: see int8Group.
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
	m.streams(product{n: 4, scaleStride: "scaleStride", rowBytes: rowBytes, fold: m.foldRows, row: func(n int, w, s rows, acc [][]vec) {
		m.argTo(xp, "x")
		m.argTo(left, "blocks")
		eachLane(acc, func(v vec, _ int, p mem) { m.store(p, v) })
		top, end := m.newLabel("group"), m.newLabel("end")
		m.place(top)
		m.jumpIfZero(left, end)
		m.minArg(count, left, "groupBlocks")
		m.subR(left, count)
		eachLane(acc, func(v vec, _ int, _ mem) { m.zero(v) })
		if m.level == avx2 && n == 4 {
			m.ifEqual(count, groupBlocks, func() { m.int8Group(w, xp, acc) }, func() { m.int8Blocks(count, w, xp, acc) })
		} else {
			m.int8Blocks(count, w, xp, acc)
		}
		k, t := m.vec(), m.vec()
		eachLane(acc, func(v vec, i int, p mem) {
			if v == acc[i][0] {
				m.bcast(k, m.row(s, i, 0))
			}
			if m.level == neon {
				m.load(t, p)
				m.fma(t, v, k)
				m.store(p, t)
				return
			}
			m.i("VFMADD213PS %s, %s, %s", p, m.v(k), m.v(v)) // the sum times k plus the lanes
			m.store(p, v)
		})
		m.free(k, t)
		m.advance(s, 4)
		m.jump(top)
		m.place(end)
		eachLane(acc, func(v vec, _ int, p mem) { m.load(v, p) })
	}})
}

// int8Blocks adds so many blocks to the sums of a group.
func (m *asm) int8Blocks(count reg, w rows, xp reg, acc [][]vec) {
	m.unrolled(count, 4, func(blocks int) {
		for b := range blocks {
			xs := m.vecN(m.regsPer16())
			m.unpack16("f32", xs, at(xp, 64*b))
			for i := range acc {
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
}

const (
	// groupBlocks is the number of blocks of a group of 128 columns.
	groupBlocks = 8
	// int8Ahead is how far ahead codes are fetched, in bytes: nearer than others are,
	// since a row of them is short. Found by measurement.
	int8Ahead = 256
)

// int8Group adds a group of 128 columns of four rows to its sums, avx2 only: 32 steps
// of one block and row each, as a pipeline of five stages that carries the upper half
// of a block two steps further than the lower one. The order within a turn is the
// fastest of some hundred thousand tried on Zen 3.
func (m *asm) int8Group(w rows, xp reg, acc [][]vec) {
	x := [2][]vec{m.vecN(2), m.vecN(2)} // of this block and the last
	t := [2][]vec{m.vecN(2), m.vecN(2)} // of this step and the last
	const rows, steps = 4, 4 * groupBlocks
	type step struct{ i, row, block int }
	do := func(i int, f func(s step)) {
		if i >= 0 && i < steps {
			f(step{i, i % rows, i / rows})
		}
	}
	code := func(s step, half int) mem { return m.row(w, s.row, 16*s.block+8*half) }
	widen := func(s step, half int) { m.i("VPMOVSXBD %s, %s", code(s, half), m.v(t[s.i%2][half])) }
	float := func(s step, half int) {
		m.i("VCVTDQ2PS %s, %s", m.v(t[s.i%2][half]), m.v(t[s.i%2][half]))
	}
	add := func(s step, half int) { m.fma(acc[s.row][half], t[s.i%2][half], x[s.block%2][half]) }
	loadX := func(s step, half int) {
		if s.row == 0 {
			m.load(x[s.block%2][half], at(xp, 64*s.block+32*half))
		}
	}
	for i := range steps + 4 {
		do(i-4, func(s step) { float(s, 0); add(s, 0) })
		do(i, func(s step) { loadX(s, 1) })
		do(i-2, func(s step) { float(s, 1) })
		do(i-1, func(s step) { widen(s, 1) })
		do(i-2, func(s step) { widen(s, 0); add(s, 1) })
		do(i, func(s step) {
			loadX(s, 0)
			if s.block%4 == 0 {
				m.i("PREFETCHT0 %s", code(s, 0).plus(int8Ahead))
			}
		})
	}
	for _, v := range [][]vec{x[0], x[1], t[0], t[1]} {
		m.free(v...)
	}
	m.advance(w, 16*groupBlocks)
	m.addI(xp, 64*groupBlocks)
}

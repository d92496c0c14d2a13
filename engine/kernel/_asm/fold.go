package main

// foldRows adds up the 16 lanes of each row in the fixed tree of kernel/dot.go
// and leaves the sums of n rows (1, 2 or 4) in the lowest lanes of the register
// it returns. acc[r] are the registers of row r; they are used up.
func (m *asm) foldRows(acc [][]vec) vec {
	q := make([]vec, 4) // four running sums per row: l+8 and l+4 are done
	for r := range acc {
		q[r] = acc[r][0]
		switch m.level {
		case avx2:
			m.op(opAdd, q[r], acc[r][0], acc[r][1])
			m.foldHigh128(q[r])
		case avx512:
			t := m.vec()
			m.i("VEXTRACTF64X4 $1, %s, %s", m.v(q[r]), y(t))
			m.i("VADDPS %s, %s, %s", y(t), y(q[r]), y(q[r]))
			m.free(t)
			m.foldHigh128(q[r])
		case neon:
			m.op(opAdd, acc[r][0], acc[r][0], acc[r][2])
			m.op(opAdd, acc[r][1], acc[r][1], acc[r][3])
			m.op(opAdd, q[r], acc[r][0], acc[r][1])
		}
	}
	for r := len(acc); r < 4; r++ {
		q[r] = q[r%len(acc)]
	}
	return m.foldQuads(q)
}

// foldHigh128 adds the upper 128 bits of a 256-bit register to the lower.
func (m *asm) foldHigh128(q vec) {
	t := m.vec()
	op := "VEXTRACTF128"
	if m.level == avx512 {
		op = "VEXTRACTF32X4" // the form that knows registers 16 to 31
	}
	m.i("%s $1, %s, %s", op, y(q), x(t))
	m.i("VADDPS %s, %s, %s", x(t), x(q), x(q))
	m.free(t)
}

// foldQuads takes the lanes 0 to 3 of four rows and returns [sum of q0, q1, q2,
// q3]: first l+2 of two rows at a time, then l+1 of all.
func (m *asm) foldQuads(q []vec) vec {
	t, s := m.vec(), m.vec()
	m.quad("VUNPCKLPD", 0x4EC03800, "ZIP1 2D", t, q[0], q[1])
	m.quad("VUNPCKHPD", 0x4EC07800, "ZIP2 2D", q[0], q[0], q[1])
	m.quad("VADDPS", opAdd.neon, "FADD", t, t, q[0])
	m.quad("VUNPCKLPD", 0x4EC03800, "ZIP1 2D", s, q[2], q[3])
	m.quad("VUNPCKHPD", 0x4EC07800, "ZIP2 2D", q[0], q[2], q[3])
	m.quad("VADDPS", opAdd.neon, "FADD", s, s, q[0])
	m.evenOdd(q[0], t, s)
	m.quad("VADDPS", opAdd.neon, "FADD", q[0], q[0], t)
	m.free(t, s)
	return q[0]
}

// evenOdd writes even = the even lanes of a then b, and a = the odd lanes.
func (m *asm) evenOdd(even, a, b vec) {
	if m.level == neon {
		m.word(0x4E801800|m5(b)|n5(a)|rd(even), "UZP1 V%d.4S, V%d.4S, V%d.4S", even, a, b)
		m.word(0x4E805800|m5(b)|n5(a)|rd(a), "UZP2 V%d.4S, V%d.4S, V%d.4S", a, a, b)
		return
	}
	m.i("VSHUFPS $0x88, %s, %s, %s", x(b), x(a), x(even))
	m.i("VSHUFPS $0xDD, %s, %s, %s", x(b), x(a), x(a))
}

// quad is an operation on 128 bits.
func (m *asm) quad(amd64 string, neonOp uint32, name string, d, a, b vec) {
	if m.level == neon {
		m.word(neonOp|m5(b)|n5(a)|rd(d), "%s V%d, V%d, V%d", name, d, a, b)
		return
	}
	m.i("%s %s, %s, %s", amd64, x(b), x(a), x(d))
}

// foldMX2 is foldRows for the column order of the avx2 MXFP4 product (see
// matVecMX): register 0 of a row holds the columns 0 4 8 12 | 1 5 9 13 of each
// 16, register 1 holds 2 6 10 14 | 3 7 11 15.
func (m *asm) foldMX2(acc [][]vec) vec {
	n := len(acc)
	t := m.vec()
	for j := range 2 {
		a, b, c, d := acc[0][j], acc[1%n][j], acc[2%n][j], acc[3%n][j]
		s := m.vec()
		m.i("VUNPCKLPD %s, %s, %s", y(b), y(a), y(t)) // l and l+8
		m.i("VUNPCKHPD %s, %s, %s", y(b), y(a), y(s))
		m.i("VADDPS %s, %s, %s", y(s), y(t), y(t))
		m.i("VUNPCKLPD %s, %s, %s", y(d), y(c), y(s))
		m.i("VUNPCKHPD %s, %s, %s", y(d), y(c), y(a))
		m.i("VADDPS %s, %s, %s", y(a), y(s), y(s))
		m.i("VSHUFPS $0x88, %s, %s, %s", y(s), y(t), y(a)) // l and l+4
		m.i("VSHUFPS $0xDD, %s, %s, %s", y(s), y(t), y(t))
		m.i("VADDPS %s, %s, %s", y(t), y(a), y(a))
		m.free(s)
	}
	s := acc[0][0]
	m.i("VADDPS %s, %s, %s", y(acc[0][1]), y(s), y(s)) // l and l+2
	m.foldHigh128(s)                                   // l and l+1
	m.free(t)
	return s
}

// foldEvenOdd is foldRows for the column order of the avx2 bfloat16 product:
// register 0 of a row holds the even lanes, register 1 the odd ones.
func (m *asm) foldEvenOdd(acc [][]vec) vec {
	var s [2]vec
	for j := range s {
		q := make([]vec, 4)
		for r := range q {
			q[r] = acc[r%len(acc)][j]
			if r < len(acc) {
				m.foldHigh128(q[r]) // l and l+8
			}
		}
		s[j] = m.foldQuads(q) // l+4, l+2
	}
	m.i("VADDPS %s, %s, %s", x(s[1]), x(s[0]), x(s[0])) // l+1
	return s[0]
}

// foldMX512 is foldRows for the column order of the avx512 MXFP4 product: 0 8 1
// 9 2 10 ... 7 15.
func (m *asm) foldMX512(acc [][]vec) vec {
	t := m.vec()
	q := make([]vec, 4)
	for r := range acc {
		q[r] = acc[r][0]
		m.i("VPERMILPS $0xB1, %s, %s", m.v(q[r]), m.v(t))
		m.op(opAdd, q[r], q[r], t) // l+8
		m.i("VEXTRACTF64X4 $1, %s, %s", m.v(q[r]), y(t))
		m.i("VADDPS %s, %s, %s", y(t), y(q[r]), y(q[r])) // l+4
		m.foldHigh128(q[r])                              // l+2
	}
	for r := len(acc); r < 4; r++ {
		q[r] = q[r%len(acc)]
	}
	m.i("VSHUFPS $0x88, %s, %s, %s", x(q[1]), x(q[0]), x(t)) // [0 1] of q0, q1
	m.i("VSHUFPS $0x88, %s, %s, %s", x(q[3]), x(q[2]), x(q[0]))
	s := m.vec()
	m.evenOdd(s, t, q[0])
	m.i("VADDPS %s, %s, %s", x(t), x(s), x(q[0])) // l+1
	m.free(t, s)
	return q[0]
}

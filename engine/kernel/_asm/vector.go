package main

// each runs body once per register over n floats, n a multiple of 16, with the
// pointer parameters in registers. body does not move the pointers.
func (m *asm) each(ptrs []string, body func(p []reg)) {
	var p []reg
	for _, name := range ptrs {
		p = append(p, m.loadArg(name))
	}
	n := m.loadArg("n")
	m.keepConsts()
	m.chunks(n, m.width(), func() {
		body(p)
		for _, r := range p {
			m.addI(r, 4*m.width())
		}
	})
}

// simple writes the operations that touch every element once.
func simple(m *asm) {
	m.fn("add", "y, x *float32, n int", func() {
		m.each([]string{"y", "x"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(a, at(p[0], 0))
			m.load(b, at(p[1], 0))
			m.op(opAdd, a, a, b)
			m.store(at(p[0], 0), a)
			m.free(a, b)
		})
	})
	m.fn("axpy", "y, x *float32, n int, a float32", func() {
		k := m.vec()
		m.bcastArg(k, "a")
		m.each([]string{"y", "x"}, func(p []reg) {
			a := m.vec()
			m.load(a, at(p[0], 0))
			m.fmaMem(a, k, at(p[1], 0))
			m.store(at(p[0], 0), a)
			m.free(a)
		})
	})
	m.fn("fma", "y, a, b *float32, n int", func() {
		m.each([]string{"y", "a", "b"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(a, at(p[0], 0))
			m.load(b, at(p[1], 0))
			m.fmaMem(a, b, at(p[2], 0))
			m.store(at(p[0], 0), a)
			m.free(a, b)
		})
	})
	m.fn("scale", "y *float32, n int, a float32", func() {
		k := m.vec()
		m.bcastArg(k, "a")
		m.each([]string{"y"}, func(p []reg) {
			a := m.vec()
			m.load(a, at(p[0], 0))
			m.op(opMul, a, a, k)
			m.store(at(p[0], 0), a)
			m.free(a)
		})
	})
	m.fn("norm", "y, x, w *float32, n int, a float32", func() {
		k := m.vec()
		m.bcastArg(k, "a")
		m.each([]string{"y", "x", "w"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(a, at(p[1], 0))
			m.load(b, at(p[2], 0))
			m.op(opMul, a, a, k)
			m.op(opMul, a, a, b)
			m.store(at(p[0], 0), a)
			m.free(a, b)
		})
	})
}

// lanes runs body over 16 floats at a time with the 16 lanes of parameter acc in
// registers.
func (m *asm) lanes(ptrs []string, body func(acc []vec, p []reg)) {
	accp := m.loadArg("acc")
	var p []reg
	for _, name := range ptrs {
		p = append(p, m.loadArg(name))
	}
	n := m.loadArg("n")
	acc := m.vecN(m.regsPer16())
	for j, a := range acc {
		m.load(a, at(accp, 4*m.width()*j))
	}
	m.keepConsts()
	m.chunks(n, 16, func() {
		body(acc, p)
		for _, r := range p {
			m.addI(r, 64)
		}
	})
	for j, a := range acc {
		m.store(at(accp, 4*m.width()*j), a)
	}
}

// reductions writes the sums and maxima over one row, in 16 lanes.
func reductions(m *asm) {
	m.fn("dot", "acc, a, b *float32, n int", func() {
		m.lanes([]string{"a", "b"}, func(acc []vec, p []reg) {
			for j, s := range acc {
				t := m.vec()
				m.load(t, at(p[0], 4*m.width()*j))
				m.fmaMem(s, t, at(p[1], 4*m.width()*j))
				m.free(t)
			}
		})
	})
	m.fn("max", "acc, x *float32, n int", func() {
		m.lanes([]string{"x"}, func(acc []vec, p []reg) {
			for j, s := range acc {
				t := m.vec()
				m.load(t, at(p[0], 4*m.width()*j))
				m.op(opMax, s, s, t)
				m.free(t)
			}
		})
	})
	m.fn("expSum", "acc, x *float32, n int, m float32", func() {
		top := m.vec()
		m.bcastArg(top, "m")
		m.lanes([]string{"x"}, func(acc []vec, p []reg) {
			for j, s := range acc {
				t := m.vec()
				m.load(t, at(p[0], 4*m.width()*j))
				m.op(opSub, t, t, top)
				m.exp(t)
				m.store(at(p[0], 4*m.width()*j), t)
				m.op(opAdd, s, s, t)
				m.free(t)
			}
		})
	})
}

package main

// kda writes one token of a KDA head (kernel/kda.go), over cols columns of the
// state s [nk, nv], a multiple of 16. A block of columns is walked twice: the
// first pass only reads (the decayed state is made again in the second, which is
// cheaper than storing it), the second writes.
func kda(m *asm) {
	m.fn("kda", "out, s, q, k, v, decay *float32, nk, nv, cols int, beta float32", func() {
		out, sb, vp, cols := m.loadArg("out"), m.loadArg("s"), m.loadArg("v"), m.loadArg("cols")
		nv, sp, count := m.loadArg("nv"), m.reg(), m.reg()
		kp, dp, qp := m.reg(), m.reg(), m.reg()
		m.shlR(nv, 2)
		wide := map[level]int{avx2: 4, avx512: 4, neon: 8}[m.level] * m.width()
		block := func(n int) {
			u := m.vecN(n / m.width())
			for _, v := range u {
				m.zero(v)
			}
			off := func(j int) int { return 4 * m.width() * j }
			pass := func(row func(d, kc vec)) {
				m.movR(sp, sb)
				m.argTo(dp, "decay")
				m.argTo(kp, "k")
				m.argTo(count, "nk")
				m.loop(count, func() {
					d, kc := m.vec(), m.vec()
					m.bcast(d, at(dp, 0))
					m.bcast(kc, at(kp, 0))
					row(d, kc)
					m.addR(sp, nv)
					m.addI(dp, 4)
					m.addI(kp, 4)
					m.free(d, kc)
				})
			}
			t := m.vec()
			pass(func(d, kc vec) {
				for j := range u {
					m.load(t, at(sp, off(j)))
					m.op(opMul, t, t, d)
					m.fma(u[j], t, kc)
				}
			})
			b := m.vec()
			m.bcastArg(b, "beta")
			for j := range u {
				m.load(t, at(vp, off(j)))
				m.op(opSub, t, t, u[j])
				m.op(opMul, u[j], b, t)
			}
			m.free(b)
			o := m.vecN(len(u))
			for _, v := range o {
				m.zero(v)
			}
			m.argTo(qp, "q")
			pass(func(d, kc vec) {
				qc := m.vec()
				m.bcast(qc, at(qp, 0))
				for j := range u {
					m.load(t, at(sp, off(j)))
					m.op(opMul, t, t, d)
					m.fma(t, kc, u[j])
					m.store(at(sp, off(j)), t)
					m.fma(o[j], t, qc)
				}
				m.addI(qp, 4)
				m.free(qc)
			})
			for j := range o {
				m.store(at(out, off(j)), o[j])
			}
			m.free(o...)
			m.free(u...)
			m.free(t)
			m.addI(sb, 4*n)
			m.addI(vp, 4*n)
			m.addI(out, 4*n)
		}
		m.chunks(cols, wide, func() { block(wide) })
		m.chunks(cols, 16, func() { block(16) })
	})
}

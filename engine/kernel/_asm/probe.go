package main

// probes writes the loops that measure what the machine can do.
func probes(m *asm) {
	// Four streams, like the rows of a product: one alone does not get all that the
	// memory gives to a core.
	m.fn("read", "p *byte, stride, lines int", func() {
		p, stride, lines := m.loadArg("p"), m.loadArg("stride"), m.loadArg("lines")
		r := m.newRows(4, stride)
		m.start(r, p)
		m.loop(lines, func() { // 64 bytes of each stream
			for i := range 4 {
				for off := 0; off < 64; off += 4 * m.width() {
					t := m.vec()
					m.load(t, m.row(r, i, off))
					m.free(t)
				}
			}
			m.advance(r, 64)
		})
	})
	m.fn("peak", "rounds int", func() { // 12 fused multiply-adds a round
		rounds := m.loadArg("rounds")
		vs := m.vecN(14)
		for _, v := range vs {
			m.zero(v)
		}
		m.loop(rounds, func() {
			for _, v := range vs[2:] {
				m.fma(v, vs[0], vs[1])
			}
		})
	})
}

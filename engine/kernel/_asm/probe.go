package main

// probes writes the loops that measure what the machine can do.
func probes(m *asm) {
	m.fn("read", "p *byte, lines int", func() {
		p, lines := m.loadArg("p"), m.loadArg("lines")
		m.loop(lines, func() { // 256 bytes
			for off := 0; off < 256; off += 4 * m.width() {
				t := m.vec()
				m.load(t, at(p, off))
				m.free(t)
			}
			m.addI(p, 256)
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

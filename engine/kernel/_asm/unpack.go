package main

// unpack16 loads 16 columns at p in natural order into the registers d and makes
// float32 of them.
//
// float32 is loaded as it is; a bfloat16 is the upper half of a float32; an int8
// code is converted, without its scale.
func (m *asm) unpack16(format string, d []vec, p mem) {
	w := m.width()
	switch format {
	case "f32":
		for j := range d {
			m.load(d[j], p.plus(4*w*j))
		}
	case "bf16":
		if m.level == neon {
			t := m.vec()
			for j := 0; j < 4; j += 2 {
				m.load(t, p.plus(8*j))
				m.word(0x2E613800|n5(t)|rd(d[j]), "SHLL V%d.4S, V%d.4H, #16", d[j], t)
				m.word(0x6E613800|n5(t)|rd(d[j+1]), "SHLL2 V%d.4S, V%d.8H, #16", d[j+1], t)
			}
			m.free(t)
			return
		}
		for j := range d {
			m.i("VPMOVZXWD %s, %s", p.plus(2*w*j), m.v(d[j]))
			m.shl(d[j], d[j], 16)
		}
	case "int8":
		if m.level == neon {
			m.int8Neon(d, p)
			return
		}
		for j := range d {
			m.i("VPMOVSXBD %s, %s", p.plus(w*j), m.v(d[j]))
			m.i("VCVTDQ2PS %s, %s", m.v(d[j]), m.v(d[j]))
		}
	}
}

func (m *asm) int8Neon(d []vec, p mem) {
	b, h := m.vec(), m.vec()
	m.load(b, p)
	for half := range 2 {
		if half == 0 {
			m.word(0x0F08A400|n5(b)|rd(h), "SSHLL V%d.8H, V%d.8B, #0", h, b)
		} else {
			m.word(0x4F08A400|n5(b)|rd(h), "SSHLL2 V%d.8H, V%d.16B, #0", h, b)
		}
		lo, hi := d[2*half], d[2*half+1]
		m.word(0x0F10A400|n5(h)|rd(lo), "SSHLL V%d.4S, V%d.4H, #0", lo, h)
		m.word(0x4F10A400|n5(h)|rd(hi), "SSHLL2 V%d.4S, V%d.8H, #0", hi, h)
		m.word(0x4E21D800|n5(lo)|rd(lo), "SCVTF V%d.4S, V%d.4S", lo, lo)
		m.word(0x4E21D800|n5(hi)|rd(hi), "SCVTF V%d.4S, V%d.4S", hi, hi)
	}
	m.free(b, h)
}

// mxEntry is the size of one scale's part of the MXFP4 table (kernel/mxtable.go):
// the upper and the lower bytes of 16 bfloat16 values; for avx512 16 float32.
func (l level) mxEntryShift() int { return [...]int{5, 6, 5}[l] }

// mxTable points t at the table entry of the scale byte at p.
func (m *asm) mxTable(t reg, p mem, table reg) {
	if m.level == neon {
		m.i("MOVBU %s, %s", p, t)
		m.i("ADD %s<<%d, %s, %s", t, m.mxEntryShift(), table, t)
		return
	}
	m.i("MOVBLZX %s, %s", p, t)
	m.i("SHLL $%d, %s", m.mxEntryShift(), t)
}

// tableMem is the place of bytes off in the entry that mxTable found.
func (m *asm) tableMem(t, table reg, off int) mem {
	if m.level == neon {
		return at(t, off)
	}
	return mem{base: table, index: t, scale: 1, off: off}
}

// unpackMXNatural decodes one group of 32 codes at p in natural column order,
// into 32/width registers d.
func (m *asm) unpackMXNatural(d []vec, p mem, t, table reg, mask vec) {
	switch m.level {
	case avx2:
		m.mxNaturalAVX2(d, p, t, table, mask)
	case avx512:
		// One byte per 64-bit lane; its upper code moves to the upper half. The
		// lookup uses the lowest four bits of each 32-bit lane.
		s := m.vec()
		for j := range d {
			m.i("VPMOVZXBQ %s, %s", p.plus(8*j), m.v(d[j]))
			m.i("VPSLLQ $28, %s, %s", m.v(d[j]), m.v(s))
			m.op(opOr, d[j], d[j], s)
			m.i("VPERMPS %s, %s, %s", m.tableMem(t, table, 0), m.v(d[j]), m.v(d[j]))
		}
		m.free(s)
	case neon:
		m.mxNaturalNeon(d, p, t, table, mask)
	}
}

// mxNaturalAVX2: codes of dwords 0 2 4 6 of the group go to the lower, those of
// 1 3 5 7 to the upper 128 bits, so that the interleaving that works within 128
// bits gives registers of 8 columns in order.
func (m *asm) mxNaturalAVX2(d []vec, p mem, t, table reg, mask vec) {
	c, s := m.vec(), m.vec()
	m.i("VPMOVZXBW %s, %s", p, m.v(c)) // 16 bytes, one per word
	m.i("VPSLLW $4, %s, %s", m.v(c), m.v(s))
	m.op(opOr, c, c, s)
	m.op(opAnd, c, c, mask) // 32 codes in order, one per byte
	order := m.konstInts(0, 2, 4, 6, 1, 3, 5, 7)
	m.i("VMOVDQU %s, %s", order, m.v(s))
	m.i("VPERMD %s, %s, %s", m.v(c), m.v(s), m.v(c))
	hi, lo := m.vec(), m.vec()
	m.i("VBROADCASTI128 %s, %s", m.tableMem(t, table, 0), m.v(hi))
	m.i("VBROADCASTI128 %s, %s", m.tableMem(t, table, 16), m.v(lo))
	m.i("VPSHUFB %s, %s, %s", m.v(c), m.v(hi), m.v(hi))
	m.i("VPSHUFB %s, %s, %s", m.v(c), m.v(lo), m.v(lo))
	m.i("VPUNPCKLBW %s, %s, %s", m.v(hi), m.v(lo), m.v(c)) // bfloat16 of columns 0..15
	m.i("VPUNPCKHBW %s, %s, %s", m.v(hi), m.v(lo), m.v(s)) // and 16..31
	m.zero(lo)
	for j, w := range []vec{c, s} {
		m.i("VPUNPCKLWD %s, %s, %s", m.v(w), m.v(lo), m.v(d[2*j]))
		m.i("VPUNPCKHWD %s, %s, %s", m.v(w), m.v(lo), m.v(d[2*j+1]))
	}
	m.free(c, s, hi, lo)
}

func (m *asm) mxNaturalNeon(d []vec, p mem, t, table reg, mask vec) {
	b, odd, hi, lo := m.vec(), m.vec(), m.vec(), m.vec()
	m.load(b, p)
	m.load(hi, m.tableMem(t, table, 0))
	m.load(lo, m.tableMem(t, table, 16))
	m.word(0x6F0C0400|n5(b)|rd(odd), "USHR V%d.16B, V%d.16B, #4", odd, b)
	m.op(opAnd, b, b, mask)
	words := m.vec()
	for half, zip := range []uint32{0x4E003800, 0x4E007800} {
		c := d[4*half] // the 16 codes in order
		m.word(zip|m5(odd)|n5(b)|rd(c), "ZIP%d V%d.16B, V%d.16B, V%d.16B", half+1, c, b, odd)
		h, l := d[4*half+1], d[4*half+2]
		m.word(0x4E000000|m5(c)|n5(hi)|rd(h), "TBL V%d.16B, {V%d.16B}, V%d.16B", h, hi, c)
		m.word(0x4E000000|m5(c)|n5(lo)|rd(l), "TBL V%d.16B, {V%d.16B}, V%d.16B", l, lo, c)
		last := d[4*half+3]
		m.word(0x4E003800|m5(h)|n5(l)|rd(words), "ZIP1 V%d.16B, V%d.16B, V%d.16B", words, l, h)
		m.word(0x4E007800|m5(h)|n5(l)|rd(last), "ZIP2 V%d.16B, V%d.16B, V%d.16B", last, l, h)
		m.word(0x2E613800|n5(words)|rd(d[4*half]), "SHLL V%d.4S, V%d.4H, #16", d[4*half], words)
		m.word(0x6E613800|n5(words)|rd(d[4*half+1]), "SHLL2 V%d.4S, V%d.8H, #16", d[4*half+1], words)
		m.word(0x2E613800|n5(last)|rd(d[4*half+2]), "SHLL V%d.4S, V%d.4H, #16", d[4*half+2], last)
		m.word(0x6E613800|n5(last)|rd(d[4*half+3]), "SHLL2 V%d.4S, V%d.8H, #16", d[4*half+3], last)
	}
	m.free(b, odd, hi, lo, words)
}

// mxMask returns a register of 0x0F bytes where the level needs one.
func (m *asm) mxMask() vec { return m.konst(bitsConst(0x0F0F0F0F)) }

// tileCols is that of kernel/simd_matmul.go: the columns of a tile.
const tileCols = 512

// unpacks writes the kernels that turn one row of weights into float32 in memory.
func unpacks(m *asm) {
	n := m.regsPer16()
	// The next piece of the same row is what is needed after the other rows of the
	// tile; the pieces are too short for the hardware to see them coming.
	prefetch := func(src reg, bytesPerColumn float64) {
		if m.level != neon {
			m.i("PREFETCHT1 %s", at(src, int(tileCols*bytesPerColumn)))
		}
	}
	storeAll := func(d []vec, p reg) {
		for j := range d {
			m.store(at(p, 4*m.width()*j), d[j])
		}
		m.addI(p, 4*m.width()*len(d))
	}
	m.fn("unpackBF16", "dst *float32, src *byte, blocks int", func() {
		dst, src, blocks := m.loadArg("dst"), m.loadArg("src"), m.loadArg("blocks")
		m.loop(blocks, func() {
			d := m.vecN(n)
			m.unpack16("bf16", d, at(src, 0))
			prefetch(src, 2)
			m.addI(src, 32)
			storeAll(d, dst)
			m.free(d...)
		})
	})
	m.fn("unpackInt8", "dst *float32, src *byte, blocks int", func() {
		dst, src, blocks := m.loadArg("dst"), m.loadArg("src"), m.loadArg("blocks")
		m.loop(blocks, func() {
			d := m.vecN(n)
			m.unpack16("int8", d, at(src, 0))
			prefetch(src, 1)
			m.addI(src, 16)
			storeAll(d, dst)
			m.free(d...)
		})
	})
	m.fn("unpackMX", "dst *float32, src *byte, groups int, scale, table *byte", func() {
		dst, src, groups := m.loadArg("dst"), m.loadArg("src"), m.loadArg("groups")
		scale, table, t := m.loadArg("scale"), m.loadArg("table"), m.reg()
		mask := m.mxMask()
		m.loop(groups, func() {
			d := m.vecN(2 * n)
			m.mxTable(t, at(scale, 0), table)
			m.unpackMXNatural(d, at(src, 0), t, table, mask)
			prefetch(src, 0.5)
			m.addI(scale, 1)
			m.addI(src, 16)
			storeAll(d, dst)
			m.free(d...)
		})
	})
}

package main

import "fmt"

// tileRows is the number of weight rows that a many-row kernel holds in registers
// at a time; with up to three rows of x that makes 12 registers of running sums
// on avx2 and avx512, 24 on neon.
func (l level) tileRows() int { return [...]int{2, 4, 2}[l] }

// gemms writes the many-row products over float32 weights:
//
//	y[i*ldy+r] = sum over c of w[r][c]*x[i*ldx+c]
//
// for nx rows i of x (1, 2 or 3) and panels*tileRows rows r of w, over blocks of 16
// columns. A long row is cut into pieces, piece by piece in order, and the lanes
// wait in acc meanwhile: 16 floats per sum, in the order panel, row of w, row of x.
// Bit 0 of mode says that this is the first piece (the lanes start at 0), bit 1
// that it is the last (they are folded into y). ldy and ldx are in bytes.
//
// gemmGroupN does so for a piece that is a group of int8 codes: its sums start at
// 0 and are multiplied by the scale of their row of w, scale[r], when they are added
// to acc.
func gemms(m *asm) {
	const sig = "y *float32, ldy int, acc, w *float32, stride, panels int, x *float32, ldx, blocks, mode int"
	for nx := 1; nx <= 3; nx++ {
		m.fn(fmt.Sprintf("gemm%d", nx), sig, func() { gemm(m, nx, false) })
		m.fn(fmt.Sprintf("gemmGroup%d", nx), sig+", scale *float32", func() { gemm(m, nx, true) })
	}
}

func gemm(m *asm, nx int, group bool) {
	nw, w16 := m.tileRows(), m.regsPer16()
	wb, stride, accp, panels := m.loadArg("w"), m.loadArg("stride"), m.loadArg("acc"), m.loadArg("panels")
	ldx, xb, count := m.loadArg("ldx"), m.reg(), m.reg()
	sums := make([][][]vec, nx) // [row of x][row of w][16 lanes]
	for i := range sums {
		sums[i] = make([][]vec, nw)
		for r := range sums[i] {
			sums[i][r] = m.vecN(w16)
		}
	}
	eachSum := func(f func(v vec, p mem)) {
		for r := range nw {
			for i := range nx {
				for j, v := range sums[i][r] {
					f(v, at(accp, 64*(r*nx+i)+4*m.width()*j))
				}
			}
		}
	}
	clear := func() { eachSum(func(v vec, _ mem) { m.zero(v) }) }
	m.loop(panels, func() {
		if group {
			clear()
		} else {
			m.ifBit("mode", 0, clear, func() { eachSum(func(v vec, p mem) { m.load(v, p) }) })
		}
		m.argTo(xb, "x")
		m.argTo(count, "blocks")
		w := m.newRows(nw, stride)
		m.start(w, wb)
		x := m.newRows(nx, ldx)
		m.start(x, xb)
		m.loop(count, func() {
			for j := range w16 {
				ws, t := m.vecN(nw), m.vec()
				for r := range ws {
					m.load(ws[r], m.row(w, r, 4*m.width()*j))
				}
				for i := range nx {
					m.load(t, m.row(x, i, 4*m.width()*j))
					for r := range ws {
						m.fma(sums[i][r][j], ws[r], t)
					}
				}
				m.free(ws...)
				m.free(t)
			}
			m.advance(w, 64)
			m.advance(x, 64)
		})
		m.freeRows(w)
		m.freeRows(x)
		if group {
			m.scaleGroup(sums, accp)
		}
		m.ifBit("mode", 1, func() {
			ldy, yp := m.loadArg("ldy"), m.loadArg("y")
			for i := range nx {
				s := m.foldRows(sums[i])
				m.storeLow(at(yp, 0), s, nw)
				m.addR(yp, ldy)
			}
			m.freeReg(ldy)
			m.argTo(yp, "y")
			m.addI(yp, 4*nw)
			m.toArg("y", yp)
			m.freeReg(yp)
		}, func() { eachSum(func(v vec, p mem) { m.store(p, v) }) })
		m.addI(accp, 64*nw*nx)
		for range nw {
			m.addR(wb, stride)
		}
	})
}

// scaleGroup makes sums[i][r] = sums[i][r]*scale[r] + the lanes at accp.
func (m *asm) scaleGroup(sums [][][]vec, accp reg) {
	sp := m.loadArg("scale")
	k, t := m.vec(), m.vec()
	for r := range sums[0] {
		m.bcast(k, at(sp, 4*r))
		for i := range sums {
			for j, v := range sums[i][r] {
				m.load(t, at(accp, 64*(r*len(sums)+i)+4*m.width()*j))
				m.mulAdd(v, k, t)
			}
		}
	}
	m.addI(sp, 4*len(sums[0]))
	m.toArg("scale", sp)
	m.free(k, t)
	m.freeReg(sp)
}

// tmuls writes the transposed product over float32 weights, whose rows lie stride
// bytes apart:
//
//	y[i*ldy+j] += sum over r of x[i*ldx+r]*w[r][j]
//
// for nx rows i of x and cols columns j, a multiple of 16; rows in rising order.
// ldy and ldx are in bytes.
func tmuls(m *asm) {
	for nx := 1; nx <= 3; nx++ {
		m.fn(fmt.Sprintf("tmul%d", nx), "y *float32, ldy int, w *float32, stride, rows int, x *float32, ldx, cols int", func() {
			tmul(m, nx)
		})
	}
}

func tmul(m *asm, nx int) {
	wp, wb, stride, cols := m.reg(), m.loadArg("w"), m.loadArg("stride"), m.loadArg("cols")
	ldx, ldy, yb := m.loadArg("ldx"), m.loadArg("ldy"), m.loadArg("y")
	xb, count := m.reg(), m.reg()
	wide := map[level]int{avx2: 4, avx512: 4, neon: 8}[m.level] * m.width()
	block := func(n int) { // n columns
		nv := n / m.width()
		y := m.newRows(nx, ldy)
		m.start(y, yb)
		sums := make([][]vec, nx)
		for i := range sums {
			sums[i] = m.vecN(nv)
			for j, v := range sums[i] {
				m.load(v, m.row(y, i, 4*m.width()*j))
			}
		}
		m.freeRows(y)
		m.argTo(xb, "x")
		m.argTo(count, "rows")
		m.movR(wp, wb)
		x := m.newRows(nx, ldx)
		m.start(x, xb)
		m.loop(count, func() {
			xs, t := m.vecN(nx), m.vec()
			for i := range xs {
				m.bcast(xs[i], m.row(x, i, 0))
			}
			for j := range nv {
				m.load(t, at(wp, 4*m.width()*j))
				for i := range xs {
					m.fma(sums[i][j], t, xs[i])
				}
			}
			m.addR(wp, stride)
			m.advance(x, 4)
			m.free(xs...)
			m.free(t)
		})
		m.freeRows(x)
		y = m.newRows(nx, ldy)
		m.start(y, yb)
		for i := range sums {
			for j, v := range sums[i] {
				m.store(m.row(y, i, 4*m.width()*j), v)
			}
			m.free(sums[i]...)
		}
		m.freeRows(y)
		m.addI(wb, 4*n)
		m.addI(yb, 4*n)
	}
	m.chunks(cols, wide, func() { block(wide) })
	m.chunks(cols, 16, func() { block(16) })
}

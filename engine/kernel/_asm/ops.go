package main

import (
	"fmt"
	"math"
)

// Fields of an arm64 instruction word.
func rd(v vec) uint32 { return uint32(v) }
func n5(v vec) uint32 { return uint32(v) << 5 }
func m5(v vec) uint32 { return uint32(v) << 16 }

// three is an operation d = a op b: the mnemonics of amd64 (avx2, avx512) and the
// word of arm64. amd64 writes the operands in the order b, a, d.
type three struct {
	avx2, avx512 string
	neon         uint32
	name         string
}

// The operations on whole registers of 16, 8 or 4 lanes.
var (
	opAdd  = three{"VADDPS", "VADDPS", 0x4E20D400, "FADD"}
	opSub  = three{"VSUBPS", "VSUBPS", 0x4EA0D400, "FSUB"}
	opMul  = three{"VMULPS", "VMULPS", 0x6E20DC00, "FMUL"}
	opDiv  = three{"VDIVPS", "VDIVPS", 0x6E20FC00, "FDIV"}
	opMin  = three{"VMINPS", "VMINPS", 0x4EA0F400, "FMIN"} // b if either is NaN on amd64
	opMax  = three{"VMAXPS", "VMAXPS", 0x4E20F400, "FMAX"}
	opAnd  = three{"VPAND", "VPANDD", 0x4E201C00, "AND"}
	opOr   = three{"VPOR", "VPORD", 0x4EA01C00, "ORR"}
	opXor  = three{"VPXOR", "VPXORD", 0x6E201C00, "EOR"}
	opAddI = three{"VPADDD", "VPADDD", 0x4EA08400, "ADD"}
	opSubI = three{"VPSUBD", "VPSUBD", 0x6EA08400, "SUB"}
)

// op writes d = a op b.
func (m *asm) op(o three, d, a, b vec) {
	switch m.level {
	case avx2:
		m.i("%s %s, %s, %s", o.avx2, m.v(b), m.v(a), m.v(d))
	case avx512:
		m.i("%s %s, %s, %s", o.avx512, m.v(b), m.v(a), m.v(d))
	case neon:
		m.word(o.neon|m5(b)|n5(a)|rd(d), "%s V%d, V%d, V%d", o.name, d, a, b)
	}
}

// opK writes d = a op constant.
func (m *asm) opK(o three, d, a vec, c float32) {
	k := m.konst(c)
	m.op(o, d, a, k)
	m.free(k)
}

// opKRev writes d = constant op a.
func (m *asm) opKRev(o three, d vec, c float32, a vec) {
	k := m.konst(c)
	m.op(o, d, k, a)
	m.free(k)
}

// fma writes acc += a*b, rounded once.
func (m *asm) fma(acc, a, b vec) {
	if m.level == neon {
		m.word(0x4E20CC00|m5(b)|n5(a)|rd(acc), "FMLA V%d.4S, V%d.4S, V%d.4S", acc, a, b)
		return
	}
	m.i("VFMADD231PS %s, %s, %s", m.v(b), m.v(a), m.v(acc))
}

// fmaMem writes acc += a*memory.
func (m *asm) fmaMem(acc, a vec, p mem) {
	if m.level == neon {
		t := m.vec()
		m.load(t, p)
		m.fma(acc, a, t)
		m.free(t)
		return
	}
	m.i("VFMADD231PS %s, %s, %s", p, m.v(a), m.v(acc))
}

func (m *asm) fmaK(acc, a vec, c float32) {
	k := m.konst(c)
	m.fma(acc, a, k)
	m.free(k)
}

// mulAdd writes p = p*q + r.
func (m *asm) mulAdd(p, q, r vec) {
	if m.level == neon {
		t := m.vec()
		m.mov(t, r)
		m.fma(t, p, q)
		m.mov(p, t)
		m.free(t)
		return
	}
	m.i("VFMADD213PS %s, %s, %s", m.v(r), m.v(q), m.v(p))
}

// horner writes p = p*x + c for each coefficient c in turn.
func (m *asm) horner(p, x vec, coef ...float32) {
	for _, c := range coef {
		k := m.konst(c)
		m.mulAdd(p, x, k)
		m.free(k)
	}
}

func (m *asm) mov(d, a vec) {
	switch m.level {
	case neon:
		m.word(0x4EA01C00|m5(a)|n5(a)|rd(d), "MOV V%d.16B, V%d.16B", d, a)
	default:
		m.i("VMOVAPS %s, %s", m.v(a), m.v(d))
	}
}

// movK writes d = constant.
func (m *asm) movK(d vec, c float32) {
	k := m.konst(c)
	m.mov(d, k)
	m.free(k)
}

// zero writes d = 0 in every lane. The 128-bit form clears the whole register.
func (m *asm) zero(d vec) {
	switch m.level {
	case avx2:
		m.i("VXORPS %s, %s, %s", x(d), x(d), x(d))
	case avx512:
		m.i("VPXORD %s, %s, %s", m.v(d), m.v(d), m.v(d))
	case neon:
		m.word(0x6E201C00|m5(d)|n5(d)|rd(d), "EOR V%d.16B, V%d.16B, V%d.16B", d, d, d)
	}
}

// shl and sar shift every 32-bit lane by n; sar keeps the sign.
func (m *asm) shl(d, a vec, n int) {
	if m.level == neon {
		m.word(0x4F005400|uint32(32+n)<<16|n5(a)|rd(d), "SHL V%d.4S, V%d.4S, #%d", d, a, n)
		return
	}
	m.i("VPSLLD $%d, %s, %s", n, m.v(a), m.v(d))
}

func (m *asm) sar(d, a vec, n int) {
	if m.level == neon {
		m.word(0x4F000400|uint32(64-n)<<16|n5(a)|rd(d), "SSHR V%d.4S, V%d.4S, #%d", d, a, n)
		return
	}
	m.i("VPSRAD $%d, %s, %s", n, m.v(a), m.v(d))
}

// selectLess writes d = a < b ? yes : no; an unordered pair is not less. d may be
// yes or no.
func (m *asm) selectLess(d, a, b, yes, no vec) {
	switch m.level {
	case avx2:
		t := m.vec()
		m.i("VCMPPS $1, %s, %s, %s", m.v(b), m.v(a), m.v(t))
		m.i("VBLENDVPS %s, %s, %s, %s", m.v(t), m.v(yes), m.v(no), m.v(d))
		m.free(t)
	case avx512:
		m.i("VCMPPS $1, %s, %s, K1", m.v(b), m.v(a))
		m.i("VBLENDMPS %s, %s, K1, %s", m.v(yes), m.v(no), m.v(d))
	case neon:
		t := m.vec()
		m.word(0x6EA0E400|m5(a)|n5(b)|rd(t), "FCMGT V%d.4S, V%d.4S, V%d.4S", t, b, a)
		m.word(0x6E601C00|m5(no)|n5(yes)|rd(t), "BSL V%d.16B, V%d.16B, V%d.16B", t, yes, no)
		m.mov(d, t)
		m.free(t)
	}
}

// load, store move one register; neither needs alignment.
func (m *asm) load(d vec, p mem) {
	if m.level == neon {
		m.i("FMOVQ %s, F%d", p, d)
		return
	}
	m.i("VMOVUPS %s, %s", p, m.v(d))
}

func (m *asm) store(p mem, a vec) {
	if m.level == neon {
		m.i("FMOVQ F%d, %s", a, p)
		return
	}
	m.i("VMOVUPS %s, %s", m.v(a), p)
}

// bcast fills d with the float32 at p, bcastArg with a parameter.
func (m *asm) bcast(d vec, p mem)          { m.bcastFrom(d, p.String()) }
func (m *asm) bcastArg(d vec, name string) { m.bcastFrom(d, m.fp(name)) }
func (m *asm) bcastFrom(d vec, from string) {
	if m.level == neon {
		m.i("FMOVS %s, F%d", from, d)
		m.word(0x4E040400|n5(d)|rd(d), "DUP V%d.4S, V%d.S[0]", d, d)
		return
	}
	m.i("VBROADCASTSS %s, %s", from, m.v(d))
}

// storeLow stores the lowest n float32 of a, n being 1, 2 or 4.
func (m *asm) storeLow(p mem, a vec, n int) {
	if m.level == neon {
		m.i("%s F%d, %s", map[int]string{1: "FMOVS", 2: "FMOVD", 4: "FMOVQ"}[n], a, p)
		return
	}
	m.i("%s %s, %s", map[int]string{1: "VMOVSS", 2: "VMOVLPS", 4: "VMOVUPS"}[n], x(a), p)
}

// storeHigh stores lanes 2 and 3 of a, avx2 only.
func (m *asm) storeHigh(p mem, a vec) { m.i("VMOVHPS %s, %s", x(a), p) }

// storeLane stores lane i (1 to 3) of a at p.
func (m *asm) storeLane(p reg, a vec, i int) {
	if m.level == neon {
		m.i("VST1 V%d.S[%d], (%s)", a, i, p)
		return
	}
	m.i("VEXTRACTPS $%d, %s, (%s)", i, x(a), p)
}

// General registers.

func (m *asm) loadArg(name string) reg {
	r := m.reg()
	m.argTo(r, name)
	return r
}

func (m *asm) argTo(r reg, name string) {
	if m.level == neon {
		m.i("MOVD %s, %s", m.fp(name), r)
		return
	}
	m.i("MOVQ %s, %s", m.fp(name), r)
}

// toArg stores a register in a parameter's place.
func (m *asm) toArg(name string, r reg) {
	if m.level == neon {
		m.i("MOVD %s, %s", r, m.fp(name))
		return
	}
	m.i("MOVQ %s, %s", r, m.fp(name))
}

func (m *asm) movR(d, a reg) {
	if m.level == neon {
		m.i("MOVD %s, %s", a, d)
		return
	}
	m.i("MOVQ %s, %s", a, d)
}

func (m *asm) addI(r reg, n int) {
	if n == 0 {
		return
	}
	if m.level == neon {
		m.i("ADD $%d, %s, %s", n, r, r)
		return
	}
	m.i("ADDQ $%d, %s", n, r)
}

func (m *asm) addR(r, a reg) {
	if m.level == neon {
		m.i("ADD %s, %s, %s", a, r, r)
		return
	}
	m.i("ADDQ %s, %s", a, r)
}

func (m *asm) subR(r, a reg) {
	if m.level == neon {
		m.i("SUB %s, %s, %s", a, r, r)
		return
	}
	m.i("SUBQ %s, %s", a, r)
}

func (m *asm) shrR(r reg, n int) {
	if m.level == neon {
		m.i("LSR $%d, %s, %s", n, r, r)
		return
	}
	m.i("SHRQ $%d, %s", n, r)
}

func (m *asm) andR(r reg, n int) {
	if m.level == neon {
		m.i("AND $%d, %s, %s", n, r, r)
		return
	}
	m.i("ANDQ $%d, %s", n, r)
}

func (m *asm) mulR(r, a reg) {
	if m.level == neon {
		m.i("MUL %s, %s, %s", a, r, r)
		return
	}
	m.i("IMULQ %s, %s", a, r)
}

func (m *asm) shlR(r reg, n int) {
	if m.level == neon {
		m.i("LSL $%d, %s, %s", n, r, r)
		return
	}
	m.i("SHLQ $%d, %s", n, r)
}

// loop runs body count times; count is used up and may be 0.
func (m *asm) loop(count reg, body func()) {
	top, end := m.newLabel("loop"), m.newLabel("end")
	if m.level == neon {
		m.i("CBZ %s, %s", count, end)
	} else {
		m.i("TESTQ %s, %s", count, count)
		m.i("JZ %s", end)
	}
	m.place(top)
	body()
	if m.level == neon {
		m.i("SUB $1, %s, %s", count, count)
		m.i("CBNZ %s, %s", count, top)
	} else {
		m.i("DECQ %s", count)
		m.i("JNZ %s", top)
	}
	m.place(end)
}

// chunks runs body while r >= n, taking n from r each time.
func (m *asm) chunks(r reg, n int, body func()) {
	top, end := m.newLabel("chunk"), m.newLabel("end")
	m.place(top)
	if m.level == neon {
		m.i("CMP $%d, %s", n, r)
		m.i("BLT %s", end)
	} else {
		m.i("CMPQ %s, $%d", r, n)
		m.i("JLT %s", end)
	}
	body()
	m.addI(r, -n)
	if m.level == neon {
		m.i("B %s", top)
	} else {
		m.i("JMP %s", top)
	}
	m.place(end)
}

// ifEven runs yes if a register is even, else no; amd64 only.
func (m *asm) ifEven(r reg, yes, no func()) {
	other, end := m.newLabel("odd"), m.newLabel("end")
	m.i("TESTQ $1, %s", r)
	m.i("JNZ %s", other)
	yes()
	m.jump(end)
	m.place(other)
	no()
	m.place(end)
}

// ifEqual runs yes if a register holds n, else no; amd64 only.
func (m *asm) ifEqual(r reg, n int, yes, no func()) {
	other, end := m.newLabel("other"), m.newLabel("end")
	m.i("CMPQ %s, $%d", r, n)
	m.i("JNE %s", other)
	yes()
	m.jump(end)
	m.place(other)
	no()
	m.place(end)
}

// ifBit runs yes if the bit of the integer parameter is set, else no.
func (m *asm) ifBit(name string, bit int, yes, no func()) {
	other, end := m.newLabel("else"), m.newLabel("end")
	t := m.loadArg(name)
	if m.level == neon {
		m.i("TBZ $%d, %s, %s", bit, t, other)
	} else {
		m.i("BTQ $%d, %s", bit, t)
		m.i("JCC %s", other)
	}
	m.freeReg(t)
	yes()
	if m.level == neon {
		m.i("B %s", end)
	} else {
		m.i("JMP %s", end)
	}
	m.place(other)
	no()
	m.place(end)
}

func (m *asm) newLabel(kind string) string {
	m.label++
	return fmt.Sprintf("%s%d", kind, m.label)
}

func (m *asm) place(label string) { fmt.Fprintf(&m.body, "%s:\n", label) }

// rows addresses up to four rows that lie stride bytes apart.
type rows struct {
	n       int
	ptr     []reg // amd64: the first row; arm64: each row
	stride  reg
	stride3 reg  // amd64 with four rows
	shared  bool // ptr[0] belongs to someone else
}

// newRows takes registers for n rows; start places them.
func (m *asm) newRows(n int, stride reg) rows {
	r := m.rowsFrom(m.reg(), n, stride)
	r.shared = false
	return r
}

// rowsFrom lets the register of the first row itself walk along its row.
func (m *asm) rowsFrom(base reg, n int, stride reg) rows {
	r := rows{n: n, stride: stride, ptr: []reg{base}, shared: true}
	if m.level == neon {
		for i := 1; i < n; i++ {
			r.ptr = append(r.ptr, m.reg())
			m.i("ADD %s, %s, %s", stride, r.ptr[i-1], r.ptr[i])
		}
		return r
	}
	if n == 4 {
		r.stride3 = m.reg()
		m.i("LEAQ (%s)(%s*2), %s", stride, stride, r.stride3)
	}
	return r
}

func (m *asm) freeRows(r rows) {
	if r.shared {
		m.freeReg(r.ptr[1:]...)
	} else {
		m.freeReg(r.ptr...)
	}
	if r.stride3 != "" {
		m.freeReg(r.stride3)
	}
}

func (m *asm) start(r rows, base reg) {
	m.movR(r.ptr[0], base)
	if m.level == neon {
		for i := 1; i < r.n; i++ {
			m.i("ADD %s, %s, %s", r.stride, r.ptr[i-1], r.ptr[i])
		}
	}
}

// row is the memory of row i.
func (m *asm) row(r rows, i, off int) mem {
	if m.level == neon {
		return at(r.ptr[i], off)
	}
	a := at(r.ptr[0], off)
	switch i {
	case 1, 2:
		a.index, a.scale = r.stride, i
	case 3:
		a.index, a.scale = r.stride3, 1
	}
	return a
}

func (m *asm) advance(r rows, n int) {
	for _, p := range r.ptr {
		m.addI(p, n)
	}
}

// addRows and subRows move all rows by a register.
func (m *asm) addRows(r rows, a reg) {
	for _, p := range r.ptr {
		m.addR(p, a)
	}
}

func (m *asm) subRows(r rows, a reg) {
	for _, p := range r.ptr {
		m.subR(p, a)
	}
}

func bitsConst(bits uint32) float32 { return math.Float32frombits(bits) }

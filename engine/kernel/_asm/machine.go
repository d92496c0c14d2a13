package main

import (
	"bytes"
	"fmt"
	"math"
	"strings"
)

// A level is one instruction set.
type level int

const (
	avx2 level = iota
	avx512
	neon
)

func (l level) String() string { return [...]string{"avx2", "avx512", "neon"}[l] }

// width is the number of float32 in one vector register.
func (l level) width() int { return [...]int{8, 16, 4}[l] }

// regsPer16 is the number of registers that hold 16 lanes.
func (l level) regsPer16() int { return 16 / l.width() }

// vec is a vector register, reg a general one, by number and name.
type (
	vec int
	reg string
)

// mem is a memory operand base + index*scale + off.
type mem struct {
	base  reg
	index reg
	scale int
	off   int
}

func at(base reg, off int) mem { return mem{base: base, off: off} }

func (a mem) plus(off int) mem { a.off += off; return a }

func (a mem) String() string {
	s := fmt.Sprintf("(%s)", a.base)
	if a.off != 0 {
		s = fmt.Sprint(a.off) + s
	}
	if a.index != "" {
		s += fmt.Sprintf("(%s*%d)", a.index, a.scale)
	}
	return s
}

// An asm writes the file of one level, function by function.
type asm struct {
	level
	file bytes.Buffer // finished functions
	body bytes.Buffer // the function at hand
	data []float32    // constants of the file, in order of first use
	at   map[uint32]int
	ints [][]uint32 // integer vectors of the file

	label  int
	vecs   []vec // free vector registers
	regs   []reg // free general registers
	args   map[string]int
	kept   map[uint32]vec // constants that live in a register
	keptAt int            // where in body they are loaded
	used   map[vec]bool   // taken for other things since then
}

func newAsm(l level) *asm { return &asm{level: l, at: map[uint32]int{}} }

// An arg is a parameter of a kernel; every one takes 8 bytes but float32.
type arg struct{ name, typ string }

func parseArgs(sig string) []arg {
	var out []arg
	for _, group := range strings.Split(sig, ",") {
		f := strings.Fields(group)
		a := arg{name: f[0]}
		if len(f) > 1 {
			a.typ = f[1]
		}
		out = append(out, a)
	}
	for i := len(out) - 1; i >= 0; i-- { // "y, x *float32": a name without a type has the next one's
		if out[i].typ == "" {
			out[i].typ = out[i+1].typ
		}
	}
	return out
}

// fn writes the function level+name with the given parameters.
func (m *asm) fn(name, sig string, body func()) {
	m.body.Reset()
	m.vecs, m.regs = nil, nil
	n := 32
	if m.level == avx2 {
		n = 16
	}
	for v := range n {
		m.vecs = append(m.vecs, vec(v))
	}
	names := "AX BX CX DX SI DI R8 R9 R10 R11 R12 R13 R15"
	if m.level == neon {
		names = "R0 R1 R2 R3 R4 R5 R6 R7 R8 R9 R10 R11 R12 R13 R14 R15 R19 R20 R21 R22 R23 R24 R25"
	}
	for _, r := range strings.Fields(names) {
		m.regs = append(m.regs, reg(r))
	}
	m.args, m.kept, m.keptAt, m.used = map[string]int{}, map[uint32]vec{}, -1, map[vec]bool{}
	off := 0
	for _, a := range parseArgs(sig) {
		size := 8
		if a.typ == "float32" {
			size = 4
		}
		off = (off + size - 1) &^ (size - 1)
		m.args[a.name] = off
		off += size
	}
	body()
	if m.level != neon {
		m.i("VZEROUPPER")
	}
	m.i("RET")
	fmt.Fprintf(&m.file, "\n// func %s%s(%s)\nTEXT ·%s%s(SB), NOSPLIT, $0-%d\n", m.level, title(name), sig, m.level, title(name), off)
	text := m.body.Bytes()
	if m.keptAt >= 0 {
		m.file.Write(text[:m.keptAt])
		m.body = bytes.Buffer{}
		for _, c := range m.data {
			if v, ok := m.kept[math.Float32bits(c)]; ok {
				m.loadConst(v, c)
			}
		}
		m.file.Write(m.body.Bytes())
		text = text[m.keptAt:]
	}
	m.file.Write(text)
}

func title(s string) string { return strings.ToUpper(s[:1]) + s[1:] }

// i writes one instruction.
func (m *asm) i(format string, a ...any) {
	m.body.WriteByte('\t')
	fmt.Fprintf(&m.body, format, a...)
	m.body.WriteByte('\n')
}

// word writes an arm64 instruction as a number with its spelling.
func (m *asm) word(op uint32, spelling string, a ...any) {
	m.i("WORD $0x%08x // %s", op, fmt.Sprintf(spelling, a...))
}

// vec takes a free vector register, reg a free general one.
func (m *asm) vec() vec {
	if len(m.vecs) == 0 {
		panic("out of vector registers")
	}
	v := m.vecs[0]
	m.vecs = m.vecs[1:]
	if m.keptAt >= 0 {
		m.used[v] = true
	}
	return v
}

func (m *asm) vecN(n int) []vec {
	out := make([]vec, n)
	for i := range out {
		out[i] = m.vec()
	}
	return out
}

// free gives registers back; those that hold constants stay.
func (m *asm) free(vs ...vec) {
	for _, v := range vs {
		kept := false
		for _, k := range m.kept {
			kept = kept || k == v
		}
		if !kept {
			m.vecs = append([]vec{v}, m.vecs...)
		}
	}
}

func (m *asm) reg() reg {
	if len(m.regs) == 0 {
		panic("out of general registers")
	}
	r := m.regs[0]
	m.regs = m.regs[1:]
	return r
}

func (m *asm) freeReg(r ...reg) { m.regs = append(r, m.regs...) }

// fp is the frame address of a parameter.
func (m *asm) fp(name string) string {
	off, ok := m.args[name]
	if !ok {
		panic("no parameter " + name)
	}
	return fmt.Sprintf("%s+%d(FP)", name, off)
}

// v is the name of a vector register, x that of its lowest 128 bits.
func (m *asm) v(v vec) string {
	return fmt.Sprintf("%s%d", [...]string{"Y", "Z", "V"}[m.level], v)
}
func x(v vec) string { return fmt.Sprintf("X%d", v) }
func y(v vec) string { return fmt.Sprintf("Y%d", v) }

// keepConsts marks the place, before a loop, where constants are loaded that fit
// in registers during the loop.
func (m *asm) keepConsts() { m.keptAt = m.body.Len() }

// maxKept leaves registers for the work itself.
const maxKept = 16

// konst returns a register that holds c in every lane. It is given back with
// free.
func (m *asm) konst(c float32) vec {
	bits := math.Float32bits(c)
	if v, ok := m.kept[bits]; ok {
		return v
	}
	m.constOff(c)
	if m.level != avx2 && m.keptAt >= 0 && len(m.kept) < maxKept {
		v := m.vecs[len(m.vecs)-1]
		m.vecs = m.vecs[:len(m.vecs)-1]
		if m.used[v] {
			panic("a constant would be overwritten")
		}
		m.kept[bits] = v
		return v
	}
	v := m.vec()
	m.loadConst(v, c)
	return v
}

// constOff is the place of c in the constants of the file.
func (m *asm) constOff(c float32) int {
	bits := math.Float32bits(c)
	off, ok := m.at[bits]
	if !ok {
		off = 4 * len(m.data)
		m.at[bits] = off
		m.data = append(m.data, c)
	}
	return off
}

func (m *asm) loadConst(v vec, c float32) {
	sym := fmt.Sprintf("%sConst<>+%d(SB)", m.level, m.constOff(c))
	if m.level == neon {
		m.i("FMOVS %s, F%d", sym, v)
		m.word(0x4E040400|n5(v)|rd(v), "DUP V%d.4S, V%d.S[0]", v, v)
		return
	}
	m.i("VBROADCASTSS %s, %s", sym, m.v(v))
}

// write returns the finished file.
func (m *asm) write() []byte {
	var out bytes.Buffer
	arch := "amd64"
	if m.level == neon {
		arch = "arm64"
	}
	fmt.Fprintf(&out, "// Code generated by engine/kernel/_asm. DO NOT EDIT.\n\n//go:build !noasm && %s\n\n#include \"textflag.h\"\n\n", arch)
	for i, c := range m.data {
		fmt.Fprintf(&out, "DATA %sConst<>+%d(SB)/4, $0x%08x // %v\n", m.level, 4*i, math.Float32bits(c), c)
	}
	fmt.Fprintf(&out, "GLOBL %sConst<>(SB), RODATA|NOPTR, $%d\n", m.level, 4*len(m.data))
	for i, v := range m.ints {
		for j, n := range v {
			fmt.Fprintf(&out, "DATA %sInts%d<>+%d(SB)/4, $%d\n", m.level, i, 4*j, n)
		}
		fmt.Fprintf(&out, "GLOBL %sInts%d<>(SB), RODATA|NOPTR, $%d\n", m.level, i, 4*len(v))
	}
	out.Write(m.file.Bytes())
	return out.Bytes()
}

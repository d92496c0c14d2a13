package main

import "math"

// The functions of kernel/math.go, operation by operation. The constants must
// stay those of that file.
const (
	log2e     = 1.44269504088896341
	ln2Hi     = 0.693359375
	ln2Lo     = -2.12194440e-4
	roundUp   = 12582912
	expMin    = -110
	expMax    = 100
	tanhSmall = 0.625
)

var (
	signBit = float32(math.Copysign(0, -1))
	absMask = bitsConst(0x7FFFFFFF)
	bias127 = bitsConst(127)
)

// exp writes x = e^x (exp32).
func (m *asm) exp(x vec) {
	m.opKRev(opMin, x, expMax, x) // the constant first: a NaN in x comes through
	m.opKRev(opMax, x, expMin, x)
	t, n, p := m.vec(), m.vec(), m.vec()
	m.movK(t, roundUp)
	m.fmaK(t, x, log2e)
	m.opK(opSub, n, t, roundUp)
	m.fmaK(x, n, -ln2Hi)
	m.fmaK(x, n, -ln2Lo)
	m.movK(p, 1.9875691500e-4)
	m.horner(p, x, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
	m.op(opMul, n, x, x)
	m.mulAdd(p, n, x)
	m.opK(opAdd, p, p, 1)
	m.opK(opSubI, t, t, roundUp)
	m.sar(n, t, 1)
	m.op(opSubI, t, t, n)
	m.opK(opAddI, n, n, bias127)
	m.shl(n, n, 23)
	m.op(opMul, p, p, n)
	m.opK(opAddI, t, t, bias127)
	m.shl(t, t, 23)
	m.op(opMul, x, p, t)
	m.free(t, n, p)
}

// sigmoid writes x = 1 / (1 + e^-x) (sigmoid32).
func (m *asm) sigmoid(x vec) {
	m.opK(opXor, x, x, signBit)
	m.exp(x)
	m.opK(opAdd, x, x, 1)
	m.opKRev(opDiv, x, 1, x)
}

// tanh writes x = tanh(x) (tanh32). Both branches are computed.
func (m *asm) tanh(x vec) {
	z, y, s := m.vec(), m.vec(), m.vec()
	m.opK(opAnd, z, x, absMask)
	m.op(opAdd, y, z, z)
	m.exp(y)
	m.opK(opAdd, y, y, 1)
	m.opKRev(opDiv, y, 2, y)
	m.opKRev(opSub, y, 1, y)
	m.opK(opAnd, s, x, signBit)
	m.op(opOr, y, y, s)
	p := m.vec()
	m.op(opMul, s, x, x)
	m.movK(p, -5.70498872745e-3)
	m.horner(p, s, 2.06390887954e-2, -5.37397155531e-2, 1.33314422036e-1, -3.33332819422e-1)
	m.op(opMul, p, p, s)
	m.mulAdd(p, x, x)
	k := m.konst(tanhSmall)
	m.selectLess(x, z, k, p, y)
	m.free(k, p, s, y, z)
}

// softplus writes x = log(1 + e^x) (softplus32). Adding max(x, 0) is the same as
// the branch there, because the logarithm is never -0.
func (m *asm) softplus(x vec) {
	t, s, p := m.vec(), m.vec(), m.vec()
	m.opK(opAnd, t, x, absMask)
	m.opK(opXor, t, t, signBit)
	m.exp(t)
	m.opK(opAdd, s, t, 2)
	m.op(opDiv, s, t, s)
	m.op(opMul, t, s, s)
	m.movK(p, 1.0/17)
	m.horner(p, t, 1.0/15, 1.0/13, 1.0/11, 1.0/9, 1.0/7, 1.0/5, 1.0/3)
	m.op(opMul, p, p, t)
	m.mulAdd(p, s, s)
	m.opK(opMul, p, p, 2)
	m.zero(t)
	m.selectLess(x, t, x, x, t)
	m.op(opAdd, x, x, p)
	m.free(t, s, p)
}

// activations writes the elementwise functions of the model.
func activations(m *asm) {
	m.fn("sigmoid", "y, x *float32, n int", func() {
		m.each([]string{"y", "x"}, func(p []reg) {
			a := m.vec()
			m.load(a, at(p[1], 0))
			m.sigmoid(a)
			m.store(at(p[0], 0), a)
			m.free(a)
		})
	})
	m.fn("sigmoidMul", "y, gate *float32, n int", func() {
		m.each([]string{"y", "gate"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(a, at(p[1], 0))
			m.sigmoid(a)
			m.load(b, at(p[0], 0))
			m.op(opMul, a, b, a)
			m.store(at(p[0], 0), a)
			m.free(a, b)
		})
	})
	m.fn("situ", "y, gate, u *float32, n int, beta, lin float32", func() {
		beta, lin := m.vec(), m.vec()
		m.bcastArg(beta, "beta")
		m.bcastArg(lin, "lin")
		m.each([]string{"y", "gate", "u"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(b, at(p[1], 0))
			m.op(opDiv, a, b, beta)
			m.tanh(a)
			m.op(opMul, a, beta, a)
			m.sigmoid(b)
			m.op(opMul, a, a, b)
			m.load(b, at(p[2], 0))
			m.op(opDiv, b, b, lin)
			m.tanh(b)
			m.op(opMul, b, lin, b)
			m.op(opMul, a, a, b)
			m.store(at(p[0], 0), a)
			m.free(a, b)
		})
	})
	m.fn("decayLower", "y, f, dt *float32, n int, a, bound float32", func() {
		k, bound := m.vec(), m.vec()
		m.bcastArg(k, "a")
		m.bcastArg(bound, "bound")
		m.each([]string{"y", "f", "dt"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(a, at(p[1], 0))
			m.load(b, at(p[2], 0))
			m.op(opAdd, a, a, b)
			m.free(b)
			m.op(opMul, a, k, a)
			m.sigmoid(a)
			m.op(opMul, a, bound, a)
			m.exp(a)
			m.store(at(p[0], 0), a)
			m.free(a)
		})
	})
	m.fn("decaySoftplus", "y, f, dt *float32, n int, a float32", func() {
		k := m.vec()
		m.bcastArg(k, "a")
		m.opK(opXor, k, k, signBit)
		m.each([]string{"y", "f", "dt"}, func(p []reg) {
			a, b := m.vec(), m.vec()
			m.load(a, at(p[1], 0))
			m.load(b, at(p[2], 0))
			m.op(opAdd, a, a, b)
			m.free(b)
			m.softplus(a)
			m.op(opMul, a, k, a)
			m.exp(a)
			m.store(at(p[0], 0), a)
			m.free(a)
		})
	})
}

package checkpoint

import (
	"math/bits"
	"strings"
)

// A DType is the element type of a tensor, one bit each, so that a set of them
// is their union: Expect(name, BF16|F32, n) takes either.
type DType uint32

// The element types of the safetensors format. Only BF16, F32 and U8 occur in
// the text model; the others have names so that a message can say them.
const (
	BF16 DType = 1 << iota
	F32
	U8
	F16
	F64
	I8
	I16
	U16
	I32
	U32
	I64
	U64
	Bool
	F8E4M3
	F8E5M2
	F8E8M0
	F4
)

// Float is what matrices and vectors of the unquantised part may be: the
// official files have BF16 and F32 by tensor, the small twins all F32.
const Float = BF16 | F32

// dtypes in the order of their bits: the name in a header and the bits per element.
var dtypes = [...]struct {
	name string
	bits int64
}{
	{"BF16", 16}, {"F32", 32}, {"U8", 8}, {"F16", 16}, {"F64", 64}, {"I8", 8}, {"I16", 16},
	{"U16", 16}, {"I32", 32}, {"U32", 32}, {"I64", 64}, {"U64", 64}, {"BOOL", 8},
	{"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F4", 4},
}

// String gives the name that headers use, or for a set "BF16 or F32".
func (d DType) String() string {
	var names []string
	for i, t := range dtypes {
		if d&(1<<i) != 0 {
			names = append(names, t.name)
		}
	}
	if names == nil {
		return "no dtype"
	}
	return strings.Join(names, " or ")
}

// single reports whether d is exactly one known type.
func (d DType) single() bool {
	return bits.OnesCount32(uint32(d)) == 1 && bits.TrailingZeros32(uint32(d)) < len(dtypes)
}

// Bits is the size of one element. d must be one type, not a set.
func (d DType) Bits() int64 {
	if !d.single() {
		panic("checkpoint: Bits of " + d.String())
	}
	return dtypes[bits.TrailingZeros32(uint32(d))].bits
}

func parseDType(name []byte) (DType, bool) {
	for i, t := range dtypes {
		if string(name) == t.name {
			return 1 << i, true
		}
	}
	return 0, false
}

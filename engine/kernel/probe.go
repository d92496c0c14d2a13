package kernel

import "math/bits"

// readGeneric reads b eight bytes at a time, as far as plain Go goes.
func readGeneric(b []byte) {
	sum := uint64(0)
	for ; len(b) >= 8; b = b[8:] {
		sum += uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
			uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
	}
	keep(sum)
}

// mulAddsGeneric does rounds fused multiply-adds on every lane.
func mulAddsGeneric(rounds int) {
	var acc, a [lanes]float32
	for range rounds {
		dotInto(&acc, a[:], a[:])
	}
	keep(uint64(acc[0]))
}

// keep makes the compiler believe that v is needed.
//
//go:noinline
func keep(v uint64) { _ = bits.Len64(v) }

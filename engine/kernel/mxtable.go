package kernel

import "math"

// mxBytes is the MXFP4 table of the levels that look up bytes: for every scale
// byte the upper bytes of the 16 values as BF16, then the lower bytes. 8 KiB, of
// which a real weight uses the few scales near its own size.
func mxBytes() []byte {
	out := onLine(make([]byte, 256*32+lineBytes-1))[:0]
	for s := range 256 {
		var hi, lo [16]byte
		for c := range hi {
			b := math.Float32bits(e2m1[c] * e8m0(byte(s)))
			hi[c], lo[c] = byte(b>>24), byte(b>>16)
		}
		out = append(append(out, hi[:]...), lo[:]...)
	}
	return out
}

// mxFloats is the table of the levels that look up float32: 16 little-endian
// values for every scale byte, 16 KiB.
func mxFloats() []byte {
	out := onLine(make([]byte, 256*64+lineBytes-1))[:0]
	for s := range 256 {
		for c := range 16 {
			b := math.Float32bits(e2m1[c] * e8m0(byte(s)))
			out = append(out, byte(b), byte(b>>8), byte(b>>16), byte(b>>24))
		}
	}
	return out
}

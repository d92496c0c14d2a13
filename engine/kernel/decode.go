package kernel

import (
	"encoding/binary"
	"math"
)

// e2m1 is the value of each MXFP4 code, as the upper half (BF16) of its float32:
// 0, 0.5, 1, 1.5, 2, 3, 4, 6 and the negatives (spec 2.3).
var e2m1 = [16]float32{0, 0.5, 1, 1.5, 2, 3, 4, 6, float32(math.Copysign(0, -1)), -0.5, -1, -1.5, -2, -3, -4, -6}

// e8m0 is the value of an MXFP4 scale byte: 2^(s-127); 255 is NaN, 0 is the
// subnormal 2^-127.
func e8m0(s byte) float32 {
	switch s {
	case 255:
		return float32(math.NaN())
	case 0:
		return math.Float32frombits(1 << 22)
	}
	return math.Float32frombits(uint32(s) << 23)
}

// decodeRow writes columns [from, from+len(dst)) of row r as float32 values. from
// is a multiple of 32. The wide form serves the generic product.
func decodeRow[T float32 | float64](dst []T, m *Matrix, r, from int) {
	row := m.Data[r*m.Stride:]
	switch m.Format {
	case F32:
		row = row[4*from : 4*(from+len(dst))]
		for i := range dst {
			dst[i] = T(math.Float32frombits(binary.LittleEndian.Uint32(row[4*i:])))
		}
	case BF16:
		row = row[2*from : 2*(from+len(dst))]
		for i := range dst {
			dst[i] = T(math.Float32frombits(uint32(binary.LittleEndian.Uint16(row[2*i:])) << 16))
		}
	case MXFP4:
		decodeMX(dst, row[from/2:], m.Scale[r*m.scaleStride()+from/MXGroup:])
	case Int8:
		scale := m.Scale[r*m.scaleStride():]
		for i := range dst {
			s := math.Float32frombits(binary.LittleEndian.Uint32(scale[4*((from+i)/m.Group):]))
			dst[i] = T(float32(int8(row[from+i])) * s)
		}
	}
}

// decodeMX decodes len(dst) columns that start a group.
func decodeMX[T float32 | float64](dst []T, packed, scale []byte) {
	var lut [16]T
	last := -1
	for len(dst) > 0 {
		if s := int(scale[0]); s != last {
			last = s
			for c := range lut {
				lut[c] = T(e2m1[c] * e8m0(scale[0]))
			}
		}
		if len(dst) >= MXGroup {
			out, in := (*[MXGroup]T)(dst), (*[MXGroup / 2]byte)(packed)
			for i, b := range in {
				out[2*i], out[2*i+1] = lut[b&15], lut[b>>4]
			}
			dst, packed, scale = dst[MXGroup:], packed[MXGroup/2:], scale[1:]
			continue
		}
		n := len(dst)
		out, in := dst[:n], packed[:(n+1)/2]
		for i, b := range in[:n/2] {
			out[2*i] = lut[b&15]
			out[2*i+1] = lut[b>>4]
		}
		if n&1 == 1 {
			out[n-1] = lut[in[n/2]&15]
		}
		return
	}
}

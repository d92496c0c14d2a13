package synth

import (
	"encoding/binary"
	"hash/fnv"
	"math"
	"strings"

	"deltafin/engine/checkpoint"
)

// mixerGain scales the output projections of attention and experts. With 1 each
// sub-layer would change the stream as much as all before it; the value makes the
// router of a layer about as foreseeable as that of the real model.
const mixerGain = 0.35

// A tensor is one tensor to be made.
type tensor struct {
	checkpoint.Entry
	seed uint64
	fill filler
}

// A filler makes the bytes of a tensor from offset at on, both a multiple of 32.
type filler func(seed uint64, p []byte, at int64)

// mix is the finalizer of splitmix64: a counter becomes a random number, so that
// any part of a tensor can be made without what comes before it.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

const golden = 0x9e3779b97f4a7c15

// seedOf gives each tensor its own stream.
func seedOf(seed uint64, name string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return mix(h.Sum64() ^ mix(seed+golden))
}

// quantiles of the normal distribution, in the middle of 4096 equal shares.
var quantiles = func() (q [4096]float32) {
	for i := range q {
		q[i] = float32(math.Sqrt2 * math.Erfinv(2*(float64(i)+0.5)/4096-1))
	}
	return q
}()

// normal16 makes BF16 numbers around a mean.
func normal16(mean, deviation float64) filler {
	var table [4096]uint16
	for i, q := range quantiles {
		table[i] = uint16(math.Float32bits(float32(mean+deviation*float64(q))) >> 16)
	}
	return func(seed uint64, p []byte, at int64) {
		// One random number serves four weights, twelve bits each.
		for k := uint64(at) / 8; len(p) >= 8; k++ {
			x := mix(seed + k*golden)
			binary.LittleEndian.PutUint64(p, uint64(table[x&4095])|uint64(table[x>>12&4095])<<16|
				uint64(table[x>>24&4095])<<32|uint64(table[x>>36&4095])<<48)
			p = p[8:]
		}
		for i := 0; i+1 < len(p); i += 2 {
			binary.LittleEndian.PutUint16(p[i:], table[mix(seed^uint64(i+1))&4095])
		}
	}
}

// normal32 makes float32 numbers around a mean, zeros from element count on.
func normal32(mean, deviation float64, count int) filler {
	return func(seed uint64, p []byte, at int64) {
		for k := int(at) / 4; len(p) >= 4; k++ {
			v := float32(0)
			if k < count {
				v = float32(mean + deviation*float64(quantiles[mix(seed+uint64(k)*golden)&4095]))
			}
			binary.LittleEndian.PutUint32(p, math.Float32bits(v))
			p = p[4:]
		}
	}
}

// codes makes MXFP4 codes: any byte is two of them.
func codes(seed uint64, p []byte, at int64) {
	for k := uint64(at) / 8; len(p) >= 8; k++ {
		binary.LittleEndian.PutUint64(p, mix(seed+k*golden))
		p = p[8:]
	}
	for i := range p {
		p[i] = byte(mix(seed ^ uint64(i+1)))
	}
}

// scales makes the scales beside them, for rows of so many columns: one of three
// powers of two around what keeps a row's output at the size of its input. Codes
// that are all equally likely have a root mean square of about 2.9.
func scales(cols int, gain float64) filler {
	middle := 127 + int(math.Round(math.Log2(gain/(2.9*math.Sqrt(float64(cols))))))
	return func(seed uint64, p []byte, at int64) {
		for i := range p {
			p[i] = byte(middle - 1 + int(mix(seed+uint64(at)+uint64(i))%3))
		}
	}
}

// trunk says how a tensor outside the routed experts is filled.
func (m *Model) trunk(s checkpoint.Spec) tensor {
	c := m.cfg
	t := tensor{Entry: checkpoint.Entry{Name: prefix + s.Name, DType: s.DType, Shape: s.Shape}}
	n := 1
	for _, d := range s.Shape {
		n *= d
	}
	flat := func(mean, deviation float64) filler {
		if s.DType == checkpoint.F32 {
			return normal32(mean, deviation, n)
		}
		return normal16(mean, deviation)
	}
	is := func(suffix string) bool { return strings.HasSuffix(s.Name, suffix) }
	switch {
	case is("A_log"): // one per head, padded with zeros as in the official files
		t.Shape = []int{max(c.KDAHeads, c.KDAHeadDim)}
		t.fill = normal32(0, 0.5, c.KDAHeads)
	case is("e_score_correction_bias"):
		// A score is the sigmoid of about a unit normal: it spreads by 0.21.
		t.fill = flat(0, 0.21*m.opt.Skew)
	case is("dt_bias"):
		t.fill = flat(0, 0.5)
	case is("conv1d.weight"):
		t.fill = flat(0.25, 0.2)
	case len(s.Shape) == 1:
		t.fill = flat(1, 0.05)
	case is("res_proj.weight"): // scores of the depth mixer
		t.fill = flat(0, 1/math.Sqrt(float64(c.Hidden)))
	case is("embed_tokens.weight"):
		t.fill = flat(0, 1)
	case is("o_proj.weight"), is("down_proj.weight") && !is("routed_expert_down_proj.weight"), is("routed_expert_up_proj.weight"):
		t.fill = flat(0, mixerGain/math.Sqrt(float64(s.Shape[1])))
	default:
		t.fill = flat(0, 1/math.Sqrt(float64(s.Shape[1])))
	}
	t.seed = seedOf(m.opt.stream(), t.Name)
	return t
}

// expert lists the six tensors of one routed expert, in the official order.
func (m *Model) expert(layer, e int) []tensor {
	c := m.cfg
	var out []tensor
	for w := 1; w <= 3; w++ {
		rows, cols := c.ExpertIntermediate, c.Latent
		if w == 2 {
			rows, cols = cols, rows
		}
		name := prefix + checkpoint.LayerName(layer, expertName(e, w))
		for _, t := range []tensor{
			{Entry: checkpoint.Entry{Name: name + "_packed", Shape: []int{rows, cols / 2}}, fill: codes},
			{Entry: checkpoint.Entry{Name: name + "_scale", Shape: []int{rows, cols / 32}}, fill: m.scales[w-1]},
		} {
			t.DType, t.seed = checkpoint.U8, seedOf(m.opt.stream(), t.Name)
			out = append(out, t)
		}
	}
	return out
}

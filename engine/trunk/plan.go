package trunk

import (
	"deltafin/engine/checkpoint"
	"deltafin/ssdio"
)

// leastBuffers is how many layers the streamed part has room for: one is read while
// the other is computed. mostBuffers even out layers of different sizes where memory
// is not scarce; more would gain nothing.
const (
	leastBuffers = 2
	mostBuffers  = 4
)

// A Plan divides memory between what stays and the buffers of the other layers.
type Plan struct {
	Resident int   // layers that stay: 0 to Resident-1; the head always does
	Buffers  int   // for the others; 0 if there are none
	Buffer   int64 // bytes of one of them
	Memory   int64 // bytes of all: what stays, and the buffers
	Stays    int64 // bytes that are read once
	PerToken int64 // bytes that are read again for every pass
}

// Plan divides memory, in bytes. The head stays: it is about twice as large as a
// layer, so that buffers for it would cost as much as it does. Of the layers the
// largest number that fits stays; with less memory than Least the plan is that of
// Least. No result depends on it.
func (c *Catalog) Plan(memory int64) Plan {
	layers := len(c.units) - 1
	buffers := leastBuffers
	// A buffer takes the place of a layer that would not have to be read at all.
	if mostBuffers*c.widest() <= memory/16 {
		buffers = mostBuffers
	}
	for n := layers; n > 0; n-- {
		if p := c.plan(n, buffers); p.Memory <= memory {
			return p
		}
	}
	return c.plan(0, leastBuffers)
}

// Least is the least memory that the trunk can be used with: every layer streamed.
func (c *Catalog) Least() int64 { return c.plan(0, leastBuffers).Memory }

// widest is the room of the largest layer.
func (c *Catalog) widest() int64 {
	n := int64(0)
	for i := range c.units[:len(c.units)-1] {
		n = max(n, c.units[i].room)
	}
	return n
}

// plan is the plan with so many resident layers and, if it needs any, buffers. As
// many layers as there are buffers stay in them, so that they are resident too.
func (c *Catalog) plan(resident, buffers int) Plan {
	layers := len(c.units) - 1
	if layers-resident <= buffers {
		resident, buffers = layers, 0
	}
	p := Plan{Resident: resident, Buffers: buffers}
	room := int64(0)
	for i := range c.units {
		u := &c.units[i]
		if i < resident || i == layers {
			p.Stays += u.bytes
			room += u.room
			continue
		}
		p.PerToken += u.bytes
		p.Buffer = max(p.Buffer, u.room)
	}
	p.Memory = int64(ssdio.SlotBytes(int(room)))
	if buffers > 0 {
		p.Memory += int64(buffers) * int64(ssdio.SlotBytes(int(p.Buffer)))
	}
	return p
}

// A Size is what the trunk of a checkpoint takes, in bytes.
type Size struct {
	Layers []int64 // [Layers]: matrices of each
	Head   int64   // output matrix
	Embed  int64   // embedding table; of it one row per token is read
	Small  int64   // vectors as they are held, in float32
	Least  int64   // the least memory for layers and head
}

// Sizes are the sizes of a checkpoint's trunk.
func Sizes(ck *checkpoint.Checkpoint) (Size, error) {
	c, err := NewCatalog(ck)
	if err != nil {
		return Size{}, err
	}
	s := Size{Head: c.Bytes(c.Head()), Least: c.Least()}
	for i := range c.Head() {
		s.Layers = append(s.Layers, c.Bytes(i))
	}
	ck.Config().Each(func(spec checkpoint.Spec) bool {
		n := int64(1)
		for _, d := range spec.Shape {
			n *= int64(d)
		}
		switch {
		case spec.Class == checkpoint.Embeddings:
			s.Embed += n * spec.DType.Bits() / 8
		case !IsMatrix(&spec):
			s.Small += 4 * n
		}
		return true
	})
	return s, nil
}

// NewSizes is a catalog of sizes alone, in bytes, to plan with before the files are
// there.
func NewSizes(layers []int64, head int64) *Catalog {
	c := &Catalog{}
	for _, n := range append(append([]int64(nil), layers...), head) {
		c.units = append(c.units, unit{bytes: n, room: aligned(n) + page})
	}
	return c
}

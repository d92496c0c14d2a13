package simulate

import (
	"context"

	"deltafin/ssdio"
)

// A ring streams what memory has no room for of the trunk, as package trunk does: into
// buffers, in the order in which layers are used and on into the next pass, by the
// scheduler that reads the experts, and with its second right. Where a part of the
// layers stays in memory, here the same part of every layer does, so that a sample of
// layers streams its share.
type ring struct {
	r       *run
	sizes   []int64 // [layers]: bytes that are streamed of each, nil: nothing is
	buffers int
	arena   *ssdio.Arena
	layout  *ssdio.Layout
	results chan ssdio.Result
	queue   []*streamed // asked for, the next to be used first
	next    int         // layer to ask for next
}

// streamed is a layer on its way.
type streamed struct {
	slot  *ssdio.Slot
	batch *ssdio.Batch
	layer int32
	here  bool
}

// plan says whether anything is streamed.
func (g *ring) plan(r *run, m *Machine) bool {
	if r.split.Streamed == 0 {
		return false
	}
	layers, _ := r.whole.held(m.Int8)
	all := int64(0)
	for _, n := range layers {
		all += n
	}
	share := float64(r.split.Streamed) / float64(all)
	layers, _ = r.model.held(m.Int8)
	for _, n := range layers {
		g.sizes = append(g.sizes, max(int64(share*float64(n)), 1))
	}
	g.buffers = min(r.split.Ring, len(g.sizes))
	return true
}

func (g *ring) streams() bool { return g.sizes != nil }

// key names the part of a layer.
func (g *ring) key(layer int) ssdio.Key {
	return ssdio.PartKey(layer, 0)
}

// place states the parts on the first drive.
func (g *ring) place(b *ssdio.Builder) error {
	if !g.streams() {
		return nil
	}
	total := int64(0)
	for _, n := range g.sizes {
		total += n
	}
	file, err := b.File(0, "trunk", total)
	if err != nil {
		return err
	}
	at := int64(0)
	for i, n := range g.sizes {
		if err := b.Object(g.key(i), n, nil); err != nil {
			return err
		}
		if err := b.Hold(ssdio.Holding{Key: g.key(i), To: n, File: file, Offset: at}); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// open makes the buffers.
func (g *ring) open(r *run, layout *ssdio.Layout) (err error) {
	if !g.streams() {
		return nil
	}
	largest := int64(0)
	for _, n := range g.sizes {
		largest = max(largest, n)
	}
	g.r, g.layout, g.results = r, layout, make(chan ssdio.Result, g.buffers)
	r.clock.trunk = g.results
	g.arena, err = ssdio.ReserveArena(int(largest), g.buffers, 0)
	return err
}

// close gives the buffers back. The set must be closed.
func (g *ring) close() error {
	if g.arena == nil {
		return nil
	}
	for _, l := range g.queue {
		l.slot.Free()
	}
	return g.arena.Close()
}

// fill asks for the next layers while there are buffers.
func (g *ring) fill() {
	for len(g.queue) < g.buffers {
		l := &streamed{slot: g.arena.Get(), layer: int32(g.next)}
		key := g.key(g.next)
		into := l.slot.Buffer(g.layout.Residue(key), int(g.sizes[g.next]))
		l.batch = g.r.set.ReadTo(context.Background(), ssdio.Trunk, []ssdio.Request{{Key: key, Into: into}}, g.results)
		g.queue = append(g.queue, l)
		g.next = (g.next + 1) % len(g.sizes)
	}
}

// take waits for the next layer.
func (g *ring) take() error {
	if !g.streams() {
		return nil
	}
	g.fill()
	l, c := g.queue[0], g.r.clock
	if g.poll(); l.here {
		return nil
	}
	start := c.now
	l.batch.Promote(0, ssdio.Demand)
	for !l.here {
		if !c.step() {
			return errIdle
		}
		g.poll()
	}
	g.r.cost.disk += c.now - start
	return nil
}

// poll takes in what has landed.
func (g *ring) poll() {
	for len(g.results) > 0 {
		r := <-g.results
		for _, l := range g.queue {
			l.here = l.here || l.layer == r.Key.Layer
		}
	}
}

// done gives the buffer of the layer that was taken to the next one.
func (g *ring) done() {
	if !g.streams() {
		return
	}
	g.queue[0].slot.Free()
	g.queue = append(g.queue[:0], g.queue[1:]...)
	g.fill()
}

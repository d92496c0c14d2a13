package trunk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deltafin/engine/kernel"
	"deltafin/ssdio"
)

// A Store is the trunk of one model in memory. Where layers are streamed, its methods
// but Stats serve one pass at a time.
type Store struct {
	cat    *Catalog
	set    *ssdio.Set
	layout *ssdio.Layout
	plan   Plan
	now    func() time.Time
	counts counters

	home  *ssdio.Arena // one slot: what stays
	held  *ssdio.Slot
	stays [][][]byte // [units][parts]: nil for streamed units

	ring  *ssdio.Arena // nil if all stays
	free  []*ssdio.Slot
	queue []*loan // units in buffers, in the order in which they will be computed
	next  int     // the unit to ask for next
}

// New makes a Store over a set whose layout has every object of the catalog. The set
// is used, not owned. Nothing is read before Load.
func New(cat *Catalog, set *ssdio.Set, layout *ssdio.Layout, plan Plan) (_ *Store, err error) {
	for i := range cat.model.Objects {
		obj := &cat.model.Objects[i]
		if size, ok := layout.Size(obj.Key); !ok || size != obj.Size {
			return nil, fmt.Errorf("%s: the drives have %d bytes of it, the model %d: %w", obj.Key, size, obj.Size, ssdio.ErrUnknownKey)
		}
	}
	s := &Store{cat: cat, set: set, layout: layout, plan: plan, now: time.Now, next: plan.Resident, stays: make([][][]byte, len(cat.units))}
	room := int64(0)
	for i := range cat.units {
		if s.resident(i) {
			room += cat.units[i].room
		}
	}
	if s.home, err = ssdio.NewArena(int(room), 1, 0); err != nil {
		return nil, err
	}
	s.held = s.home.Get()
	mem, at := s.held.Buffer(0, int(room)).Bytes(), int64(0)
	for i := range cat.units {
		if s.resident(i) {
			s.stays[i] = s.lay(i, mem[at:at+cat.units[i].room])
			at += cat.units[i].room
		}
	}
	if plan.Buffers == 0 {
		return s, nil
	}
	if s.ring, err = ssdio.NewArena(int(plan.Buffer), plan.Buffers, 0); err != nil {
		s.held.Free()
		return nil, errors.Join(err, s.home.Close())
	}
	for range plan.Buffers {
		s.free = append(s.free, s.ring.Get())
	}
	return s, nil
}

// resident says whether a unit stays in memory.
func (s *Store) resident(unit int) bool { return unit < s.plan.Resident || unit == s.cat.Head() }

// lay cuts memory that starts at a page into the places of a unit's parts: each
// starts as far behind a page as it does in its file, so that reads need no copy.
func (s *Store) lay(unit int, mem []byte) [][]byte {
	var parts [][]byte
	at := int64(0)
	for _, p := range s.cat.units[unit].parts {
		at = aligned(at) + int64(s.layout.Residue(p.key))
		parts = append(parts, mem[at:at+p.size:at+p.size])
		at += p.size
	}
	return parts
}

// requests are the reads of a unit into its places. The places are fixed: of a
// layer's few large reads none can be moved elsewhere without moving the layer.
func (s *Store) requests(unit int, parts [][]byte) []ssdio.Request {
	reqs := make([]ssdio.Request, len(parts))
	for i, p := range s.cat.units[unit].parts {
		reqs[i] = ssdio.Request{Key: p.key, Into: ssdio.Fixed(parts[i])}
	}
	return reqs
}

// A Progress is how far Load is, in bytes.
type Progress struct{ Done, Total int64 }

// Load reads what stays, in the order in which a pass needs it, and tells after every
// part. The error is an *Error or the cause of ctx; Close the Store then.
func (s *Store) Load(ctx context.Context, tell func(Progress)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reqs []ssdio.Request
	var unit []int // [reqs]
	for i, parts := range s.stays {
		if parts == nil {
			continue
		}
		for _, r := range s.requests(i, parts) {
			reqs, unit = append(reqs, r), append(unit, i)
		}
	}
	var failed error
	p := Progress{Total: s.plan.Stays}
	// To the end, whatever happens: the memory must be nobody's when it is given back.
	for r := range s.set.Read(ctx, ssdio.Trunk, reqs).Results() {
		if r.Stuck {
			s.held = nil // mapped for good
		}
		if r.Err != nil {
			if failed == nil {
				failed = s.cat.newError(unit[r.Index], r.Err)
				if ctx.Err() != nil {
					failed = context.Cause(ctx)
				}
				cancel()
			}
			continue
		}
		p.Done += int64(len(r.Into.Bytes()))
		if tell != nil {
			tell(p)
		}
	}
	return failed
}

// Streams says that layers are read for every pass: one pass at a time then.
func (s *Store) Streams() bool { return s.plan.Buffers > 0 }

// Resident implements k3.Trunk: a unit's matrices stay where they are.
func (s *Store) Resident(unit int) bool { return s.resident(unit) }

// Matrix implements k3.Trunk: it is a matrix of a resident unit, or of the layer that
// Layer gave last.
func (s *Store) Matrix(unit int, name string) (kernel.Matrix, error) {
	w, ok := s.cat.units[unit].weights[name]
	parts := s.stays[unit]
	if parts == nil && len(s.queue) > 0 && s.queue[0].unit == unit {
		parts = s.queue[0].parts
	}
	if !ok || parts == nil {
		return kernel.Matrix{}, fmt.Errorf("%s is not a matrix of a layer in memory (unit %d)", name, unit)
	}
	data := parts[w.part][w.at : w.at+w.length]
	if w.format == kernel.Int8 {
		return kernel.NewMatrix(w.format, w.rows, w.cols, data[:w.codes], data[w.codes:], w.group)
	}
	return kernel.NewMatrix(w.format, w.rows, w.cols, data, nil, 0)
}

// Close gives the memory back. The set must be closed before, so that no read is in
// flight; where one is stuck in the system, its memory stays mapped and the error
// wraps ssdio.ErrArenaBusy.
func (s *Store) Close() error {
	s.drop()
	if s.held != nil {
		s.held.Free()
		s.held = nil
	}
	for _, slot := range s.free {
		slot.Free()
	}
	s.free = nil
	err := s.home.Close()
	if s.ring != nil {
		err = errors.Join(err, s.ring.Close())
	}
	return err
}

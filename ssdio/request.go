package ssdio

import "fmt"

// request is one request on its way. Of the fields below the line, all are
// guarded by the set's lock.
type request struct {
	set      *Set
	batch    *Batch
	index    int
	key      Key
	obj      *object
	from, to int64 // bytes of the object
	lo, hi   int32 // the blocks that cover them

	// ---
	class Class
	state requestState
	err   error // why it will fail; it waits for what is in flight

	into   Buffer
	spare  Buffer   // second destination, for hedges; no slot: none yet
	fly    [2]int32 // slices in flight into each
	orphan [2]*Slot // to be given back when nothing is in flight into it

	cut    bool
	pieces []piece
	owners uint64   // drives that own a piece
	left   int32    // blocks that have not landed
	landed []uint64 // [blocks] bits
	moved  []uint64 // [blocks] bits: landed in the spare, not in the buffer
	got    []int64  // [drives] bytes that landed

	next, prev *request // in the queue of its class, until it is over
}

type requestState uint8

const (
	stateNew    requestState = iota
	stateActive              // in its class's queue
	stateOver                // its result was sent or is on its way
)

// init checks a request and fills in what does not change.
func (r *request) init(s *Set, b *Batch, i int, class Class, q *Request) {
	*r = request{set: s, batch: b, index: i, key: q.Key, class: class, into: q.Into}
	if class >= classes {
		r.err = fmt.Errorf("%s: class %d is not one of %d: %w", q.Key, class, classes, ErrRange)
		return
	}
	at, ok := s.layout.index[q.Key]
	if !ok {
		r.err = &ReadError{Key: q.Key, Length: q.To - q.From, Err: ErrUnknownKey}
		return
	}
	o := &s.layout.objects[at]
	r.obj, r.from, r.to = o, q.From, q.To
	if r.from == 0 && r.to == 0 {
		r.to = o.size
	}
	if r.from < 0 || r.to > o.size || r.from >= r.to {
		r.err = fmt.Errorf("%s: bytes [%d,%d) of %d: %w", q.Key, q.From, q.To, o.size, ErrRange)
		return
	}
	if int64(len(q.Into.mem)) != r.to-r.from {
		r.err = fmt.Errorf("%s: buffer of %d bytes for %d: %w", q.Key, len(q.Into.mem), r.to-r.from, ErrRange)
		return
	}
	r.lo, r.hi = int32(r.from/BlockSize), int32((r.to+BlockSize-1)/BlockSize)
	r.left = r.hi - r.lo
	words := (int(r.left) + 63) / 64
	both := make([]uint64, 2*words)
	r.landed, r.moved = both[:words], both[words:]
	r.got = make([]int64, len(s.drives))
}

// bit tells or sets the bit of a block.
func (r *request) bit(set []uint64, b int32) bool {
	i := b - r.lo
	return set[i/64]&(1<<(i%64)) != 0
}

func (r *request) setBit(set []uint64, b int32) {
	i := b - r.lo
	set[i/64] |= 1 << (i % 64)
}

// place is where blocks [lo,hi) land in a buffer of the request, and which part
// of the blocks that is: bytes [skip, skip+len(place)) of them.
func (r *request) place(b Buffer, lo, hi int32) (place []byte, skip int64) {
	start, end := int64(lo)*BlockSize, r.obj.end(hi)
	a, z := max(start, r.from), min(end, r.to)
	return b.mem[a-r.from : z-r.from], a - start
}

// owner is the index of the drive that owns a piece.
func (r *request) owner(p *piece) int { return int(r.obj.hold[p.hold].drive) }

// addPieces puts pieces into the plan and what they owe on their drives.
func (r *request) addPieces(ps []piece) {
	for i := range ps {
		r.owe(&ps[i], 1)
	}
	r.pieces = append(r.pieces, ps...)
	r.refresh()
}

// dropPieces takes everything that has not started out of the plan.
func (r *request) dropPieces() {
	for i := range r.pieces {
		r.owe(&r.pieces[i], -1)
	}
	r.pieces = r.pieces[:0]
	r.owners = 0
}

// owe adds the bytes of a piece to its drive's debt, or takes them away.
func (r *request) owe(p *piece, sign int64) {
	r.set.drives[r.owner(p)].owed[r.class] += sign * r.obj.span(p.lo, p.hi)
}

// refresh drops empty pieces and recounts the owners.
func (r *request) refresh() {
	kept := r.pieces[:0]
	r.owners = 0
	for _, p := range r.pieces {
		if p.lo < p.hi {
			kept = append(kept, p)
			r.owners |= 1 << r.owner(&p)
		}
	}
	r.pieces = kept
}

// trimHedges drops the blocks of hedges that have landed meanwhile: a hedge
// that has not started costs nothing.
func (r *request) trimHedges() {
	if r.spare.slot == nil {
		return
	}
	for i := range r.pieces {
		p := &r.pieces[i]
		if !p.hedge {
			continue
		}
		r.owe(p, -1)
		for p.lo < p.hi && r.bit(r.landed, p.lo) {
			p.lo++
		}
		for p.lo < p.hi && r.bit(r.landed, p.hi-1) {
			p.hi--
		}
		r.owe(p, 1)
	}
	r.refresh()
}

// hedging says whether some block of [lo,hi) is on its way to the spare slot, or
// has landed there.
func (r *request) hedging(lo, hi int32) bool {
	for b := lo; b < hi; b++ {
		if r.bit(r.moved, b) {
			return true
		}
	}
	overlaps := func(l, h int32) bool { return l < hi && h > lo }
	for i := range r.pieces {
		if p := &r.pieces[i]; p.hedge && overlaps(p.lo, p.hi) {
			return true
		}
	}
	for _, m := range r.set.drives {
		for _, f := range m.flights {
			if f.req == r && f.hedge && overlaps(f.lo, f.hi) {
				return true
			}
		}
	}
	return false
}

// underway says whether every block of [lo,hi) has landed, is in flight or
// stands in the plan, besides one flight.
func (r *request) underway(lo, hi int32, besides *flight) bool {
	for b := lo; b < hi; b++ {
		if !r.bit(r.landed, b) && !r.coming(b, besides) {
			return false
		}
	}
	return true
}

func (r *request) coming(b int32, besides *flight) bool {
	for i := range r.pieces {
		if b >= r.pieces[i].lo && b < r.pieces[i].hi {
			return true
		}
	}
	for _, m := range r.set.drives {
		for _, f := range m.flights {
			if f.req == r && f != besides && b >= f.lo && b < f.hi {
				return true
			}
		}
	}
	return false
}

// queue holds the requests of one class that are not over, oldest first.
type queue struct {
	head, tail *request
}

func (q *queue) push(r *request) {
	r.prev, r.next = q.tail, nil
	if q.tail != nil {
		q.tail.next = r
	} else {
		q.head = r
	}
	q.tail = r
}

func (q *queue) remove(r *request) {
	if r.prev != nil {
		r.prev.next = r.next
	} else {
		q.head = r.next
	}
	if r.next != nil {
		r.next.prev = r.prev
	} else {
		q.tail = r.prev
	}
	r.prev, r.next = nil, nil
}

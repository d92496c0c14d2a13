package ssdio

import (
	"context"
	"fmt"
	"math"
	"time"
)

// helpDepth bounds how many requests from the front of a class a drive looks
// at for pieces of others that it could help with.
const helpDepth = 64

// submit puts a batch in the queue.
func (s *Set) submit(ctx context.Context, b *Batch) {
	// Before the lock: a context that is over already calls back at once, on
	// its own goroutine.
	b.stop = context.AfterFunc(ctx, func() {
		for i := range b.reqs {
			s.cancel(&b.reqs[i], ctx.Err())
		}
	})
	s.mu.Lock()
	defer s.unlock()
	for i := range b.reqs {
		r := &b.reqs[i]
		switch {
		case s.closed && r.err == nil:
			r.err = ErrClosed
		case r.err == nil:
			r.err = ctx.Err()
		}
		r.state = stateActive
		if r.class >= classes {
			r.class = Prefetch // it failed already; any queue will do
		}
		s.queue[r.class].push(r)
		s.settle(r)
	}
	s.pump()
}

// cancel gives up a request.
func (s *Set) cancel(r *request, cause error) {
	s.mu.Lock()
	defer s.unlock()
	if r.state == stateOver || r.err != nil {
		return
	}
	r.err = cause
	s.settle(r)
	s.pump()
}

// promote moves what has not started of a request to a higher class.
func (s *Set) promote(r *request, c Class) {
	s.mu.Lock()
	defer s.unlock()
	if r.state != stateActive || c >= r.class {
		return
	}
	for i := range r.pieces {
		r.owe(&r.pieces[i], -1)
	}
	s.queue[r.class].remove(r)
	r.class = c
	s.queue[c].push(r)
	for i := range r.pieces {
		r.owe(&r.pieces[i], 1)
	}
	s.pump()
}

// unlock releases the lock and then does what must not be done under it.
func (s *Set) unlock() {
	after := s.after
	s.after = nil
	s.mu.Unlock()
	for _, f := range after {
		f()
	}
}

// later registers what unlock does.
func (s *Set) later(f func()) { s.after = append(s.after, f) }

// pump starts slices on every drive that has a worker to spare. It is called
// after everything that may have made work or workers.
func (s *Set) pump() {
	if s.closed {
		return
	}
	now := s.since()
	for _, m := range s.drives {
		for !m.lost && len(m.flights) < m.depth {
			f := s.pick(m, now)
			if f == nil {
				break
			}
			s.start(f, now)
		}
	}
}

// pick chooses the next slice of a drive: the highest class first, the oldest
// request first, its own pieces before helping others with theirs.
func (s *Set) pick(m *member, now time.Duration) *flight {
	for class := range Class(classes) {
		if class == Prefetch && m.guesses >= m.prefetchDepth {
			return nil
		}
		// Blocks that stand before a piece in the queue of its owner.
		var ahead [MaxDrives]int32
		seen := 0
		for r, next := s.queue[class].head, (*request)(nil); r != nil; r = next {
			next = r.next // the cut may fail r and take it out
			if !r.cut {
				s.cutRequest(r, now)
			}
			if r.owners == 0 {
				continue
			}
			if r.owners&m.bit != 0 {
				return s.takeOwn(r, m)
			}
			if seen++; seen > helpDepth {
				continue
			}
			if f := s.help(r, m, now, &ahead); f != nil {
				return f
			}
			for i := range r.pieces {
				p := &r.pieces[i]
				ahead[r.owner(p)] += p.hi - p.lo
			}
		}
	}
	return nil
}

// cutRequest plans a request when a drive first gets to it, not before: the
// later, the better the estimates.
func (s *Set) cutRequest(r *request, now time.Duration) {
	r.cut = true
	ps, ok := s.plan(r, r.lo, r.hi, 0, now)
	if !ok {
		s.fail(r, s.noHolder(r, r.lo, r.hi, 0, nil))
		return
	}
	r.addPieces(ps)
}

// plan cuts a range over the drives that are not in avoid.
func (s *Set) plan(r *request, lo, hi int32, avoid uint64, now time.Duration) ([]piece, bool) {
	var est [MaxDrives]estimate
	for i := range r.obj.hold {
		d := r.obj.hold[i].drive
		if m := s.drives[d]; avoid&m.bit == 0 && est[d].rate == 0 {
			est[d] = m.estimate(now, r.class)
		}
	}
	ps, ok := cutRange(lo, hi, r.obj.hold, est[:], nil)
	if !ok {
		ps, ok = s.planAround(r, lo, hi, avoid, est[:])
	}
	for i := range ps {
		ps[i].avoid = avoid
	}
	return ps, ok
}

// planAround cuts a range of which some blocks are held only by drives that are
// stalled: those blocks wait for them, since a stall often ends by itself.
func (s *Set) planAround(r *request, lo, hi int32, avoid uint64, est []estimate) (ps []piece, ok bool) {
	for at := lo; at < hi; {
		end, stalled, found := at, int32(-1), false
		// One run of blocks that all have the same answer.
		for ; end < hi; end++ {
			k, f := s.holderOf(r, end, avoid)
			if end == at {
				stalled, found = k, f
			} else if f != found || (!f && k != stalled) {
				break
			}
		}
		switch {
		case found:
			if ps, ok = cutRange(at, end, r.obj.hold, est, ps); !ok {
				return nil, false
			}
		case stalled >= 0:
			ps = append(ps, piece{lo: at, hi: end, hold: stalled})
		default:
			return nil, false
		}
		at = end
	}
	return ps, true
}

// holderOf says whether some drive that answers holds a block, and otherwise
// which stalled holding has it, or -1.
func (s *Set) holderOf(r *request, b int32, avoid uint64) (stalled int32, found bool) {
	stalled = -1
	for k := range r.obj.hold {
		h := &r.obj.hold[k]
		m := s.drives[h.drive]
		switch {
		case b < h.lo || b >= h.hi || avoid&m.bit != 0:
		case !m.lost:
			return -1, true
		case m.stalled:
			stalled = int32(k)
		}
	}
	return stalled, false
}

// takeOwn takes the next slice from the front of the drive's first piece.
// Pieces a little longer than a slice are halved and not left with a crumb.
func (s *Set) takeOwn(r *request, m *member) *flight {
	for i := range r.pieces {
		p := &r.pieces[i]
		if r.owner(p) != m.index {
			continue
		}
		n := evenly(p.hi-p.lo, m.slice)
		return s.take(r, p, int(p.hold), p.lo, p.lo+n)
	}
	return nil // not reached: owners says that there is one
}

// evenly is the length of the first of the fewest equal slices of n blocks.
func evenly(n, slice int32) int32 {
	k := (n + slice - 1) / slice
	return (n + k - 1) / k
}

// help takes a slice from the back of another drive's piece, if that makes the
// request arrive earlier.
func (s *Set) help(r *request, m *member, now time.Duration, ahead *[MaxDrives]int32) *flight {
	for k := range r.obj.hold {
		h := &r.obj.hold[k]
		if int(h.drive) != m.index {
			continue
		}
		for i := range r.pieces {
			p := &r.pieces[i]
			lo, hi := max(p.lo, h.lo), min(p.hi, h.hi)
			if lo >= hi || p.avoid&m.bit != 0 {
				continue
			}
			o := s.drives[r.owner(p)]
			rate := o.service.pending(now, o.bytes)
			owner := estimate{
				ready: (float64(o.bytes) + float64(ahead[o.index])*BlockSize) / rate, rate: rate / BlockSize,
			}
			mine := m.service.pending(now, m.bytes)
			helper := estimate{ready: float64(m.bytes) / mine, rate: mine / BlockSize}
			n := int32(math.Floor(takeOver(owner, helper, float64(p.hi-p.lo))))
			n = min(n, hi-lo, m.slice)
			if n < 1 {
				continue
			}
			return s.take(r, p, k, hi-n, hi)
		}
	}
	return nil
}

// take makes a flight of blocks [lo,hi) of a piece, read from holding hold.
func (s *Set) take(r *request, p *piece, hold int, lo, hi int32) *flight {
	h := &r.obj.hold[hold]
	f := &flight{
		req: r, on: s.drives[h.drive], hold: h, lo: lo, hi: hi,
		tries: p.tries, avoid: p.avoid, again: p.again && int32(hold) == p.hold, target: p.target, hedge: p.hedge,
	}
	r.owe(p, -1)
	rest := *p
	rest.lo = hi
	p.hi = lo
	if p.lo == p.hi {
		*p, rest.lo, rest.hi = rest, 0, 0
	}
	r.owe(p, 1)
	if rest.lo < rest.hi {
		r.owe(&rest, 1)
		r.pieces = append(r.pieces, rest)
	}
	r.refresh()
	return f
}

// start hands a flight to a worker.
func (s *Set) start(f *flight, now time.Duration) {
	m, n := f.on, f.bytes()
	if len(m.flights) == 0 {
		m.service.advance(now)
		m.service.busy = true
		m.answered = now
	}
	m.flights = append(m.flights, f)
	m.bytes += n
	f.start, f.ahead = now, m.bytes
	if f.req.class == Prefetch {
		f.guess = true
		m.guesses++
	}
	f.req.fly[f.target]++
	m.count.inFlight.Add(1)
	m.count.inFlightBytes.Add(n)
	if f.hedge {
		m.count.hedged.Add(n)
	}
	s.inFlight++
	if s.opt.Timeline != nil {
		s.schedule(f)
		return
	}
	if s.inFlight == 1 {
		select {
		case s.wake <- struct{}{}:
		default:
		}
	}
	m.work <- f
}

// bytes is the length of the flight's read.
func (f *flight) bytes() int64 { return f.req.obj.span(f.lo, f.hi) }

// fail makes a request fail when all that is in flight for it is back.
func (s *Set) fail(r *request, err error) {
	if r.state != stateActive || r.err != nil {
		return
	}
	r.err = err
	s.settle(r)
}

// noHolder is the error for a range that nobody is left to ask for.
func (s *Set) noHolder(r *request, lo, hi int32, tries int32, last *flight) error {
	e := &ReadError{Key: r.key, Length: r.obj.span(lo, hi), Tries: int(tries), Err: ErrNoHolder}
	if last != nil {
		e.Drive, e.File, e.Offset = last.on.Name, s.layout.files[last.hold.file].Name, last.hold.at(lo)
		e.Err = last.err
	}
	for i := range r.obj.hold {
		h := &r.obj.hold[i]
		m := s.drives[h.drive]
		if h.lo >= hi || h.hi <= lo || !m.lost {
			continue
		}
		if last == nil {
			e.Drive, e.File, e.Offset = m.Name, s.layout.files[h.file].Name, h.at(max(lo, h.lo))
		}
		e.Err = fmt.Errorf("%w; drive %s: %w: %w", e.Err, m.Name, ErrDriveLost, m.cause)
		break
	}
	return e
}

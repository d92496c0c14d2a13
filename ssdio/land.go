package ssdio

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// land takes a flight back that a worker has finished, and puts its blocks
// where they belong.
func (s *Set) land(f *flight) {
	s.mu.Lock()
	defer s.unlock()
	now := s.since()
	s.account(f, now)
	r := f.req
	if f.err != nil {
		s.failed(f, now)
	} else {
		f.on.failures = 0
		if f.on.silent {
			s.back(f.on, now) // it was slow, not dead
		}
		s.landed(f)
	}
	if r.state == stateOver {
		s.release(r, int(f.target))
	} else {
		s.settle(r)
	}
	s.pump()
}

// account keeps the books of the drive.
func (s *Set) account(f *flight, now time.Duration) {
	m, n := f.on, f.bytes()
	for i, g := range m.flights {
		if g == f {
			m.flights = append(m.flights[:i], m.flights[i+1:]...)
			break
		}
	}
	m.bytes -= n
	if f.guess {
		m.guesses--
	}
	f.req.fly[f.target]--
	s.inFlight--
	took := now - f.start
	m.count.inFlight.Add(-1)
	m.count.inFlightBytes.Add(-n)
	m.count.reads.Add(1)
	m.count.latency.add(took)
	m.count.checked.Add(f.checked)
	m.count.noted.Add(f.noted)
	m.count.copied.Add(int64(f.copied))
	m.count.busy.Add(int64(max(now-max(m.service.last, 0), 0)))
	m.service.advance(now)
	m.service.busy = len(m.flights) > 0
	m.answered = now
	if f.err != nil && !errors.Is(f.err, ErrChecksum) {
		return
	}
	// A read with wrong content was still served at this speed.
	m.service.bytes += float64(n)
	m.recent.add(took)
	m.count.read.Add(n)
	m.count.recent.add(n, now)
	s.read += n
}

// landed marks the blocks of a good flight.
func (s *Set) landed(f *flight) {
	r := f.req
	for b := f.lo; b < f.hi; b++ {
		n := r.obj.span(b, b+1)
		if r.state == stateOver || r.bit(r.landed, b) {
			f.on.count.wasted.Add(n)
			continue
		}
		r.setBit(r.landed, b)
		if f.target == 1 {
			r.setBit(r.moved, b)
		}
		r.left--
		r.got[f.on.index] += n
	}
	r.trimHedges()
}

// failed decides what becomes of the blocks of a failed flight: again from the
// same drive, then from the other holders, then the request fails.
func (s *Set) failed(f *flight, now time.Duration) {
	m, r := f.on, f.req
	lo, hi := f.lo, f.hi
	if errors.Is(f.err, ErrChecksum) {
		m.count.mismatch.Add(1)
		// What was right before and after the bad blocks has landed.
		lo, hi = f.badLo, f.badHi
		m.count.wasted.Add(r.obj.span(lo, hi))
		for _, part := range [2][2]int32{{f.lo, lo}, {hi, f.hi}} {
			if part[0] < part[1] {
				g := *f
				g.lo, g.hi = part[0], part[1]
				s.landed(&g)
			}
		}
	} else {
		m.count.errors.Add(1)
	}
	m.failures++
	if m.lost && m.stalled {
		m.stalled = false // it answers now, but with an error
		s.rerouteAll(m, now)
	}
	if !m.lost && (errors.Is(f.err, ErrGone) || m.failures >= s.opt.LostAfter) {
		s.lose(m, f.err, now)
	}
	info := ReadFailedInfo{
		Key: r.key, Drive: m.Name, File: s.layout.files[f.hold.file].Name,
		Offset: f.hold.at(lo), Length: r.obj.span(lo, hi), Err: f.err,
	}
	f.tries++
	for lo < hi && r.state == stateActive && r.err == nil {
		if r.bit(r.landed, lo) {
			lo++ // its hedge was faster
			continue
		}
		end := lo + 1
		for end < hi && !r.bit(r.landed, end) {
			end++
		}
		info.Final = !s.again(f, lo, end, now)
		lo = end
	}
	s.later(func() { s.opt.Listener.ReadFailed(info) })
}

// again puts blocks of a failed flight back into the plan. It says whether
// there is somebody to ask; otherwise the request has failed.
func (s *Set) again(f *flight, lo, hi int32, now time.Duration) bool {
	m, r := f.on, f.req
	if !f.again && !m.lost {
		m.count.retries.Add(1)
		r.addPieces([]piece{{
			lo: lo, hi: hi, hold: s.holdIndex(r, f.hold), tries: f.tries, avoid: f.avoid,
			again: true, target: f.target, hedge: f.hedge,
		}})
		return true
	}
	ps, ok := s.plan(r, lo, hi, f.avoid|m.bit, now)
	if !ok {
		if r.underway(lo, hi, f) {
			return true // a hedge or the read that it hedged is still out
		}
		s.fail(r, s.noHolder(r, lo, hi, f.tries, f))
		return false
	}
	for i := range ps {
		ps[i].tries, ps[i].target, ps[i].hedge = f.tries, f.target, f.hedge
		s.drives[r.owner(&ps[i])].count.retries.Add(1)
	}
	r.addPieces(ps)
	return true
}

func (s *Set) holdIndex(r *request, h *holding) int32 {
	for i := range r.obj.hold {
		if &r.obj.hold[i] == h {
			return int32(i)
		}
	}
	return 0 // not reached: flights point into their object
}

// settle ends a request if it is complete or has failed, and a destination is
// at rest: no read in flight may write into what the caller gets back.
func (s *Set) settle(r *request) {
	if r.state != stateActive || (r.err == nil && r.left > 0) {
		return
	}
	r.dropPieces()
	switch {
	case r.fly[0] == 0:
		s.deliver(r, 0)
	case r.spare.slot != nil && r.fly[1] == 0:
		s.deliver(r, 1)
	}
}

// deliver ends a request with destination to: the buffer or the spare.
func (s *Set) deliver(r *request, to int) {
	s.over(r)
	res := Result{Index: r.index, Key: r.key, Into: r.into, Err: r.err}
	move := [2]Buffer{r.into, r.spare}
	if to == 1 {
		res.Into = r.spare
		s.count.moved.Add(1)
		r.into.slot.arena.exchange(r.into.slot, r.spare.slot)
		r.orphan[0] = r.into.slot
	} else if r.spare.slot != nil {
		r.orphan[1] = r.spare.slot
	}
	if r.spare.slot == nil {
		s.result(r, res)
		return
	}
	// Blocks that landed in the other place are fetched from there, outside the
	// lock. No read writes to them: for each block there is at most one flight
	// to each place, and what has landed is not asked for again. Meanwhile
	// neither slot may be given away.
	r.fly[0]++
	r.fly[1]++
	s.later(func() {
		if res.Err == nil {
			s.gather(r, move, to)
		}
		s.mu.Lock()
		defer s.unlock()
		r.fly[0]--
		r.fly[1]--
		s.release(r, 0)
		s.release(r, 1)
		s.result(r, res)
	})
}

// over takes a request out of its queue and settles the fate of its bytes.
func (s *Set) over(r *request) {
	r.state = stateOver
	s.queue[r.class].remove(r)
	for i, n := range r.got {
		if r.err == nil {
			s.drives[i].count.useful.Add(n)
		} else {
			s.drives[i].count.wasted.Add(n)
		}
	}
	switch {
	case r.err == nil:
		s.count.requests.Add(1)
	case errors.Is(r.err, context.Canceled), errors.Is(r.err, context.DeadlineExceeded), errors.Is(r.err, ErrClosed):
		s.count.cancelled.Add(1)
	default:
		s.count.failed.Add(1)
		info := RequestFailedInfo{Key: r.key, Err: r.err}
		s.later(func() { s.opt.Listener.RequestFailed(info) })
	}
}

// gather copies the blocks that landed in the other destination.
func (s *Set) gather(r *request, move [2]Buffer, to int) {
	for b := r.lo; b < r.hi; b++ {
		in := 0
		if r.bit(r.moved, b) {
			in = 1
		}
		if in == to {
			continue
		}
		from, _ := r.place(move[in], b, b+1)
		into, _ := r.place(move[to], b, b+1)
		s.count.copied.Add(int64(copy(into, from)))
	}
}

// release gives a destination back that nobody holds and nothing flies into.
func (s *Set) release(r *request, target int) {
	if slot := r.orphan[target]; slot != nil && r.fly[target] == 0 {
		r.orphan[target] = nil
		slot.arena.putSpare(slot)
	}
}

// result sends a result; the channel has room for all of them.
func (s *Set) result(r *request, res Result) {
	b := r.batch
	for _, n := range r.got {
		res.Arrived += n
	}
	b.results <- res
	if t := s.opt.Timeline; t != nil {
		t.Delivered(b.results)
	}
	if b.left--; b.left == 0 {
		if b.owned {
			close(b.results)
		}
		stop := b.stop
		s.later(func() { stop() })
	}
}

// force ends a request although reads that do not return may still write into
// its destinations: it gets a fresh spare, or its memory is declared stuck.
func (s *Set) force(r *request, f *flight) {
	if r.state != stateActive {
		return
	}
	complete := r.err == nil && r.left == 0
	if !complete && r.err == nil {
		r.err = &ReadError{
			Key: r.key, Drive: f.on.Name, File: s.layout.files[f.hold.file].Name, Offset: f.hold.at(f.lo),
			Length: f.bytes(), Tries: int(f.tries) + 1, Err: fmt.Errorf("no answer for %s: %w", s.opt.StuckAfter, ErrStuck),
		}
		s.settle(r)
		if r.state != stateActive {
			return
		}
	}
	if r.into.slot != nil && !complete {
		if fresh := r.into.slot.arena.takeSpare(); fresh != nil {
			old := r.into
			r.orphan[0] = old.slot
			if r.spare.slot != nil {
				r.orphan[1] = r.spare.slot
			}
			r.into.slot.arena.exchange(old.slot, fresh)
			s.over(r)
			s.result(r, Result{Index: r.index, Key: r.key, Into: old.in(fresh), Err: r.err})
			return
		}
	}
	if r.err == nil {
		r.err = &ReadError{Key: r.key, Length: r.to - r.from, Drive: f.on.Name, Err: ErrStuck}
	}
	if !errors.Is(r.err, ErrStuck) {
		r.err = fmt.Errorf("%w; %w", r.err, ErrStuck)
	}
	if r.spare.slot != nil {
		r.orphan[1] = r.spare.slot
	}
	s.over(r)
	s.result(r, Result{Index: r.index, Key: r.key, Into: r.into, Stuck: true, Err: r.err})
}

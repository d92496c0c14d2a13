package ssdio

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// watcher looks at the reads in flight every few milliseconds while there are
// any: one goroutine and one timer for all of them.
func (s *Set) watcher() {
	defer s.done.Done()
	timer := time.NewTimer(watchEvery)
	defer timer.Stop()
	for {
		select {
		case <-s.stop:
			return
		case <-timer.C:
			if s.look() {
				timer.Reset(watchEvery)
			}
		case <-s.wake:
			timer.Reset(watchEvery)
		}
	}
}

// look hedges what is late and gives up what is dead. It says whether anything
// is in flight still.
func (s *Set) look() bool {
	s.mu.Lock()
	defer s.unlock()
	now := s.since()
	for _, m := range s.drives {
		if len(m.flights) == 0 {
			continue
		}
		silent := now - max(m.answered, m.flights[0].start)
		if !m.lost && silent >= s.opt.StallAfter {
			err := fmt.Errorf("%d reads in flight and no answer for %s: %w", len(m.flights), silent.Round(time.Millisecond), ErrStalled)
			m.silent, m.stalled = true, true
			s.lose(m, err, now)
		}
		if m.stalled && silent >= s.opt.StuckAfter {
			m.stalled = false // no hope for what waits for it
			m.cause = fmt.Errorf("no answer for %s: %w", silent.Round(time.Millisecond), ErrStuck)
			s.rerouteAll(m, now)
		}
		late := s.lateAfter(m)
		var stuck []*flight
		for _, f := range m.flights {
			age := now - f.start
			switch {
			case age >= s.opt.StuckAfter:
				stuck = append(stuck, f)
			case m.lost || (late > 0 && age > max(late, s.expected(f, m))):
				s.hedge(f, now)
			}
		}
		for _, f := range stuck {
			s.force(f.req, f)
		}
	}
	s.pump()
	return s.inFlight > 0
}

// lateAfter is the age at which a slice of the drive is late, 0 for never.
func (s *Set) lateAfter(m *member) time.Duration {
	const few = 32 // a p99 of fewer is one outlier
	if s.opt.HedgeFactor < 0 || m.recent.n < few {
		return 0
	}
	return max(s.opt.HedgeFloor, time.Duration(s.opt.HedgeFactor*float64(m.recent.counts.Quantile(0.99))))
}

// expected is the age at which the slice would be late by what stood in the
// drive's queue before it.
func (s *Set) expected(f *flight, m *member) time.Duration {
	return time.Duration(s.opt.HedgeFactor * float64(f.ahead) / m.service.rate() * float64(time.Second))
}

// hedge asks other holders for a late slice, into the request's spare slot.
// Prefetches are not worth it.
func (s *Set) hedge(f *flight, now time.Duration) {
	r := f.req
	if f.hedged || f.hedge || r.class == Prefetch || r.state != stateActive || r.err != nil {
		return
	}
	n := f.bytes()
	ps, ok := s.plan(r, f.lo, f.hi, f.avoid|f.on.bit, now)
	if !ok || r.hedging(f.lo, f.hi) {
		return // nobody else has it, or a hedge of an earlier try is out
	}
	budget := hedgeStart + int64(s.opt.HedgeShare*float64(s.read))
	if (!f.on.lost && s.hedged+n > budget) || !r.takeSpare() {
		if !f.denied {
			f.denied = true
			f.on.count.denied.Add(1)
		}
		return
	}
	f.hedged = true
	s.hedged += n
	f.on.count.hedges.Add(1)
	for i := range ps {
		ps[i].target, ps[i].hedge, ps[i].tries = 1, true, f.tries
	}
	r.addPieces(ps)
	info := HedgedInfo{Key: r.key, Drive: f.on.Name, Length: n, After: now - f.start}
	s.later(func() { s.opt.Listener.Hedged(info) })
}

// takeSpare gets the request its second destination, if it has none yet.
func (r *request) takeSpare() bool {
	if r.spare.slot != nil {
		return true
	}
	if r.into.slot == nil {
		return false
	}
	slot := r.into.slot.arena.takeSpare()
	if slot == nil {
		return false
	}
	r.spare = r.into.in(slot)
	return true
}

// shut stops everything that has not started. It says whether this call was
// the first.
func (s *Set) shut() bool {
	s.mu.Lock()
	defer s.unlock()
	if s.closed {
		return false
	}
	s.closed = true
	for c := range s.queue {
		for r, next := s.queue[c].head, (*request)(nil); r != nil; r = next {
			next = r.next
			if r.err == nil && r.left > 0 {
				r.err = ErrClosed
			}
			s.settle(r)
		}
	}
	close(s.stop)
	for _, m := range s.drives {
		close(m.work)
	}
	return true
}

// abandon ends the requests whose reads have not returned in time.
func (s *Set) abandon() error {
	s.mu.Lock()
	defer s.unlock()
	var where []string
	for _, m := range s.drives {
		for _, f := range m.flights {
			s.force(f.req, f)
		}
		if n := len(m.flights); n > 0 {
			where = append(where, fmt.Sprintf("%d on drive %s", n, m.Name))
		}
	}
	if where == nil {
		where = []string{"a probe of a lost drive"}
	}
	var errs []error
	for _, m := range s.drives {
		errs = append(errs, m.closeFiles())
	}
	errs = append(errs, fmt.Errorf("close: %s did not return within %s: %w", strings.Join(where, ", "), s.opt.CloseWait, ErrStuck))
	return errors.Join(errs...)
}

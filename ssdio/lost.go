package ssdio

import (
	"fmt"
	"time"
)

// lose gives a drive up for now: it gets no more work, what it owned goes to
// others, and its prober starts asking.
func (s *Set) lose(m *member, cause error, now time.Duration) {
	m.lost, m.lostAt, m.cause = true, now, cause
	m.count.lost.Add(1)
	m.count.down.Store(true)
	// A drive that keeps coming and going is asked less and less often.
	if calm := 64 * s.opt.ProbeEvery; now-m.backAt > calm {
		m.wait = s.opt.ProbeEvery
	}
	info := DriveLostInfo{Drive: m.Name, Err: cause}
	s.later(func() { s.opt.Listener.DriveLost(info) })
	s.rerouteAll(m, now)
	select {
	case m.probe <- struct{}{}:
	default: // it is asking already
	}
}

// rerouteAll finds other holders for all that a lost drive owned. What only it
// holds waits while it is merely stalled, and fails otherwise.
func (s *Set) rerouteAll(m *member, now time.Duration) {
	for c := range s.queue {
		for r, next := s.queue[c].head, (*request)(nil); r != nil; r = next {
			next = r.next
			if r.owners&m.bit != 0 {
				s.reroute(r, m, now)
			}
		}
	}
}

// reroute finds other holders for what a lost drive owned of a request.
func (s *Set) reroute(r *request, m *member, now time.Duration) {
	var moved []piece
	for i := range r.pieces {
		p := &r.pieces[i]
		if r.owner(p) == m.index {
			moved = append(moved, *p)
			r.owe(p, -1)
			p.hi = p.lo
		}
	}
	r.refresh()
	for _, p := range moved {
		ps, ok := s.plan(r, p.lo, p.hi, p.avoid, now)
		if !ok {
			if r.underway(p.lo, p.hi, nil) {
				continue
			}
			s.fail(r, s.noHolder(r, p.lo, p.hi, p.tries, nil))
			return
		}
		for i := range ps {
			ps[i].tries, ps[i].target, ps[i].hedge = p.tries, p.target, p.hedge
		}
		r.addPieces(ps)
	}
}

// back takes a drive into service again.
func (s *Set) back(m *member, now time.Duration) {
	if !m.lost {
		return
	}
	m.lost, m.silent, m.stalled, m.cause, m.failures, m.backAt = false, false, false, nil, 0, now
	m.answered = now
	m.count.down.Store(false)
	info := DriveBackInfo{Drive: m.Name, Away: now - m.lostAt}
	s.later(func() { s.opt.Listener.DriveBack(info) })
}

// prober asks a lost drive whether it is there again. It has a goroutine of its
// own because the question may hang like any other read.
func (s *Set) prober(m *member) {
	defer s.done.Done()
	var w workspace
	defer w.free()
	for {
		select {
		case <-s.stop:
			return
		case <-m.probe:
		}
		for s.probeLater(m, &w) {
		}
	}
}

// probeLater waits, asks, and says whether to ask again.
func (s *Set) probeLater(m *member, w *workspace) bool {
	s.mu.Lock()
	lost, wait := m.lost, m.wait
	m.wait = min(2*m.wait, 32*s.opt.ProbeEvery)
	s.unlock()
	if !lost {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-s.stop:
		return false
	case <-timer.C:
	}
	files, err := m.answers(w)
	if err != nil {
		return true
	}
	s.mu.Lock()
	defer s.unlock()
	if s.closed || !m.lost || len(m.flights) >= m.depth {
		// Without a free worker it could not serve; the reads that hold the
		// workers bring it back themselves when they return.
		s.later(func() { _ = files.close() })
		return m.lost && !s.closed
	}
	// The old descriptors may be of a device that was pulled out.
	old := m.replace(files)
	s.later(func() { _ = m.release(old) })
	s.back(m, s.since())
	s.pump()
	return false
}

// answers opens the drive's files anew and reads the first bytes of one.
func (m *member) answers(w *workspace) (*fileSet, error) {
	if m.Marked {
		if err := m.present(); err != nil {
			return nil, err
		}
	}
	set, err := m.openAll()
	if err != nil {
		return nil, err
	}
	for _, src := range set.src {
		n := int(min(src.Size(), BlockSize))
		p, err := w.edge.Bytes(n)
		if err == nil {
			_, err = src.ReadInto(p, 0, &w.bounce)
		}
		if err != nil {
			return nil, fmt.Errorf("%w; %w", err, set.close())
		}
		break
	}
	return set, nil
}

package expert

import (
	"context"
	"errors"

	"deltafin/ssdio"
)

// poll takes in what has landed.
func (s *Store) poll() {
	for {
		select {
		case r := <-s.landed:
			s.land(&r)
		default:
			return
		}
	}
}

// land takes in one result, whoever waits for it.
func (s *Store) land(r *ssdio.Result) {
	key := s.cat.index(int(r.Key.Layer), int(r.Key.Expert))
	x := s.tenant(key)
	s.reading--
	waiters, guess, dropped := x.waiters, x.guess, x.dropped
	if r.Err == nil {
		x.buf = r.Into // may be another slot than the one it asked for
		x.batch, x.waiters, x.dropped = nil, nil, false
		for _, w := range waiters {
			w.turn.arrived(w.use)
		}
		if len(waiters) == 0 && (dropped || !guess) {
			s.leave(key)
			s.issue()
		}
		return
	}
	s.policy.Remove(key)
	s.cached.Store(int64(s.policy.Len()))
	s.forget(key)
	if r.Stuck {
		s.stuck++ // the slot is lost to a read that may still write into it
	} else {
		r.Into.Slot().Free()
	}
	// A guess costs what came of it before it was given up.
	if guess && r.Arrived > 0 {
		s.guesses.lost(r.Arrived)
		c := s.countsOf(key)
		c.unused.Add(1)
		c.wasted.Add(r.Arrived)
	}
	for _, w := range waiters {
		if dropped && errors.Is(r.Err, context.Canceled) {
			w.turn.retry(w.use) // it was given up before somebody asked for it
			continue
		}
		w.turn.failed(w.use, newError(r.Key, r.Err))
	}
	s.issue()
}

// leave decides about an expert in memory that nobody needs now: if the cache does
// not want it, its slot serves the next read.
func (s *Store) leave(key int) {
	if s.policy.Pinned(key) {
		return
	}
	if x := s.tenant(key); x.guess {
		// A wrong guess is offered as it is: it stays if it was used more than the
		// coldest, and may turn out right later.
		x.guess, x.charged = false, true
		s.guesses.lost(int64(len(x.buf.Bytes())))
		if victim, _ := s.policy.Offer(key); victim >= 0 {
			s.free(victim)
		}
		s.cached.Store(int64(s.policy.Len()))
	}
	if !s.policy.Cached(key) {
		s.free(key)
	}
}

// issue sends reads for what open layers miss while there are slots, oldest layer
// first.
func (s *Store) issue() {
	for _, t := range s.turns {
		t.issue()
	}
}

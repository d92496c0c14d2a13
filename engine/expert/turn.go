package expert

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"deltafin/ssdio"
)

// A turn is the open layer: what it needs and how far that is.
type turn struct {
	open    bool
	ctx     context.Context
	layer   int
	uses    []need
	missing []int32  // uses that were not in memory, most wanted first
	issued  int      // how many of these have a slot and a read
	ready   []int32  // uses that can be handed out, in this order
	given   int      // how many of these were
	flights []flight // reads that have not all come back
	cases   []reflect.SelectCase
}

// A need is one expert of the open layer.
type need struct {
	key   int32
	rows  int32
	state uint8
}

const (
	absent  = iota // waits for a slot
	reading        // a read is under way
	ready          // in memory, not handed out yet
	inUse          // handed out
	done           // given back, or failed
)

// A flight is reads that went out together.
type flight struct {
	batch   *ssdio.Batch
	results <-chan ssdio.Result
	uses    []int32 // by index of the batch
	left    int
}

func (t *turn) start(ctx context.Context, layer int) {
	t.open, t.ctx, t.layer = true, ctx, layer
	t.uses, t.flights = t.uses[:0], t.flights[:0]
	t.missing, t.issued = t.missing[:0], 0
	t.ready, t.given = t.ready[:0], 0
}

// Next hands out an expert of the open layer whose bytes are in memory: its index
// in the list given to Begin, and the bytes, valid until Done. Those that were
// there come first, then the others as they land. If none is there, it waits, or
// with wait unset returns at once. ok is false if none is there or none can come:
// all were handed out, or the rest needs a slot that Done gives back. An error is
// an *Error; the layer can then only be ended.
func (s *Store) Next(wait bool) (i int, data []byte, ok bool, err error) {
	t := &s.turn
	if t.given == len(t.ready) {
		if err := s.poll(); err != nil {
			return 0, nil, false, err
		}
	}
	if t.given == len(t.ready) && wait && len(t.flights) > 0 {
		start := time.Now()
		k, r := s.await()
		s.counts[t.layer].stallNS.Add(int64(time.Since(start)))
		if err := s.land(k, &r); err != nil {
			return 0, nil, false, err
		}
	}
	if t.given == len(t.ready) {
		return 0, nil, false, s.starved()
	}
	i = int(t.ready[t.given])
	t.given++
	u := &t.uses[i]
	u.state = inUse
	return i, s.tenant(int(u.key)).buf.Bytes(), true, nil
}

// starved is an error if experts wait for slots that nobody will give back: reads
// that are stuck in the system hold them.
func (s *Store) starved() error {
	t := &s.turn
	if t.issued == len(t.missing) || len(t.flights) > 0 {
		return nil
	}
	for i := range t.uses {
		if t.uses[i].state == inUse {
			return nil
		}
	}
	u := &t.uses[t.missing[t.issued]]
	return newError(s.cat.model.Objects[u.key].Key, fmt.Errorf("%d of %d slots: %w", s.stuck, s.slots, ssdio.ErrStuck))
}

// poll takes in what has landed.
func (s *Store) poll() error {
	t := &s.turn
	for k := 0; k < len(t.flights); {
		select {
		case r := <-t.flights[k].results:
			if err := s.land(k, &r); err != nil {
				return err
			}
		default:
			k++
		}
	}
	return nil
}

// await waits for the next result of any flight, which is its number.
func (s *Store) await() (int, ssdio.Result) {
	t := &s.turn
	if len(t.flights) == 1 {
		return 0, <-t.flights[0].results
	}
	t.cases = t.cases[:0]
	for _, f := range t.flights {
		t.cases = append(t.cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(f.results)})
	}
	k, v, _ := reflect.Select(t.cases)
	return k, v.Interface().(ssdio.Result)
}

// land takes in one result of flight k. Every request gets exactly one, and a
// flight is dropped with its last, so no closed channel is ever received from.
func (s *Store) land(k int, r *ssdio.Result) error {
	t := &s.turn
	f := &t.flights[k]
	i := f.uses[r.Index]
	u := &t.uses[i]
	if f.left--; f.left == 0 {
		t.flights = append(t.flights[:k], t.flights[k+1:]...)
	}
	key := int(u.key)
	if r.Err != nil {
		u.state = done
		s.policy.Remove(key)
		s.policy.Unpin(key)
		s.forget(key)
		if r.Stuck {
			s.stuck++ // the slot is lost to a read that may still write into it
		} else {
			r.Into.Slot().Free()
		}
		s.cached.Store(int64(s.policy.Len()))
		return newError(r.Key, r.Err)
	}
	s.tenant(key).buf = r.Into // may be another slot than the one it asked for
	u.state = ready
	t.ready = append(t.ready, i)
	return nil
}

// Done gives back an expert that Next handed out. If it does not stay in the
// cache, its slot serves the next read.
func (s *Store) Done(i int) {
	t := &s.turn
	u := &t.uses[i]
	if u.state != inUse {
		panic("expert: Done for an expert that is not in use")
	}
	if x := s.tenant(int(u.key)); !x.used {
		x.used = true
		s.counts[t.layer].useful.Add(int64(len(x.buf.Bytes())))
	}
	s.settle(u)
	if t.issued < len(t.missing) {
		s.issue()
	}
}

// settle ends the need for an expert that is in memory.
func (s *Store) settle(u *need) {
	u.state = done
	key := int(u.key)
	s.policy.Unpin(key)
	if !s.policy.Cached(key) {
		s.free(key)
	}
}

// End closes the layer. After an error or without having taken everything it
// cancels what has not arrived, waits for what cannot be cancelled, and leaves
// the store fit for the next Begin.
func (s *Store) End() {
	t := &s.turn
	if !t.open {
		return
	}
	for _, f := range t.flights {
		for i, at := range f.uses {
			if t.uses[at].state == reading {
				f.batch.Cancel(i)
			}
		}
	}
	for len(t.flights) > 0 {
		k, r := s.await()
		_ = s.land(k, &r) // the caller gave up: why no longer matters
	}
	for i := range t.uses {
		u := &t.uses[i]
		switch u.state {
		case absent:
			s.policy.Unpin(int(u.key))
			u.state = done
		case ready, inUse:
			s.settle(u)
		}
	}
	t.open, t.ctx = false, nil
}

package trunk

import (
	"context"
	"errors"

	"deltafin/ssdio"
)

// A loan is a streamed layer in a buffer, or on its way there.
type loan struct {
	unit  int
	slot  *ssdio.Slot
	parts [][]byte
	batch *ssdio.Batch
	got   int64 // bytes that have landed
	over  bool  // every read has ended
	err   error // the first that went wrong
	stuck bool  // a read may still write into the buffer
}

// errNoBuffer: reads that never came back have taken all buffers.
var errNoBuffer = errors.New("every buffer is held by a read that does not come back: open the model again")

// Layer waits until the weights of a layer are in memory; then Matrix gives them until
// Done. It must follow the Done of the layer before. The error is the cause of ctx or
// an *Error, after which any layer may be asked for.
func (s *Store) Layer(ctx context.Context, layer int) error {
	if layer == s.cat.Head() {
		return nil
	}
	// The first streamed layer has the time of those before it that stay.
	s.expect(max(layer, s.plan.Resident))
	if s.resident(layer) {
		return nil
	}
	if len(s.queue) == 0 {
		return s.cat.newError(layer, errors.Join(ssdio.ErrStuck, errNoBuffer))
	}
	l := s.queue[0]
	if s.poll(l) && l.err != nil && !l.stuck {
		s.ask(l) // it went wrong when nobody waited; what was wrong may be over
	}
	if err := s.wait(ctx, l); err != nil {
		return err
	}
	if l.err != nil {
		err := s.cat.newError(layer, l.err)
		s.drop()
		return err
	}
	return nil
}

// expect has a streamed layer, and those that follow it, asked for.
func (s *Store) expect(layer int) {
	if s.ring == nil {
		return
	}
	if len(s.queue) > 0 && s.queue[0].unit != layer {
		s.drop() // an earlier pass ended too soon
	}
	if len(s.queue) == 0 {
		s.next = layer
	}
	s.fill()
}

// Done says that a layer's weights are no longer used.
func (s *Store) Done(layer int) {
	if s.resident(layer) || len(s.queue) == 0 || s.queue[0].unit != layer {
		return
	}
	l := s.queue[0]
	s.queue = append(s.queue[:0], s.queue[1:]...)
	s.free = append(s.free, l.slot)
	s.counts.layers.Add(1)
	s.fill()
}

// fill asks for the next layers as long as there are buffers: behind the last layer
// come the first streamed ones of the next pass.
func (s *Store) fill() {
	for len(s.free) > 0 {
		l := &loan{unit: s.next, slot: s.free[len(s.free)-1]}
		s.free = s.free[:len(s.free)-1]
		l.parts = s.lay(l.unit, l.slot.Buffer(0, int(s.plan.Buffer)).Bytes())
		s.ask(l)
		s.queue = append(s.queue, l)
		if s.next++; s.next == s.cat.Head() {
			s.next = s.plan.Resident
		}
	}
}

// ask sends the reads of a loan. They belong to no pass: what one does not use any
// more the next one does.
func (s *Store) ask(l *loan) {
	s.counts.wasted.Add(l.got) // of an earlier try
	l.got, l.over, l.err = 0, false, nil
	l.batch = s.set.Read(context.Background(), ssdio.Trunk, s.requests(l.unit, l.parts))
}

// poll takes in what has landed and says whether that is all.
func (s *Store) poll(l *loan) bool {
	for !l.over {
		select {
		case r, more := <-l.batch.Results():
			s.land(l, r, more)
		default:
			return false
		}
	}
	return true
}

// wait waits for the rest, now with the right of what the arithmetic waits for.
func (s *Store) wait(ctx context.Context, l *loan) error {
	if s.poll(l) {
		return nil
	}
	for i := range l.parts {
		l.batch.Promote(i, ssdio.Demand)
	}
	start := s.now()
	s.counts.late.Add(1)
	defer func() { s.counts.stall.Add(int64(s.now().Sub(start))) }()
	for !l.over {
		select {
		case r, more := <-l.batch.Results():
			s.land(l, r, more)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// land takes in one result, or the end of them.
func (s *Store) land(l *loan, r ssdio.Result, more bool) {
	switch {
	case !more:
		l.over = true
	case r.Err != nil:
		l.stuck = l.stuck || r.Stuck
		if l.err == nil {
			l.err = r.Err
		}
	default:
		n := int64(len(r.Into.Bytes()))
		l.got += n
		s.counts.read.Add(n)
	}
}

// drop takes back all reads and what they brought. A buffer that a stuck read may
// still write into is not used again.
func (s *Store) drop() {
	for _, l := range s.queue {
		for i := range l.parts {
			l.batch.Cancel(i)
		}
	}
	for _, l := range s.queue {
		for !l.over {
			r, more := <-l.batch.Results()
			s.land(l, r, more)
		}
		s.counts.wasted.Add(l.got)
		if !l.stuck {
			s.free = append(s.free, l.slot)
		}
	}
	s.queue = s.queue[:0]
}

package expert

import (
	"context"
	"fmt"
	"slices"

	"deltafin/ssdio"
)

// A Turn is one user of a Store: it opens one layer after the other. Several turns
// share the slots, the cache and what is being read. A Turn serves one goroutine.
type Turn struct {
	s      *Store
	around func(wait func())

	open    bool
	ctx     context.Context
	layer   int
	uses    []need
	index   map[int32]int32 // key to use
	missing []int32         // uses that wait for a slot, most wanted first
	ready   []int32         // uses that can be handed out, in this order
	given   int             // how many of these were
	waiting int             // uses whose read is under way
	inUse   int
	err     error         // why the layer cannot be completed
	wake    chan struct{} // something of the above changed

	guess guess
}

// A need is one expert of the open layer.
type need struct {
	key   int32
	rows  int32
	state uint8
	ahead bool // a read was under way, or done, before it was asked for
	late  bool // the arithmetic waited while that read was under way
}

const (
	absent  = iota // waits for a slot
	reading        // a read is under way
	ready          // in memory, not handed out yet
	inUse          // handed out
	done           // given back, or failed
)

// NewTurn returns a user of the store. around, if not nil, is called with what
// waits for a read, so that the caller can do something else meanwhile.
func (s *Store) NewTurn(around func(wait func())) *Turn {
	if around == nil {
		around = func(wait func()) { wait() }
	}
	return &Turn{s: s, around: around, index: map[int32]int32{}, wake: make(chan struct{}, 1), guess: guess{layer: -1}}
}

// Begin opens a layer: it names the experts that are needed, the most wanted
// first and none twice, and sends reads for those that are not in memory as far
// as there are slots; the others follow as slots are given back. When ctx ends,
// the layer can only be ended. Each Begin is followed by an End, whatever it
// returned.
func (t *Turn) Begin(ctx context.Context, layer int, want []Want) error {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.open {
		return fmt.Errorf("layer %d: layer %d: %w", layer, t.layer, ErrOpen)
	}
	s.poll()
	t.start(ctx, layer)
	sum := 0.0
	for i, w := range want {
		key := s.cat.index(layer, int(w.Expert))
		if key < 0 {
			return fmt.Errorf("layer %d expert %d: %w", layer, w.Expert, ErrUnknown)
		}
		if _, twice := t.index[int32(key)]; twice {
			return fmt.Errorf("layer %d expert %d is named twice", layer, w.Expert)
		}
		sum += weight(int(w.Rows))
		t.index[int32(key)] = int32(i)
		t.uses = append(t.uses, need{key: int32(key), rows: w.Rows})
		s.policy.Pin(key)
	}
	t.judge()
	if sum == float64(len(want)) { // every expert for one row: no prompt
		s.setAside(0)
	}
	t.classify()
	t.dropGuesses() // before the reads: it makes room
	t.issue()
	// Time passes with what is counted: a token of one pass is one unit.
	s.policy.Age(sum / float64(s.cat.topK) / float64(s.cat.MoELayers()) / s.halfLife)
	return nil
}

func (t *Turn) start(ctx context.Context, layer int) {
	t.open, t.ctx, t.layer, t.err = true, ctx, layer, nil
	t.uses, t.missing = t.uses[:0], t.missing[:0]
	t.ready, t.given, t.waiting, t.inUse = t.ready[:0], 0, 0, 0
	clear(t.index)
	select {
	case <-t.wake:
	default:
	}
	t.s.turns = append(t.s.turns, t)
}

// Next hands out an expert of the open layer whose bytes are in memory: its index
// in the list given to Begin, and the bytes, valid until Done. Those that were
// there come first, then the others as they land. If none is there, it waits, or
// with wait unset returns at once. ok is false if none is there or none can come:
// all were handed out, or the rest needs a slot that Done gives back. An error is
// an *Error; the layer can then only be ended.
func (t *Turn) Next(wait bool) (i int, data []byte, ok bool, err error) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	s.poll()
	for wait && t.err == nil && t.given == len(t.ready) && t.coming() {
		t.await()
	}
	if t.err != nil {
		return 0, nil, false, t.err
	}
	if t.given == len(t.ready) {
		return 0, nil, false, t.starved()
	}
	i = int(t.ready[t.given])
	t.given++
	t.inUse++
	u := &t.uses[i]
	u.state = inUse
	switch c := &s.counts[t.layer]; {
	case u.late:
		c.late.Add(1)
	case u.ahead:
		c.inTime.Add(1)
	}
	return i, s.tenant(int(u.key)).buf.Bytes(), true, nil
}

// coming says whether waiting makes sense: a read is under way, or slots are held
// by others who will give them back without this turn's doing.
func (t *Turn) coming() bool {
	if t.waiting > 0 {
		return true
	}
	return t.inUse == 0 && len(t.missing) > 0 && t.s.busy(t)
}

// busy says whether slots will come free without this turn's doing.
func (s *Store) busy(t *Turn) bool {
	return s.reading > 0 || slices.ContainsFunc(s.turns, func(o *Turn) bool { return o != t && o.holds() }) || s.guesses.elsewhere(t)
}

// holds says whether a turn has slots that it will give back.
func (t *Turn) holds() bool { return t.waiting > 0 || t.inUse > 0 || t.given < len(t.ready) }

// await waits until something lands or changes. It is called with the lock held,
// and gives it up meanwhile.
func (t *Turn) await() {
	s := t.s
	for i := range t.uses {
		if u := &t.uses[i]; u.state == reading && u.ahead {
			u.late = true
		}
	}
	var r ssdio.Result
	got, over := false, false
	s.mu.Unlock()
	start := s.now()
	end := start
	t.around(func() {
		select {
		case r = <-s.landed:
			got = true
		case <-t.wake:
		case <-t.ctx.Done():
			over = true
		}
		end = s.now()
	})
	s.mu.Lock()
	s.counts[t.layer].stallNS.Add(int64(end.Sub(start)))
	switch {
	case got:
		s.land(&r)
	case over && t.err == nil:
		t.err = newError(s.cat.model.Objects[t.uses[t.pending()].key].Key, context.Cause(t.ctx))
	}
}

// pending is a use that has not arrived, for messages.
func (t *Turn) pending() int {
	for i := range t.uses {
		if s := t.uses[i].state; s == absent || s == reading {
			return i
		}
	}
	return 0
}

// starved is an error if experts wait for slots that nobody will give back: reads
// that are stuck in the system hold them.
func (t *Turn) starved() error {
	s := t.s
	if len(t.missing) == 0 || t.waiting > 0 || t.inUse > 0 || s.busy(t) {
		return nil
	}
	u := &t.uses[t.missing[0]]
	return newError(s.cat.model.Objects[u.key].Key, fmt.Errorf("%d of %d slots: %w", s.stuck, s.slots, ssdio.ErrStuck))
}

// Done gives back an expert that Next handed out. If it does not stay in the
// cache, its slot serves the next read.
func (t *Turn) Done(i int) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	u := &t.uses[i]
	if u.state != inUse {
		panic("expert: Done for an expert that is not in use")
	}
	t.inUse--
	if x := s.tenant(int(u.key)); !x.used {
		x.used = true
		n := int64(len(x.buf.Bytes()))
		s.counts[t.layer].useful.Add(n)
		s.guesses.paid(n, x.charged)
		x.charged = false
	}
	t.settle(u)
	s.shed()
	s.issue()
	for _, o := range s.turns {
		if o != t {
			o.signal() // it may have waited for a slot
		}
	}
}

// settle ends the need for an expert that is in memory.
func (t *Turn) settle(u *need) {
	u.state = done
	t.s.policy.Unpin(int(u.key))
	t.s.leave(int(u.key))
}

// End closes the layer, and takes back a guess that no layer was opened for. After
// an error or without having taken everything it cancels what has not arrived,
// waits for what cannot be cancelled, and leaves the store fit for the next Begin.
func (t *Turn) End() {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	t.dropGuesses()
	if !t.open {
		return
	}
	for i := range t.uses {
		if t.uses[i].state == reading {
			t.abandon(int32(i))
		}
	}
	t.err = errEnded // nothing more is issued
	for t.waiting > 0 {
		s.mu.Unlock()
		select {
		case r := <-s.landed:
			s.mu.Lock()
			s.land(&r)
		case <-t.wake:
			s.mu.Lock()
		}
	}
	for i := range t.uses {
		u := &t.uses[i]
		switch u.state {
		case absent:
			s.policy.Unpin(int(u.key))
			u.state = done
			if at := s.where[u.key]; at >= 0 && s.held[at].batch == nil {
				s.leave(int(u.key)) // another turn left it here for this one
			}
		case ready, inUse:
			t.settle(u)
		}
	}
	if k := slices.Index(s.turns, t); k >= 0 {
		s.turns = slices.Delete(s.turns, k, k+1)
	}
	t.open, t.ctx = false, nil
	s.shed()
	s.issue()
	for _, o := range s.turns {
		o.signal()
	}
}

// abandon gives up the wait for a read: the last who waits cancels it and sees it
// come back, others keep it.
func (t *Turn) abandon(i int32) {
	x := t.s.tenant(int(t.uses[i].key))
	if len(x.waiters) == 1 {
		x.dropped = true
		x.batch.Cancel(x.index)
		return
	}
	x.waiters = slices.DeleteFunc(x.waiters, func(w waiter) bool { return w.turn == t })
	t.waiting--
	t.uses[i].state = done
	t.s.policy.Unpin(int(t.uses[i].key))
}

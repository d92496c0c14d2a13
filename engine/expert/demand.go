package expert

import "deltafin/ssdio"

// classify finds what is there, what is coming and what is missing.
func (t *Turn) classify() {
	s, hits := t.s, 0
	for i := range t.uses {
		u := &t.uses[i]
		key := int(u.key)
		if s.where[key] < 0 {
			t.missing = append(t.missing, int32(i))
			continue
		}
		x := s.tenant(key)
		if x.batch != nil {
			u.state, u.ahead = reading, true
			x.waiters = append(x.waiters, waiter{t, int32(i)})
			x.batch.Promote(x.index, ssdio.Demand)
			t.waiting++
			continue
		}
		u.state, u.ahead = ready, x.guess
		t.ready = append(t.ready, int32(i))
		if !u.ahead {
			hits++
		}
	}
	s.counts[t.layer].hit.Add(int64(hits))
	// Counted after all were looked at: counting may reorder who is thrown out.
	for i := range t.uses {
		u := &t.uses[i]
		key := int(u.key)
		switch {
		case u.state == absent:
		case s.tenant(key).guess:
			s.tenant(key).guess = false
			s.admit(key, u.rows)
		default:
			s.policy.Count(key, weight(int(u.rows)))
		}
	}
}

// issue sends reads for missing experts while there are slots. Each is offered to
// the cache now: who has to go for it gives it the slot.
func (t *Turn) issue() {
	s := t.s
	if t.err != nil || len(t.missing) == 0 {
		return
	}
	var keys []int32
	left, full := t.missing[:0], false
	for _, i := range t.missing {
		u := &t.uses[i]
		key := int(u.key)
		if s.where[key] >= 0 {
			// Another turn has it, or has asked for it, since this one did. It may
			// hold the very slot that others here wait for.
			t.join(i)
			continue
		}
		if full = full || !s.makeRoom(key); full {
			left = append(left, i)
			continue
		}
		s.policy.Count(key, weight(int(u.rows)))
		t.waiting++
		u.state = reading
		s.tenant(key).waiters = append(s.tenant(key).waiters, waiter{t, i})
		keys = append(keys, u.key)
	}
	t.missing = left
	s.cached.Store(int64(s.policy.Len()))
	s.counts[t.layer].missed.Add(int64(len(keys)))
	s.read(ssdio.Demand, keys)
}

// makeRoom gives a missing expert a slot, that of a colder one if the cache wants
// it. It is false if there is none.
func (s *Store) makeRoom(key int) bool {
	victim, _ := s.policy.Offer(key)
	if victim >= 0 {
		s.free(victim)
	}
	if s.take(key) {
		return true
	}
	s.policy.Remove(key)
	return false
}

// join waits for, or takes, what another turn brought since this one found it
// missing.
func (t *Turn) join(i int32) {
	u := &t.uses[i]
	x := t.s.tenant(int(u.key))
	u.ahead = true
	if x.guess {
		x.guess = false
		t.s.admit(int(u.key), u.rows)
	} else {
		t.s.policy.Count(int(u.key), weight(int(u.rows)))
	}
	if x.batch == nil {
		u.state = ready
		t.ready = append(t.ready, i)
		return
	}
	u.state = reading
	x.waiters = append(x.waiters, waiter{t, i})
	x.batch.Promote(x.index, ssdio.Demand)
	t.waiting++
}

// arrived, retry and failed tell what became of a read that a use waits for.
func (t *Turn) arrived(i int32) {
	t.uses[i].state = ready
	t.ready = append(t.ready, i)
	t.waiting--
	t.signal()
}

func (t *Turn) retry(i int32) {
	u := &t.uses[i]
	u.state, u.ahead, u.late = absent, false, false // a new read, of which nothing is known yet
	t.missing = append(t.missing, i)
	t.waiting--
	t.signal()
}

func (t *Turn) failed(i int32, err error) {
	t.uses[i].state = done
	t.s.policy.Unpin(int(t.uses[i].key))
	t.waiting--
	if t.err == nil {
		t.err = err
	}
	t.signal()
}

func (t *Turn) signal() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}

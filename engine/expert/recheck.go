package expert

import (
	"context"

	"deltafin/ssdio"
)

// Recheck compares every cached expert with its checksums, as it is in memory now, and
// throws out those that differ: they are read again when they are needed. It gives
// their keys. Layers may be open meanwhile; what one of them uses is thrown out when it
// is given back. It takes a second for some ten gigabytes, and ends early with ctx.
func (s *Store) Recheck(ctx context.Context) (changed []ssdio.Key, err error) {
	for key := range s.cat.Experts() {
		if err := ctx.Err(); err != nil {
			return changed, context.Cause(ctx)
		}
		data := s.borrow(key)
		if data == nil {
			continue
		}
		block, err := s.layout.Check(s.cat.model.Objects[key].Key, data)
		s.giveBack(key, block >= 0)
		if err != nil {
			return changed, err
		}
		if block >= 0 {
			changed = append(changed, s.cat.model.Objects[key].Key)
		}
	}
	return changed, nil
}

// borrow pins a cached expert and gives its bytes, nil if it is not in memory.
func (s *Store) borrow(key int) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.where[key]; at < 0 || s.held[at].batch != nil || !s.policy.Cached(key) {
		return nil
	}
	s.policy.Pin(key)
	return s.tenant(key).buf.Bytes()
}

// giveBack undoes borrow.
func (s *Store) giveBack(key int, changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.policy.Unpin(key)
	if changed {
		s.policy.Remove(key)
		s.cached.Store(int64(s.policy.Len()))
		s.leave(key) // who uses it frees it later
	}
	s.shed()
	s.issue()
	for _, t := range s.turns {
		t.signal()
	}
}

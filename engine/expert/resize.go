package expert

import "deltafin/ssdio"

// SlotBytes is what one expert takes of a store's memory.
func (c *Catalog) SlotBytes() int64 { return int64(ssdio.SlotBytes(int(c.largest))) }

// Spares is the number of slots of a store besides those of experts, for so many
// drives.
func Spares(drives int) int { return sparesPerDrive * drives }

// parkAtOnce is how many slots are parked before the lock is given up: some tens
// of milliseconds for experts of 17.5 MB.
const parkAtOnce = 8

// Resize changes the memory for experts to at most so many bytes, slack and spares
// included, between the least that works and what the store was made with. A
// smaller one takes effect at once for what is kept: the coldest experts are thrown
// out, and their memory is given back to the system. Slots that an open layer uses
// follow as it gives them back. It may be called at any time, and never changes a
// result. The error is a *BudgetError, and then nothing has changed, or the
// system's.
func (s *Store) Resize(bytes int64) error {
	stride := s.arena.Stride()
	n := min(bytes/stride-int64(s.spare), int64(s.most))
	if n < int64(s.cat.topK) {
		return &BudgetError{Budget: bytes, Need: s.Least(), Slot: stride, TopK: s.cat.topK, Spare: s.spare}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slots = int(n)
	s.policy.SetLimit(s.keeps())
	s.gauge()
	if _, err := s.arena.Unpark(s.slots - (s.most - s.arena.Parked())); err != nil {
		return err
	}
	for {
		// In pieces, so that a layer need not wait for the whole.
		parked, err := s.trim()
		if err != nil || parked < parkAtOnce {
			return err
		}
		s.mu.Unlock()
		s.mu.Lock()
	}
}

// Least is the smallest size that Resize takes, in bytes.
func (s *Store) Least() int64 { return int64(s.cat.topK+s.spare) * s.arena.Stride() }

// gauge makes the sizes visible to Stats.
func (s *Store) gauge() {
	s.limit.Store(int64(s.policy.Limit()))
	s.usable.Store(int64(s.slots))
	s.bytes.Store(int64(s.slots+s.spare) * s.arena.Stride())
}

// trim throws out what the cache may no longer hold and parks slots that are free
// and above the store's size, some at a time. All throwing out comes before any
// parking: parking takes only what is above the size, so that an open layer finds
// as many slots as the size promises.
func (s *Store) trim() (parked int, err error) {
	s.evict()
	return s.arena.Park(min(s.most-s.arena.Parked()-s.slots, parkAtOnce))
}

// evict throws out what the cache may no longer hold.
func (s *Store) evict() {
	for s.policy.Len() > s.policy.Limit() {
		key, ok := s.policy.Coldest()
		if !ok {
			break // an open layer needs all of them
		}
		s.policy.Remove(key)
		s.free(key)
	}
	s.cached.Store(int64(s.policy.Len()))
}

// shed is trim for slots that an open layer has just given back. A system that does
// not take its memory leaves the slot in use, and is asked again with the next.
func (s *Store) shed() {
	if s.policy.Len() > s.policy.Limit() || s.most-s.arena.Parked() > s.slots {
		_, _ = s.trim()
	}
}

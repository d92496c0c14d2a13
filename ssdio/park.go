package ssdio

import (
	"cmp"
	"fmt"
	"slices"
)

// SlotBytes is what a slot for size bytes takes of an arena: one unit of slack lets
// the object start at any residue.
func SlotBytes(size int) int { return (size+maxAlign-1)&^(maxAlign-1) + maxAlign }

// Stride is the bytes that one slot takes of the arena.
func (a *Arena) Stride() int64 { return int64(a.stride) }

// Parked is the number of slots that are out of use.
func (a *Arena) Parked() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.parked)
}

// Park takes up to n free slots out of use and gives their memory back to the
// system, while the addresses stay reserved. It returns how many it took: fewer
// than n if fewer are free. An error is the system's; what could not be given back
// stays in use.
//
// It costs about a millisecond for each 10 MB that had been touched, during which
// Get waits: park many slots in several calls.
func (a *Arena) Park(n int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || n <= 0 {
		return 0, nil
	}
	// The hindmost go first and Get takes the foremost, so that neighbours end up
	// parked together: a large page is only free once all slots in it are.
	slices.SortFunc(a.free, func(x, y *Slot) int { return cmp.Compare(y.index, x.index) })
	n = min(n, len(a.free))
	for i, s := range a.free[:n] {
		if err := giveBack(a.slotMem(s)); err != nil {
			a.free = slices.Delete(a.free, 0, i)
			return i, fmt.Errorf("slot %d of the arena: %w", s.index, err)
		}
		a.parked = append(a.parked, s)
	}
	a.free = slices.Delete(a.free, 0, n)
	return n, nil
}

// Unpark takes up to n parked slots into use again and returns how many. Their
// content is lost. An error is the system's refusal to lend memory for them.
func (a *Arena) Unpark(n int) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return 0, nil
	}
	n = min(max(n, 0), len(a.parked))
	for i := range n {
		s := a.parked[len(a.parked)-1]
		if err := takeAgain(a.slotMem(s)); err != nil {
			return i, fmt.Errorf("slot %d of the arena: %w", s.index, err)
		}
		a.parked = a.parked[:len(a.parked)-1]
		a.free = append(a.free, s)
	}
	return n, nil
}

func (a *Arena) slotMem(s *Slot) []byte {
	return a.mem[s.index*a.stride : (s.index+1)*a.stride]
}

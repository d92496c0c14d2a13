package ssdio

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

// hugePage is the alignment of an arena's memory: one large page of x86 and of
// arm64 with 4 KiB granules. With large pages a direct read pins 512 times
// fewer pages, and kernels over the weights miss the TLB less.
const hugePage = 2 << 20

// An Arena is memory outside the Go heap, divided into slots of one size. The
// garbage collector never sees it: a hundred gigabytes of weights cost it
// nothing. An Arena is safe for concurrent use.
type Arena struct {
	mem    []byte // from the first huge page boundary on
	mapped []byte // what unmap wants
	size   int    // bytes that one slot can hold
	stride int    // from slot to slot, a multiple of maxAlign

	mu     sync.Mutex // guards below
	free   []*Slot
	spare  []*Slot
	parked []*Slot // out of use, without memory
	spares int     // how many spares there should be
	closed bool
	used   int // slots that callers hold
	total  int
}

// A Slot is one place of an arena.
type Slot struct {
	arena *Arena
	index int
	held  atomic.Bool // by a caller of Get
}

// A Buffer is where a read lands: a part of a slot, or fixed memory.
type Buffer struct {
	mem  []byte
	slot *Slot
}

// NewArena maps memory for slots+spare slots of at least size bytes each. Spare
// slots are never handed out by Get: a Set exchanges them for slots whose read
// is stuck, so that the request can complete elsewhere. Two per drive are
// plenty; none means that slow reads are never hedged.
//
// The memory is reserved, not touched: pages come when first written.
func NewArena(size, slots, spare int) (*Arena, error) {
	return newArena(size, slots, spare, mapMemory)
}

func newArena(size, slots, spare int, take func(int) ([]byte, error)) (*Arena, error) {
	if size <= 0 || slots <= 0 || spare < 0 {
		return nil, fmt.Errorf("arena of %d slots and %d spares of %d bytes: %w", slots, spare, size, ErrRange)
	}
	stride := SlotBytes(size)
	total := slots + spare
	if total > (1<<62)/stride {
		return nil, fmt.Errorf("arena of %d slots of %d bytes does not fit an address space: %w", total, size, ErrRange)
	}
	mapped, err := take(total*stride + hugePage)
	if err != nil {
		return nil, fmt.Errorf("arena of %d slots of %d bytes: %w", total, size, err)
	}
	skip := int(-addressOf(mapped) & (hugePage - 1))
	a := &Arena{
		mem: mapped[skip : skip+total*stride], mapped: mapped,
		size: size, stride: stride, spares: spare, total: total,
	}
	adviseHuge(a.mem)
	// Handed out from the front on, so that a part-used arena touches the
	// fewest pages.
	for i := total - 1; i >= 0; i-- {
		s := &Slot{arena: a, index: i}
		if i >= slots {
			a.spare = append(a.spare, s)
		} else {
			a.free = append(a.free, s)
		}
	}
	return a, nil
}

// SlotSize is the number of bytes one slot can hold.
func (a *Arena) SlotSize() int { return a.size }

// Bytes is the size of the whole arena in bytes, slack and spares included.
func (a *Arena) Bytes() int64 { return int64(len(a.mem)) }

// Populate writes to every page of the arena that no slot is held of, so that
// the system hands out the memory now and not during the first reads, where it
// costs several times as much (a page fault in the middle of a pinned read, and
// on a virtual machine a second one in the host). It must be called before the
// first Get.
func (a *Arena) Populate() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.used > 0 || a.closed {
		return
	}
	for at := 0; at < len(a.mem); at += maxAlign {
		a.mem[at] = 0
	}
}

// Get takes a free slot, or returns nil if there is none.
func (a *Arena) Get() *Slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.free) == 0 {
		return nil
	}
	s := a.free[len(a.free)-1]
	a.free = a.free[:len(a.free)-1]
	a.used++
	s.held.Store(true)
	return s
}

// Used is how many slots callers hold and Out how many spares are missing
// because a read that nobody waits for is still in flight into them.
func (a *Arena) Used() (used, out int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.used, a.total - a.used - len(a.free) - len(a.spare) - len(a.parked)
}

// Free gives a slot back to its arena. No read may be in flight into it; freeing
// twice is a mistake of the program and panics.
func (s *Slot) Free() {
	if !s.held.CompareAndSwap(true, false) {
		panic("ssdio: slot freed twice")
	}
	a := s.arena
	a.mu.Lock()
	defer a.mu.Unlock()
	a.used--
	a.free = append(a.free, s)
}

// takeSpare takes a spare slot, nil if there is none.
func (a *Arena) takeSpare() *Slot {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || len(a.spare) == 0 {
		return nil
	}
	s := a.spare[len(a.spare)-1]
	a.spare = a.spare[:len(a.spare)-1]
	return s
}

// putSpare returns a slot that no read is in flight into and nobody holds.
func (a *Arena) putSpare(s *Slot) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.spare = append(a.spare, s)
}

// exchange makes the spare the caller's in place of the slot it held. The old
// slot is nobody's until putSpare.
func (a *Arena) exchange(old, spare *Slot) {
	old.held.Store(false)
	spare.held.Store(true)
}

// Close unmaps the memory. It refuses, and leaves everything mapped, while
// slots are held or a read is still in flight into one.
func (a *Arena) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	if out := a.total - len(a.free) - len(a.spare) - len(a.parked); out != 0 {
		return fmt.Errorf("arena has %d of %d slots in use: %w", out, a.total, ErrArenaBusy)
	}
	a.closed = true
	mapped := a.mapped
	a.mem, a.mapped, a.free, a.spare, a.parked = nil, nil, nil, nil, nil
	return unmapMemory(mapped)
}

// ErrArenaBusy: an arena cannot be unmapped while its slots are in use.
var ErrArenaBusy = errors.New("arena is in use")

// Buffer is the part of the slot that holds n bytes and starts residue bytes
// after a page boundary. With the residue of the object ([Layout.Residue]) its
// reads need no copy. residue is 0 to 4095, n at most the arena's slot size.
func (s *Slot) Buffer(residue, n int) Buffer {
	if residue < 0 || residue >= residueUnit || n < 0 || n > s.arena.size {
		panic(fmt.Sprintf("ssdio: buffer of %d bytes at residue %d in a slot of %d", n, residue, s.arena.size))
	}
	at := s.index*s.arena.stride + residue
	return Buffer{mem: s.arena.mem[at : at+n : at+n], slot: s}
}

// Index numbers the slots of an arena from 0 on, spares included.
func (s *Slot) Index() int { return s.index }

// Fixed is memory that a read lands in and stays in. It need not come from an
// arena, but memory in the Go heap is rarely aligned, so reads into it are
// copied, and reads into it are never hedged.
func Fixed(mem []byte) Buffer { return Buffer{mem: mem} }

// Bytes is the memory of the buffer.
func (b Buffer) Bytes() []byte { return b.mem }

// Slot is the slot that the buffer is part of, nil for fixed memory.
func (b Buffer) Slot() *Slot { return b.slot }

// in gives the same place of another slot of the same arena.
func (b Buffer) in(s *Slot) Buffer {
	a := s.arena
	at := int(addressOf(b.mem)-addressOf(a.mem)) - b.slot.index*a.stride
	return s.Buffer(at, len(b.mem))
}

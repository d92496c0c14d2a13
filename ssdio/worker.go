package ssdio

import (
	"errors"
	"fmt"
	"math/rand/v2"
)

// worker is the life of one worker of a drive: read, check, hand over. It ends
// when Close closes the channel.
func (s *Set) worker(m *member) {
	defer s.done.Done()
	w := workspace{
		dice: rand.New(rand.NewPCG(uint64(m.index), rand.Uint64())),
	}
	defer w.free()
	for f := range m.work {
		f.err = s.fly(f, &w)
		s.land(f)
	}
}

// A workspace is the memory of one worker.
type workspace struct {
	bounce Scratch // ends of reads
	edge   Scratch // whole blocks of which only a part was asked for
	dice   *rand.Rand
}

func (w *workspace) free() {
	// Unmapping memory of our own cannot fail in a way that anyone could mend.
	_ = errors.Join(w.bounce.Free(), w.edge.Free())
}

// fly reads one slice to its place and checks it.
func (s *Set) fly(f *flight, w *workspace) error {
	m, r := f.on, f.req
	set := m.acquire()
	if set == nil {
		return ErrClosed
	}
	defer m.release(set)
	src := set.src[f.hold.file]
	to := r.into
	if f.target == 1 {
		to = r.spare
	}
	place, skip := r.place(to, f.lo, f.hi)
	n := int(f.bytes())
	data := place
	if len(place) != n {
		// The request begins or ends within a block: the block is read whole,
		// because only whole blocks can be checked.
		var err error
		if data, err = w.edge.Bytes(n); err != nil {
			return err
		}
	}
	copied, err := src.ReadInto(data, f.hold.at(f.lo), &w.bounce)
	f.copied = copied
	if err != nil {
		return err
	}
	if !src.Direct() {
		m.count.buffered.Add(int64(n))
	}
	err = s.check(f, data, w.dice)
	if len(place) != n {
		// Also after a failed check: the blocks beside the bad one count.
		f.copied += copy(place, data[skip:])
	}
	return err
}

// check compares blocks with their sums while they are in this processor's
// cache, and records sums that nobody has stated.
func (s *Set) check(f *flight, data []byte, dice *rand.Rand) error {
	o, l := f.req.obj, s.layout
	var bad error
	for b := f.lo; b < f.hi; b++ {
		start := int64(b-f.lo) * BlockSize
		block := data[start : start+o.span(b, b+1)]
		bit := f.hold.seen0 + int(b-f.hold.lo)
		seen := &l.checked[bit/64]
		mask := uint64(1) << (bit % 64)
		first := seen.Load()&mask == 0
		sum := &l.sums[o.sum0+int(b)]
		want := sum.Load()
		// After a failure everything is suspect.
		if want != 0 && !first && f.tries == 0 && dice.Float64() >= s.opt.Verify.Sample {
			continue
		}
		got := sumKnown | uint64(Sum(block))
		if want == 0 {
			if sum.CompareAndSwap(0, got) {
				f.noted += int64(len(block))
				seen.Or(mask)
				continue
			}
			want = sum.Load() // another holder was faster: now it counts
		}
		f.checked += int64(len(block))
		if got == want {
			if first {
				seen.Or(mask)
			}
			continue
		}
		if bad == nil {
			f.badLo = b
			bad = fmt.Errorf("block %d has sum %08x, recorded is %08x: %w", b, uint32(got), uint32(want), ErrChecksum)
		}
		f.badHi = b + 1
	}
	return bad
}

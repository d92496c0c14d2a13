package ssdio

import "time"

// A Timeline is time that its owner moves by hand, for simulations: with one in
// Options a Set opens no file, reads no byte and starts no goroutine. Everything
// that it decides (the cut of a request, whose turn it is, who helps whom, what
// is cancelled) is decided by the same code as for real drives; only the read
// itself is replaced by its duration.
//
// The owner calls the functions given to At in the order of their times, with Now
// as promised, from one goroutine, which is also the only one that uses the set.
// A run is then a function of its input alone.
//
// Memory is never touched, so requests may name memory that is only reserved
// ([ReserveArena]). Late reads are not hedged and no drive is ever lost: drives on
// a timeline have no faults.
type Timeline interface {
	// Now is the time since the timeline began.
	Now() time.Duration
	// Read says when a read of n bytes that is given to a drive now is over.
	Read(drive int, n int64) time.Duration
	// At has f called when a time has come.
	At(t time.Duration, f func())
	// Delivered tells that a result was sent to a channel.
	Delivered(to <-chan Result)
}

// schedule is start for a set on a timeline: the flight lands by itself.
func (s *Set) schedule(f *flight) {
	t := s.opt.Timeline
	t.At(t.Read(f.on.index, f.bytes()), func() { s.land(f) })
}

// ReserveArena is NewArena without memory: addresses are set aside and a touch is
// a crash. It is what a set on a [Timeline] reads into.
func ReserveArena(size, slots, spare int) (*Arena, error) {
	return newArena(size, slots, spare, reserveMemory)
}

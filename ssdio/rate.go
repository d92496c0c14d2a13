package ssdio

import (
	"math"
	"sync/atomic"
	"time"
)

// A meter tells the rate over the last second from a ring of tenths. It takes
// no lock: a writer that finds its cell old claims it by swapping the tick in.
// Bytes added in the moment of the change of a cell may be lost from the rate
// (never from the cumulative counters).
type meter struct {
	tick  [meterCells]atomic.Int64 // tenths of a second since the set was opened, plus one
	bytes [meterCells]atomic.Int64
}

const (
	meterCell  = 100 * time.Millisecond
	meterCells = 16 // 10 are read; the rest keeps writers off the cells being read
	meterSpan  = 10
)

func (m *meter) add(n int64, now time.Duration) {
	t := int64(now/meterCell) + 1
	i := t % meterCells
	if old := m.tick[i].Load(); old != t && m.tick[i].CompareAndSwap(old, t) {
		m.bytes[i].Store(0)
	}
	m.bytes[i].Add(n)
}

// rate is in bytes per second over the last ten full cells.
func (m *meter) rate(now time.Duration) float64 {
	t := int64(now/meterCell) + 1
	sum := int64(0)
	for i := range m.tick {
		if at := m.tick[i].Load(); at < t && at >= t-meterSpan {
			sum += m.bytes[i].Load()
		}
	}
	cells := min(t-1, meterSpan)
	if cells <= 0 {
		return 0
	}
	return float64(sum) / (float64(cells) * meterCell.Seconds())
}

// service estimates how fast a drive serves: bytes over busy time, both
// forgotten with a half life. Bytes over busy time is the same for a device
// that serves one read after the other and for one that serves all at once,
// unlike anything made from single latencies. The scheduler's lock guards it.
type service struct {
	bytes, seconds float64 // decayed sums
	last           time.Duration
	busy           bool // since last
}

// serviceHalf: half of what is known about a drive's speed is replaced within
// this busy time. Short enough to follow a drive that slows down within a few
// hundred milliseconds, long enough to average over tens of slices.
const serviceHalf = 100 * time.Millisecond

// prior states a rate in bytes per second to start from, and how much busy time
// it is worth: a measured one a half life, a guess almost nothing.
func (s *service) prior(rate float64, worth time.Duration) {
	s.seconds = worth.Seconds()
	s.bytes = rate * s.seconds
}

// advance accounts for the time up to now.
func (s *service) advance(now time.Duration) {
	if s.busy && now > s.last {
		dt := (now - s.last).Seconds()
		keep := math.Exp2(-dt / serviceHalf.Seconds())
		s.bytes *= keep
		s.seconds = s.seconds*keep + dt
	}
	s.last = now
}

// rate is bytes per second, never 0.
func (s *service) rate() float64 { return max(s.bytes/s.seconds, 1e6) }

// pending is rate if nothing arrived between the last event and now: it sinks
// while a drive answers nothing. A gap of the length of one slice is normal.
func (s *service) pending(now time.Duration, inFlight int64) float64 {
	r := s.rate()
	if !s.busy || inFlight == 0 {
		return r
	}
	gap := (now - s.last).Seconds() - float64(inFlight)/r
	if gap <= 0 {
		return r
	}
	return max(s.bytes/(s.seconds+gap), 1e6)
}

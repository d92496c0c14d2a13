package ssdio

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Latencies are counted in buckets of an eighth of an octave from 1 µs on, so a
// quantile is right to within 12.5 %. 25 octaves end at 33 s.
const (
	histSub     = 8
	histOctaves = 25
	histBuckets = histSub * (histOctaves + 1)
)

// A Histogram is a snapshot of latencies. Index i counts those in
// [bucketFloor(i), bucketFloor(i+1)).
type Histogram [histBuckets]uint64

// bucketOf gives the bucket of a latency.
func bucketOf(d time.Duration) int {
	us := uint64(max(d, 0)) / 1000
	if us < histSub {
		return int(us)
	}
	// The top four bits of the number are its octave's leading one and the
	// eighth within the octave.
	shift := bits.Len64(us) - 4
	i := (shift+1)*histSub + int(us>>shift) - histSub
	return min(i, histBuckets-1)
}

// bucketFloor is the smallest latency of a bucket.
func bucketFloor(i int) time.Duration {
	if i < histSub {
		return time.Duration(i) * time.Microsecond
	}
	shift := i/histSub - 1
	return time.Duration(histSub+i%histSub) << shift * time.Microsecond
}

// Count is the number of latencies in the histogram.
func (h *Histogram) Count() uint64 {
	n := uint64(0)
	for _, c := range h {
		n += c
	}
	return n
}

// Quantile is the latency that the fraction q of all is below, 0 if there are
// none. It is the upper end of the bucket, so it never flatters.
func (h *Histogram) Quantile(q float64) time.Duration {
	n := h.Count()
	if n == 0 {
		return 0
	}
	rank := uint64(q * float64(n))
	for i, c := range h {
		if rank < c {
			return bucketFloor(i + 1)
		}
		rank -= c
	}
	return h.Worst()
}

// Worst is the upper end of the highest bucket that is not empty.
func (h *Histogram) Worst() time.Duration {
	for i := histBuckets - 1; i >= 0; i-- {
		if h[i] != 0 {
			return bucketFloor(i + 1)
		}
	}
	return 0
}

// liveHistogram is the histogram that workers add to.
type liveHistogram [histBuckets]atomic.Uint64

func (h *liveHistogram) add(d time.Duration) { h[bucketOf(d)].Add(1) }

func (h *liveHistogram) read(into *Histogram) {
	for i := range h {
		into[i] = h[i].Load()
	}
}

// recentHistogram forgets: every recentKeep latencies all counts are halved, so
// that a quantile follows a drive that changes. The scheduler's lock guards it.
type recentHistogram struct {
	counts Histogram
	n      uint64
}

const recentKeep = 512

func (r *recentHistogram) add(d time.Duration) {
	r.counts[bucketOf(d)]++
	r.n++
	if r.n < 2*recentKeep {
		return
	}
	r.n = 0
	for i := range r.counts {
		r.counts[i] /= 2
		r.n += r.counts[i]
	}
}

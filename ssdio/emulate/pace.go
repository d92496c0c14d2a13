package emulate

import (
	"sync"
	"time"
)

// A pacer is a queue of one server: reads are served one after the other, each
// for length/rate. It hands out the moment at which a read would be through.
type pacer struct {
	rate float64 // bytes per second

	mu   sync.Mutex // guards below
	free time.Time  // when the last read is through
}

// reserve puts a read in the queue and returns when it is through. slow makes
// the server so much slower for this read.
func (p *pacer) reserve(n int, now time.Time, slow float64) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.free.Before(now) {
		p.free = now
	}
	p.free = p.free.Add(time.Duration(float64(n) * slow / p.rate * float64(time.Second)))
	return p.free
}

// waitUntil waits for a moment or until stop is closed.
func waitUntil(t time.Time, stop <-chan struct{}) {
	d := time.Until(t)
	if d <= 0 {
		return
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-stop:
	}
}

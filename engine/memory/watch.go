package memory

import (
	"context"
	"fmt"
	"time"
)

// When the watcher acts.
const (
	// Every is how often the machine is looked at.
	Every = time.Second
	// calm is how long there must have been plenty before the cache grows by a
	// step, and wary how long after it had to shrink.
	calm = 30 * time.Second
	wary = 2 * time.Minute
	// steps is in how many the cache grows from nothing to all.
	steps = 16
	// pressed and relaxed are percent of pressure: above the first the cache
	// shrinks before the floor is reached, above the second it does not grow.
	pressed, relaxed = 10, 1
)

// Bounds are what a cache may be resized to, in bytes.
type Bounds struct{ Least, Most int64 }

// A Governor decides how large a cache may be. It is a value: Decide returns the
// next one. Start it with the cache's size and a reading.
type Governor struct {
	Cache int64   // bytes that the cache may take
	Base  Reading // when the size was last right
	shrunk,
	plenty time.Time // when the cache last shrank; since when there is plenty
	short bool // it was said that there is nothing left to give
}

// A Notice is what a person should know. Sizes are bytes.
type Notice struct {
	From, To  int64 // size of the cache
	Available int64 // memory of the machine that is free
	Others    int64 // what other programs took since the size was last right; 0: nothing
	Short     bool  // the cache is as small as it can be, and memory is still short
}

// String is the notice as one sentence or two.
func (n Notice) String() string {
	left := Text(n.Available)
	took := ""
	if n.Others > 0 {
		took = fmt.Sprintf(" (another program took %s)", Text(n.Others))
	}
	switch {
	case n.Short:
		return fmt.Sprintf("Only %s RAM left%s, and the expert cache is as small as it can be, %s. Close other programs.", left, took, Text(n.To))
	case n.To < n.From:
		return fmt.Sprintf("Only %s RAM left%s. Expert cache cut from %s to %s.", left, took, Text(n.From), Text(n.To))
	}
	return fmt.Sprintf("%s RAM left. Expert cache grown from %s to %s.", left, Text(n.From), Text(n.To))
}

// Decide looks at a reading. held is how much of the cache's memory has been
// touched: the rest is not taken yet, and must not be given away twice. change says
// that the cache is to be resized to the Cache of the next Governor; say, that the
// notice is for people.
//
// Below half the margin the cache shrinks at once, by what the margin lacks. It
// grows again by a sixteenth whenever there was one and a half times the margin for
// half a minute, but not within two minutes of shrinking: between the two nothing
// happens.
func (g Governor) Decide(b Bounds, r Reading, held int64, now time.Time) (next Governor, n Notice, change, say bool) {
	margin := r.Margin()
	n = Notice{From: g.Cache, To: g.Cache, Available: r.Available}
	untouched := max(g.Cache-held, 0)
	lacking := r.Available < margin/2 || r.Available < margin && r.Pressure >= pressed
	switch room := r.Available - untouched - margin; {
	case lacking && g.Cache > b.Least:
		n.Others = max(g.Base.Available-r.Available-(r.Own-g.Base.Own), 0)
		n.To = max(min(g.Cache, held)-(margin-r.Available), b.Least)
		g = Governor{Cache: n.To, Base: r, shrunk: now}
		return g, n, true, true
	case lacking:
		n.Others = max(g.Base.Available-r.Available-(r.Own-g.Base.Own), 0)
		n.Short, say = true, !g.short
		g.short, g.plenty = true, time.Time{}
		return g, n, false, say
	case room < margin/2 || r.Pressure > relaxed || g.Cache >= b.Most:
		g.plenty = time.Time{}
	case g.plenty.IsZero():
		g.plenty = now
	case now.Sub(g.plenty) >= calm && (g.shrunk.IsZero() || now.Sub(g.shrunk) >= wary):
		n.To = min(g.Cache+min(room/2, max(b.Most/steps, 1)), b.Most)
		g.Cache, g.Base, g.plenty, g.short = n.To, r, now, false
		// Worth a word when it is whole again; the steps on the way are not.
		return g, n, true, n.To == b.Most
	}
	return g, n, false, false
}

// A Config is what Watch works with.
type Config struct {
	Governor Governor
	Bounds   Bounds
	Tick     <-chan time.Time        // when to look
	Read     func() (Reading, error) // Read of this package
	Held     func() int64            // memory of the cache that has been touched
	Resize   func(bytes int64) error // of the cache
	Notice   func(Notice)            // must not block; may be nil
	Failed   func(err error)         // a reading or a resize failed; may be nil
}

// Watch looks at every tick and resizes the cache, until ctx ends. A failed reading
// is passed over: the next one will do.
func Watch(ctx context.Context, c Config) {
	g := c.Governor
	failed := func(err error) {
		if err != nil && c.Failed != nil {
			c.Failed(err)
		}
	}
	for {
		var now time.Time
		select {
		case <-ctx.Done():
			return
		case now = <-c.Tick:
		}
		r, err := c.Read()
		if err != nil {
			failed(err)
			continue
		}
		next, n, change, say := g.Decide(c.Bounds, r, c.Held(), now)
		g = next
		if change {
			failed(c.Resize(g.Cache))
		}
		if say && c.Notice != nil {
			c.Notice(n)
		}
	}
}

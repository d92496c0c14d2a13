package expert

import (
	"sync/atomic"
	"time"
)

// Counts are what happened to uses of experts. Hit, InTime, Late and Missed add up
// to all uses; a use is one expert in one layer of one pass.
type Counts struct {
	Hit    int64 // in memory when asked for
	InTime int64 // read ahead, and there before it was used
	Late   int64 // read ahead, but the arithmetic waited
	Missed int64 // no read was under way when it was asked for
	Unused int64 // read, and thrown out or given up before it was used

	Useful int64 // bytes read for uses
	Wasted int64 // bytes read for Unused, and parts of experts that were given up

	// Of uses in layers for which a guess was made before, how many were in it: the
	// recall of the lookahead, whether or not anything was read for it.
	Judged, Foreseen int64

	Stall time.Duration // the arithmetic had nothing to do but wait
}

// Recall is the share of judged uses that were foreseen, 0 without any.
func (c *Counts) Recall() float64 {
	if c.Judged == 0 {
		return 0
	}
	return float64(c.Foreseen) / float64(c.Judged)
}

// Uses is the number of all uses.
func (c *Counts) Uses() int64 { return c.Hit + c.InTime + c.Late + c.Missed }

// HitRate is the share of uses that did not wait, 0 without uses.
func (c *Counts) HitRate() float64 {
	if c.Uses() == 0 {
		return 0
	}
	return float64(c.Hit+c.InTime) / float64(c.Uses())
}

func (c *Counts) add(o *Counts, sign int64) {
	c.Hit += sign * o.Hit
	c.InTime += sign * o.InTime
	c.Late += sign * o.Late
	c.Missed += sign * o.Missed
	c.Unused += sign * o.Unused
	c.Useful += sign * o.Useful
	c.Wasted += sign * o.Wasted
	c.Judged += sign * o.Judged
	c.Foreseen += sign * o.Foreseen
	c.Stall += time.Duration(sign) * o.Stall
}

// Stats are the counters of a Store. Apart from the gauges they only grow.
type Stats struct {
	Total  Counts
	Layers []Counts // [layers of the model]

	// Gauges: the values now, unchanged by Sub.
	Slots  int   // experts that memory has room for, those in flight included
	Limit  int   // of these, how many may stay
	Cached int   // how many do
	Bytes  int64 // of these slots, slack and spares included
}

// Sub takes an earlier reading away from this one, in place.
func (s *Stats) Sub(old *Stats) {
	s.Total.add(&old.Total, -1)
	for i := range min(len(s.Layers), len(old.Layers)) {
		s.Layers[i].add(&old.Layers[i], -1)
	}
}

// layerCounts are the Counts of one layer as they are counted: under the
// lock of the store, read by anyone.
type layerCounts struct {
	hit, inTime, late, missed, unused, useful, wasted, judged, foreseen, stallNS atomic.Int64
}

// Stats reads the counters into st, reusing its memory. It takes no lock and may
// be called from any goroutine.
func (s *Store) Stats(st *Stats) {
	layers := st.Layers[:0]
	*st = Stats{Slots: int(s.usable.Load()), Limit: int(s.limit.Load()), Cached: int(s.cached.Load()), Bytes: s.bytes.Load()}
	for i := range s.counts {
		c := &s.counts[i]
		layers = append(layers, Counts{
			Hit: c.hit.Load(), InTime: c.inTime.Load(), Late: c.late.Load(), Missed: c.missed.Load(),
			Unused: c.unused.Load(), Useful: c.useful.Load(), Wasted: c.wasted.Load(),
			Judged: c.judged.Load(), Foreseen: c.foreseen.Load(), Stall: time.Duration(c.stallNS.Load()),
		})
		st.Total.add(&layers[i], 1)
	}
	st.Layers = layers
}

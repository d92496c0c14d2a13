package ssdio

import "math"

// An estimate is what the cut needs to know of a drive.
type estimate struct {
	ready float64 // seconds until it has served what it has and owes
	rate  float64 // blocks per second; 0: not to be asked
}

// A piece is a run of blocks that one holder is to read. It is a plan only:
// until a slice of it has started it can go to another holder.
type piece struct {
	lo, hi int32
	hold   int32 // index in object.hold
	tries  int32 // reads of these blocks that failed
	avoid  uint64
	again  bool  // failed once on this holder; after the second time it is avoided
	target uint8 // 0: the request's buffer, 1: its spare slot
	hedge  bool
}

// cutRange divides the blocks [lo,hi) of an object among its holders so that
// all finish at the same moment, and appends the pieces in order. They tile the
// range exactly and lie within their holding. It returns false, and out as it
// was, if some block has no holder that can be asked.
//
// For a given moment T a drive can serve (T-ready) x rate blocks. Going through
// the range from the left and always using, of the holders of this block that
// have something left, the one whose holding ends first, covers the range
// whenever any division does (the earliest-deadline argument: the holder that
// ends first is the one that can least be used later). T is found by halving.
func cutRange(lo, hi int32, hold []holding, est []estimate, out []piece) ([]piece, bool) {
	if lo >= hi {
		return out, true
	}
	c := cutter{lo: float64(lo), hi: float64(hi), hold: hold, est: est}
	if !c.covered(lo, hi) {
		return out, false
	}
	// Few blocks: rounding would decide instead of the finish times.
	if int(hi-lo) < 2*len(hold) {
		return c.single(lo, hi, out), true
	}
	early, late := c.bounds(float64(hi - lo))
	for range 40 {
		mid := (early + late) / 2
		if mid <= early || mid >= late {
			break
		}
		if c.sweep(mid, nil) {
			late = mid
		} else {
			early = mid
		}
	}
	start := len(out)
	at := lo
	ok := c.sweep(late, func(k int, to float64) {
		end := min(int32(math.Round(to)), hi)
		if end <= at {
			return
		}
		if n := len(out); n > start && out[n-1].hold == int32(k) {
			out[n-1].hi = end
		} else {
			out = append(out, piece{lo: at, hi: end, hold: int32(k)})
		}
		at = end
	})
	if !ok || at != hi {
		// Only rounding of estimates that differ by many orders of magnitude
		// can end here; block by block always works.
		return c.single(lo, hi, out[:start]), true
	}
	return out, true
}

// A cutter holds the arguments of one cut.
type cutter struct {
	lo, hi float64
	hold   []holding
	est    []estimate // [drives]
	left   [MaxDrives]float64
}

func (c *cutter) usable(k int) bool { return c.est[c.hold[k].drive].rate > 0 }

// covered: every block has a holder. Holdings are sorted by lo.
func (c *cutter) covered(lo, hi int32) bool {
	for k := range c.hold {
		h := &c.hold[k]
		if !c.usable(k) || h.hi <= lo {
			continue
		}
		if h.lo > lo {
			return false
		}
		lo = h.hi
		if lo >= hi {
			return true
		}
	}
	return false
}

// bounds gives a moment that is too early and one that suffices: the slowest
// usable drive serving everything alone after the latest is ready.
func (c *cutter) bounds(blocks float64) (early, late float64) {
	early, slow := math.Inf(1), math.Inf(1)
	for k := range c.hold {
		if e := c.est[c.hold[k].drive]; e.rate > 0 {
			early = min(early, e.ready)
			late = max(late, e.ready)
			slow = min(slow, e.rate)
		}
	}
	return early, late + blocks/slow + 1e-9
}

// sweep says whether the range can be served by the moment t, and tells emit
// which holder serves up to where.
func (c *cutter) sweep(t float64, emit func(k int, to float64)) bool {
	for k := range c.hold {
		d := c.hold[k].drive
		c.left[d] = max(0, (t-c.est[d].ready)*c.est[d].rate)
	}
	const sliver = 1e-6 // of a block: not worth a step
	for at := c.lo; at < c.hi-sliver; {
		best, next := -1, c.hi
		for k := range c.hold {
			h := &c.hold[k]
			switch {
			case float64(h.hi) <= at+sliver || c.left[h.drive] <= sliver:
			case float64(h.lo) > at+sliver:
				next = min(next, float64(h.lo)) // the choice may change there
			case best < 0 || h.hi < c.hold[best].hi:
				best = k
			}
		}
		if best < 0 {
			return false
		}
		h := &c.hold[best]
		to := min(next, float64(h.hi), at+c.left[h.drive])
		c.left[h.drive] -= to - at
		at = to
		if emit != nil {
			if at >= c.hi-sliver {
				at = c.hi
			}
			emit(best, at)
		}
	}
	return true
}

// single gives each block to the holder that would finish it first.
func (c *cutter) single(lo, hi int32, out []piece) []piece {
	start := len(out)
	for k := range c.hold {
		c.left[c.hold[k].drive] = 0 // here: blocks already given
	}
	for b := lo; b < hi; b++ {
		best, first := -1, math.Inf(1)
		for k := range c.hold {
			h := &c.hold[k]
			if b < h.lo || b >= h.hi || !c.usable(k) {
				continue
			}
			e := c.est[h.drive]
			if t := e.ready + (c.left[h.drive]+1)/e.rate; t < first {
				best, first = k, t
			}
		}
		c.left[c.hold[best].drive]++
		if n := len(out); n > start && out[n-1].hold == int32(best) {
			out[n-1].hi = b + 1
		} else {
			out = append(out, piece{lo: b, hi: b + 1, hold: int32(best)})
		}
	}
	return out
}

// takeOver says how many blocks a drive should take from the piece of another
// so that both finish at the same moment: n blocks stand between the owner's
// ready time and the end of the piece.
func takeOver(owner, helper estimate, n float64) float64 {
	if owner.rate <= 0 {
		return n
	}
	// owner.ready + (n-x)/owner.rate == helper.ready + x/helper.rate
	x := (owner.ready - helper.ready + n/owner.rate) / (1/owner.rate + 1/helper.rate)
	return min(max(x, 0), n)
}

package ssdio

import (
	"math"
	"math/bits"
	"slices"
)

// Ceiling is the rate in bytes per second at which all objects could be read,
// each equally often, if the drives served at the given rates and every cut
// were perfect. rates stand in the order of the drives; 0 means lost, and the
// answer is 0 if some byte is then out of reach.
//
// By max-flow min-cut it is the least, over all sets of drives, of what the set
// can serve over the fraction of bytes that only the set holds. The sets are
// counted one by one; for more than 16 drives the answer is that of cutting each
// object on its own, which is a little less.
func (l *Layout) Ceiling(rates []float64) float64 {
	if l.drives > 16 {
		return l.oneByOne(rates)
	}
	held := map[uint64]float64{} // bytes by the set of their holders
	var edges []int32
	total := 0.0
	for i := range l.objects {
		o := &l.objects[i]
		total += float64(o.size)
		edges = append(edges[:0], 0, o.blocks)
		for k := range o.hold {
			edges = append(edges, o.hold[k].lo, o.hold[k].hi)
		}
		sortUnique(&edges)
		for e := 1; e < len(edges); e++ {
			var set uint64
			for k := range o.hold {
				h := &o.hold[k]
				if h.lo <= edges[e-1] && h.hi >= edges[e] && rates[h.drive] > 0 {
					set |= 1 << h.drive
				}
			}
			held[set] += float64(o.span(edges[e-1], edges[e]))
		}
	}
	if held[0] > 0 || total == 0 {
		return 0
	}
	best := math.Inf(1)
	for set := uint64(1); set < 1<<l.drives; set++ {
		only, rate := 0.0, 0.0
		for s, n := range held {
			if s&^set == 0 {
				only += n
			}
		}
		for s := set; s != 0; s &= s - 1 {
			rate += rates[bits.TrailingZeros64(s)]
		}
		if only > 0 {
			best = min(best, rate/(only/total))
		}
	}
	return best
}

// oneByOne is the rate if each object is read alone, by a perfect cut.
func (l *Layout) oneByOne(rates []float64) float64 {
	est := make([]estimate, MaxDrives)
	for d, r := range rates {
		est[d].rate = r / BlockSize
	}
	var ps []piece
	total, seconds := 0.0, 0.0
	for i := range l.objects {
		o := &l.objects[i]
		var ok bool
		if ps, ok = cutRange(0, o.blocks, o.hold, est, ps[:0]); !ok {
			return 0
		}
		var busy [MaxDrives]float64
		last := 0.0
		for _, p := range ps {
			d := o.hold[p.hold].drive
			busy[d] += float64(o.span(p.lo, p.hi)) / rates[d]
			last = max(last, busy[d])
		}
		total += float64(o.size)
		seconds += last
	}
	if seconds == 0 {
		return 0
	}
	return total / seconds
}

func sortUnique(v *[]int32) {
	slices.Sort(*v)
	*v = slices.Compact(*v)
}

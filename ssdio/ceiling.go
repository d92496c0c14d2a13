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
// counted one by one, so layouts of more than 20 drives take long.
func (l *Layout) Ceiling(rates []float64) float64 {
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

func sortUnique(v *[]int32) {
	slices.Sort(*v)
	*v = slices.Compact(*v)
}

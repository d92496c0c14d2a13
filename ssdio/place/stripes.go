package place

import (
	"cmp"
	"math"
	"slices"
)

// span is a part of an object as fractions of it.
type span struct{ from, to float64 }

func (s span) width() float64 { return s.to - s.from }

// fill divides an object among drives so that all finish together as far as
// their caps allow: shares min(cap, speed x time) that sum to one. No division
// is faster, because a drive can give at most its cap of every object. It is nil
// if the caps do not sum to one.
//
// The closed form: in the order of cap/speed drives reach their cap one after
// the other; between two of them the sum grows linearly with time.
func fill(speeds, caps []float64) []float64 {
	order := make([]int, len(speeds))
	free := 0.0 // speed of the drives that are not at their cap
	for i := range order {
		order[i] = i
		free += speeds[i]
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(caps[a]/speeds[a], caps[b]/speeds[b]) })
	shares := make([]float64, len(speeds))
	left := 1.0
	for k, i := range order {
		if time := left / free; speeds[i]*time <= caps[i] {
			for _, j := range order[k:] {
				shares[j] = speeds[j] * time
			}
			return shares
		}
		shares[i] = caps[i]
		left -= caps[i]
		// Summed anew: taking away one by one would leave rounding behind.
		free = 0
		for _, j := range order[k+1:] {
			free += speeds[j]
		}
	}
	if left > 1e-12 {
		return nil
	}
	return shares
}

// grid is the precision of widen: stripes move in steps of this fraction.
const grid = 1.0 / 128

// widen gives each drive a range of the given width (or its core, if that is
// wider). Of all such ranges it looks for those that leave the least of the
// object with a single holder, then the least with two, and so on: the second
// copy of a byte keeps a lost drive from stopping everything, further ones give
// the cut more freedom. fast says whether ranges still allow the full rate; the
// cores, which lie next to each other, always do.
//
// It begins with cores widened on both sides alike; from there each drive in
// turn moves to its best place while the others stay, until none wants to move.
// First every range keeps its core, then any place that stays fast is good. At
// most a few rounds, and always the same result for the same input.
func widen(cores []span, widths []float64, fast func([]span) bool) []span {
	out := make([]span, len(cores))
	near := make([]span, len(cores)) // where a range may begin
	free := make([]span, len(cores))
	for i, c := range cores {
		w := min(1, max(widths[i], c.width()))
		if w <= c.width() {
			out[i], near[i] = c, span{c.from, c.from} // exactly, not a rounding away
			free[i] = span{0, 1 - c.width()}
			continue
		}
		near[i], free[i] = span{max(0, c.to-w), min(c.from, 1-w)}, span{0, 1 - w}
		at := min(max(c.from-(w-c.width())/2, near[i].from), near[i].to)
		out[i] = span{min(at, c.from), max(at+w, c.to)}
	}
	descend(out, near, func([]span) bool { return true })
	for i, c := range cores { // rounding must not cut into a core
		out[i] = span{min(out[i].from, c.from), max(out[i].to, c.to)}
	}
	descend(out, free, fast)
	return out
}

// descend moves ranges, one at a time, to where exposure is least.
func descend(out, begin []span, fast func([]span) bool) {
	cost := exposure(out)
	for range 8 {
		moved := false
		for i := range out {
			w := out[i].width()
			best := out[i]
			try := func(at float64) {
				at = min(max(at, begin[i].from), begin[i].to)
				out[i] = span{at, at + w}
				if c := exposure(out); c < cost-1e-9 && fast(out) {
					cost, best, moved = c, out[i], true
				}
			}
			if begin[i].width() <= 0 {
				continue
			}
			for at := begin[i].from; at < begin[i].to; at += grid {
				try(at)
			}
			try(begin[i].to)
			// Ends of the others are where the cost has its corners.
			for k := range out {
				if k != i {
					try(out[k].to)
					try(out[k].from - w)
				}
			}
			out[i] = best
		}
		if !moved {
			break
		}
	}
}

// exposure weighs every byte by how few hold it: each further copy is worth a
// quarter of the one before.
func exposure(spans []span) float64 {
	cost := 0.0
	sweep(spans, func(width float64, holders int) { cost += width * math.Exp2(-2*float64(holders)) })
	return cost
}

// missing is the fraction of the object that nobody holds.
func missing(spans []span) float64 {
	gap := 0.0
	sweep(spans, func(width float64, holders int) {
		if holders == 0 {
			gap += width
		}
	})
	return gap
}

// alone is the fraction of the object that one drive alone holds.
func alone(spans []span) float64 {
	n := 0.0
	sweep(spans, func(width float64, holders int) {
		if holders == 1 && width > 1e-9 {
			n += width
		}
	})
	return n
}

// sweep visits the object from left to right in pieces of constant holders.
func sweep(spans []span, visit func(width float64, holders int)) {
	edges := []float64{0, 1}
	for _, s := range spans {
		edges = append(edges, s.from, s.to)
	}
	slices.Sort(edges)
	for i := 1; i < len(edges); i++ {
		a, b := edges[i-1], edges[i]
		if b <= a {
			continue
		}
		n := 0
		for _, s := range spans {
			if s.from <= a && s.to >= b {
				n++
			}
		}
		visit(b-a, n)
	}
}

// rate is the speed in bytes per second at which objects can be read from
// drives with these stripes if every cut is perfect, 0 if a part has no holder.
//
// It is a linear program (share of each drive in each piece, all finish
// together), but stripes are intervals, so a time T for one object is enough
// exactly if handing each piece, from left to right, to the holder whose stripe
// ends first uses none for longer than T. T is found by halving.
func rate(spans []span, speeds []float64) float64 {
	if missing(spans) > 0 {
		return 0
	}
	low, high := 0.0, 0.0 // seconds for an object of one byte
	sum, slowest := 0.0, math.Inf(1)
	for _, s := range speeds {
		sum += s
		slowest = min(slowest, s)
	}
	low, high = 1/sum, 1/slowest
	if enough(spans, speeds, low*(1+1e-12)) {
		return sum
	}
	for range 100 {
		mid := (low + high) / 2
		if mid <= low || mid >= high {
			break
		}
		if enough(spans, speeds, mid) {
			high = mid
		} else {
			low = mid
		}
	}
	return 1 / high
}

func enough(spans []span, speeds []float64, time float64) bool {
	edges := []float64{0, 1}
	left := make([]float64, len(spans))
	for i, s := range spans {
		edges = append(edges, s.from, s.to)
		left[i] = speeds[i] * time
	}
	slices.Sort(edges)
	for e := 1; e < len(edges); e++ {
		a, b := edges[e-1], edges[e]
		need := b - a
		for need > 1e-12 {
			first := -1
			for i, s := range spans {
				if s.from <= a && s.to >= b && left[i] > 0 && (first < 0 || s.to < spans[first].to) {
					first = i
				}
			}
			if first < 0 {
				return false
			}
			use := min(need, left[first])
			left[first] -= use
			need -= use
		}
	}
	return true
}

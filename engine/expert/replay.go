package expert

import (
	"container/heap"
	"math"
)

// Hits are the hits of cache policies over one trace and one size. All policies
// see the same choices; what differs is what they keep.
type Hits struct {
	Cache  int // experts that fit
	Uses   int
	LRU    int // least recently used goes
	LFU    int // least often used since the start goes, the older of equals first
	Policy int // what a Store does: decayed frequency with admission
	Belady int // knows the future: no policy can hit more
}

// Replay runs the policies over a trace with room for cache experts, those in
// flight not counted. halfLife is that of Options; 0 stands for the default.
func Replay(t *Trace, cache int, halfLife float64) Hits {
	if halfLife == 0 {
		halfLife = DefaultHalfLife
	}
	keys := t.Layers * t.Experts
	return Hits{
		Cache: cache, Uses: t.Uses(),
		LRU:    replayOrder(t, keys, cache, false),
		LFU:    replayOrder(t, keys, cache, true),
		Policy: replayPolicy(t, keys, cache, halfLife),
		Belady: replayBelady(t, keys, cache),
	}
}

// replayPolicy does what Store.Begin does.
func replayPolicy(t *Trace, keys, cache int, halfLife float64) int {
	p, hits := NewPolicy(keys, cache), 0
	perUse := 1 / t.PerToken() / halfLife
	var set []int
	for i := range t.Sets {
		r := &t.Sets[i]
		set = t.keys(set, r)
		sum := 0.0
		var missing []int // of r.Experts
		for j, k := range set {
			sum += weight(r.Rows[j])
			p.Pin(k)
			if !p.Cached(k) {
				missing = append(missing, j)
				continue
			}
			hits++
			p.Count(k, weight(r.Rows[j]))
		}
		for _, j := range missing {
			p.Offer(set[j])
			p.Count(set[j], weight(r.Rows[j]))
		}
		for _, k := range set {
			p.Unpin(k)
		}
		p.Age(sum * perUse)
	}
	return hits
}

// A ranked is a cached key; the one with the least rank goes first, among equals
// the one used longest ago.
type ranked struct {
	key        int
	rank, used int
}

// An order is a heap of cached keys. Entries whose rank is no longer that of
// their key are dropped when they come up.
type order []ranked

func (o order) Len() int { return len(o) }
func (o order) Less(i, j int) bool {
	return o[i].rank < o[j].rank || o[i].rank == o[j].rank && o[i].used < o[j].used
}
func (o order) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *order) Push(x any)   { *o = append(*o, x.(ranked)) }
func (o *order) Pop() any {
	x := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return x
}

// shelf is a cache that ranks its keys by numbers.
type shelf struct {
	order order
	now   []ranked // [keys]; key -1: not cached
	held  int
}

func newShelf(keys int) *shelf {
	s := &shelf{now: make([]ranked, keys)}
	for i := range s.now {
		s.now[i].key = -1
	}
	return s
}

func (s *shelf) has(key int) bool { return s.now[key].key >= 0 }

// put caches a key or changes its rank.
func (s *shelf) put(key, rank, used int) {
	if !s.has(key) {
		s.held++
	}
	s.now[key] = ranked{key, rank, used}
	heap.Push(&s.order, s.now[key])
}

// least is the key that goes first.
func (s *shelf) least() ranked {
	for s.now[s.order[0].key] != s.order[0] {
		heap.Pop(&s.order)
	}
	return s.order[0]
}

func (s *shelf) drop(key int) {
	s.now[key].key = -1
	s.held--
}

// replayOrder is LRU, or LFU by counts.
func replayOrder(t *Trace, keys, cache int, counts bool) int {
	s, hits, clock := newShelf(keys), 0, 0
	count := make([]int, keys)
	var set []int
	for i := range t.Sets {
		set = t.keys(set, &t.Sets[i])
		for _, k := range set {
			clock++
			count[k]++
			if s.has(k) {
				hits++
			} else if cache == 0 {
				continue
			} else if s.held >= cache {
				s.drop(s.least().key)
			}
			rank := 0
			if counts {
				rank = count[k]
			}
			s.put(k, rank, clock)
		}
	}
	return hits
}

// replayBelady throws out what is used again last, the newcomer included.
func replayBelady(t *Trace, keys, cache int) int {
	var uses []int
	for i := range t.Sets {
		uses = append(uses, t.keys(nil, &t.Sets[i])...)
	}
	next, last := make([]int, len(uses)), make([]int, keys)
	for k := range last {
		last[k] = math.MaxInt
	}
	for i := len(uses) - 1; i >= 0; i-- {
		next[i], last[uses[i]] = last[uses[i]], i
	}
	s, hits := newShelf(keys), 0
	for i, k := range uses {
		if s.has(k) {
			hits++
		} else if s.held >= cache {
			if cache == 0 || -s.least().rank <= next[i] {
				continue
			}
			s.drop(s.least().key)
		}
		s.put(k, -next[i], i)
	}
	return hits
}

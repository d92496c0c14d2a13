package expert

import "math"

// A Policy decides which keys a cache holds: decayed frequency with admission.
//
// Every use of a key adds to its heat, cached or not, and heat halves with time.
// Decay multiplies all heats alike, so it never changes their order: instead of
// shrinking what is stored, the weight of a new use grows (step), and all are
// scaled down when it becomes large. That keeps the coldest cached key at the top
// of a heap without touching the others; every operation is O(log n) at most.
//
// A Policy is a pure data structure, not safe for concurrent use.
type Policy struct {
	step  float64   // what one use adds now
	heat  []float64 // [keys], in units of step at the last scaling
	pins  []int32   // [keys]: holders that need the key to stay
	state []uint8   // [keys]
	at    []int32   // [keys]: position in heap, if idle
	heap  []int32   // cached keys without pins, coldest first
	held  int       // cached keys, pinned ones included
	limit int
}

const (
	out    = iota // not cached
	idle          // cached and in the heap
	pinned        // cached and not in the heap
)

// maxStep is where heats are scaled down: far from the end of float64, and so
// far from the start that what is lost to underflow is older than 600 half-lives.
const maxStep = 1e200

// NewPolicy returns a Policy for keys [0, keys) of which limit may be cached.
func NewPolicy(keys, limit int) *Policy {
	return &Policy{
		step: 1, limit: limit,
		heat: make([]float64, keys), pins: make([]int32, keys), state: make([]uint8, keys), at: make([]int32, keys),
	}
}

// Len is the number of cached keys.
func (p *Policy) Len() int { return p.held }

// Limit is the number of keys that may be cached.
func (p *Policy) Limit() int { return p.limit }

// SetLimit changes the number of keys that may be cached. Keys beyond it stay until
// they are removed.
func (p *Policy) SetLimit(n int) { p.limit = n }

// Coldest is the next victim: the cached key without a pin that was used least. ok
// is false if there is none.
func (p *Policy) Coldest() (key int, ok bool) {
	if len(p.heap) == 0 {
		return -1, false
	}
	return int(p.heap[0]), true
}

// Cached says whether a key is cached.
func (p *Policy) Cached(key int) bool { return p.state[key] != out }

// Heat is the decayed number of uses of a key.
func (p *Policy) Heat(key int) float64 { return p.heat[key] / p.step }

// SetHeat sets the heat of all keys, [keys]. Nothing may be cached yet.
func (p *Policy) SetHeat(heat []float32) {
	for i, h := range heat {
		p.heat[i] = float64(h) * p.step
	}
}

// Age lets time pass, in half-lives of heat.
func (p *Policy) Age(halfLives float64) {
	p.step *= math.Exp2(halfLives)
	if p.step < maxStep {
		return
	}
	for i := range p.heat {
		p.heat[i] /= p.step
	}
	p.step = 1
	// Heats that became equal by underflow are ordered by key now.
	for i := len(p.heap)/2 - 1; i >= 0; i-- {
		p.down(i)
	}
}

// Count records n uses of a key.
func (p *Policy) Count(key int, n float64) {
	p.heat[key] += n * p.step
	if p.state[key] == idle {
		p.down(int(p.at[key]))
	}
}

// Offer asks whether a key that is about to be read may stay. It may if there is
// room or if its heat is above that of the coldest cached key without a pin, the
// victim, which is thrown out; victim is -1 if none had to go. Offer comes
// before Count: with the present use counted every newcomer would beat what was
// used just as often but a little earlier, and the cache would fall back to least
// recently used.
func (p *Policy) Offer(key int) (victim int, stays bool) {
	if p.state[key] != out {
		return -1, true
	}
	victim = -1
	if p.held >= p.limit {
		if len(p.heap) == 0 || p.heat[p.heap[0]] >= p.heat[key] {
			return -1, false
		}
		victim = int(p.heap[0])
		p.Remove(victim)
	}
	p.held++
	if p.pins[key] > 0 {
		p.state[key] = pinned
	} else {
		p.push(key)
	}
	return victim, true
}

// Remove takes a key out of the cache; its heat stays.
func (p *Policy) Remove(key int) {
	switch p.state[key] {
	case out:
		return
	case idle:
		p.take(key)
	}
	p.state[key] = out
	p.held--
}

// Pin keeps a key from being thrown out until as many Unpins.
func (p *Policy) Pin(key int) {
	p.pins[key]++
	if p.state[key] == idle {
		p.take(key)
		p.state[key] = pinned
	}
}

// Pinned says whether a key has a pin.
func (p *Policy) Pinned(key int) bool { return p.pins[key] > 0 }

// Unpin undoes one Pin.
func (p *Policy) Unpin(key int) {
	p.pins[key]--
	if p.pins[key] == 0 && p.state[key] == pinned {
		p.push(key)
	}
}

// colder orders the heap. Equal heats are ordered by key, so that the victim is a
// function of what happened and not of the heap's history.
func (p *Policy) colder(a, b int32) bool {
	x, y := p.heat[a], p.heat[b]
	return x < y || x == y && a < b
}

func (p *Policy) push(key int) {
	p.state[key] = idle
	p.at[key] = int32(len(p.heap))
	p.heap = append(p.heap, int32(key))
	p.up(len(p.heap) - 1)
}

// take removes a key from the heap.
func (p *Policy) take(key int) {
	i, last := int(p.at[key]), len(p.heap)-1
	p.swap(i, last)
	p.heap = p.heap[:last]
	if i < last {
		p.down(i)
		p.up(i)
	}
}

func (p *Policy) swap(i, j int) {
	p.heap[i], p.heap[j] = p.heap[j], p.heap[i]
	p.at[p.heap[i]], p.at[p.heap[j]] = int32(i), int32(j)
}

func (p *Policy) up(i int) {
	for i > 0 && p.colder(p.heap[i], p.heap[(i-1)/2]) {
		p.swap(i, (i-1)/2)
		i = (i - 1) / 2
	}
}

func (p *Policy) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(p.heap) {
			return
		}
		if c+1 < len(p.heap) && p.colder(p.heap[c+1], p.heap[c]) {
			c++
		}
		if !p.colder(p.heap[c], p.heap[i]) {
			return
		}
		p.swap(i, c)
		i = c
	}
}

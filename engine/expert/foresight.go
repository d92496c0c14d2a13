package expert

import (
	"math/bits"
	"time"

	"deltafin/ssdio"
)

// A Candidate is an expert that a coming layer may need.
type Candidate struct {
	Expert int32
	// Class groups candidates that are equally likely to be right, such as those of
	// the same rank: how likely is learnt per layer and class. 0 to Classes-1.
	Class uint8
}

// Classes is the number of classes of candidates.
const Classes = 64

// What reading ahead may cost and when it is worth it.
const (
	// wasteShare of the useful bytes may be read for guesses that turn out wrong.
	// The bound to keep is 3 %; the rest is left for what is in flight.
	wasteShare = 0.015
	// wasteStart is the credit at the start, in experts, and wasteMost what may be
	// saved up.
	wasteStart, wasteMost = 2, 8
	// leastChance: what is less likely is not read.
	leastChance = 0.5
	// leastRecall: a layer whose guesses foresee less is not guessed for, but for
	// one token in probeEvery.
	leastRecall, probeEvery = 0.15, 32
	// memory is how many observations a chance or a gap remembers.
	memory = 32
	// rateEvery is after how many guesses the drives' rate is looked at again.
	rateEvery = 16
)

// foresight is what a store has learnt about guesses.
type foresight struct {
	s      *Store
	off    bool
	layers []layerForesight
	all    layerForesight // of all layers together, for one that is not known yet
	credit float64        // bytes that may still be wasted
	held   int            // experts read ahead that no layer asked for yet
	risk   float64        // bytes that these may cost
	out    []*Turn        // turns that have a guess outstanding

	rate  float64 // of all drives together, bytes per second while they have work
	paces []pace  // of each drive
	tick  int
	count ssdio.Counters
}

// layerForesight is what is known of the guesses for one layer.
type layerForesight struct {
	right  [2][Classes]chance // by how many layers of arithmetic are still to come
	recall [2]chance
	gap    [2][rowClasses]gap
	tokens int
}

// rowClasses is the number of magnitudes of a pass's rows: the arithmetic of a
// prompt takes a hundred times that of a token.
const rowClasses = 16

func rowClass(rows int) int { return min(bits.Len(uint(max(rows, 1)))-1, rowClasses-1) }

// known is how many observations a layer's own figures need to be believed.
const known = 4

// chance is how likely a candidate is right.
func (f *foresight) chance(layer, ahead int, class uint8) float64 {
	if c := &f.layers[layer].right[ahead][class%Classes]; c.n >= known {
		return c.p()
	}
	return f.all.right[ahead][class%Classes].p()
}

// time is how long it usually takes until a layer's router speaks, 0 if that is
// not known.
func (f *foresight) time(layer, ahead, rows int) time.Duration {
	if g := &f.layers[layer].gap[ahead][rowClass(rows)]; g.n > 0 {
		return g.mean
	}
	return f.all.gap[ahead][rowClass(rows)].mean
}

// gap is the time from a guess to the router's choice, as it usually is.
type gap struct {
	mean time.Duration
	n    int
}

func (g *gap) note(d time.Duration) {
	g.n = min(g.n+1, memory/4)
	g.mean += (d - g.mean) / time.Duration(g.n)
}

// chance estimates a probability from what happened, the later the more.
type chance struct{ n, hits float64 }

func (c *chance) note(hit bool) {
	if c.n >= memory {
		c.n, c.hits = c.n*(1-1.0/memory), c.hits*(1-1.0/memory)
	}
	c.n++
	if hit {
		c.hits++
	}
}

// p begins at a third and believes the observations once there are a few.
func (c *chance) p() float64 { return (c.hits + 1) / (c.n + 3) }

// guess is what one turn has guessed and not seen judged.
type guess struct {
	layer int // -1: none
	rows  int // of the pass
	made  [2]guessed
	risk  float64 // its part of foresight.risk
	keys  []int32 // experts that are read for it
}

// guessed is one guess, made so many layers before.
type guessed struct {
	at    time.Time // zero: none
	cands []Candidate
}

func (f *foresight) init(s *Store, off bool) {
	f.s, f.off = s, off
	f.layers = make([]layerForesight, s.cat.layers)
	f.credit = wasteStart * float64(s.cat.largest)
	f.rate = 1e9
	s.set.Counters(&f.count)
	if c := f.count.Total.Ceiling; c > 0 {
		f.rate = c
	}
}

// lost charges bytes that a wrong guess has cost.
func (f *foresight) lost(n int64) { f.credit -= float64(n) }

// paid notes bytes that were read and then used; refund says that they had been
// charged as a wrong guess.
func (f *foresight) paid(n int64, refund bool) {
	f.credit += wasteShare * float64(n)
	if refund {
		f.credit += float64(n)
	}
	f.credit = min(f.credit, wasteMost*float64(f.s.cat.largest))
}

// elsewhere says whether another turn has a guess outstanding.
func (f *foresight) elsewhere(t *Turn) bool {
	for _, o := range f.out {
		if o != t {
			return true
		}
	}
	return false
}

// Ahead says whether a guess for a layer is worth making.
func (t *Turn) Ahead(layer int, early bool) bool {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.guesses
	if f.off || s.policy.Len() == s.cat.Experts() {
		return false
	}
	l := &f.layers[layer]
	r := &l.recall[distance(early)]
	if !early {
		l.tokens++
	}
	return r.n < probeEvery/4 || r.p() >= leastRecall || l.tokens%probeEvery == 0
}

// distance is how many layers are between a guess and its layer.
func distance(early bool) int {
	if early {
		return 1
	}
	return 0
}

// Guess names what a coming layer may need, the most likely first, before that
// layer of a pass of so many rows is opened: with the attention of that layer still
// to come, or early, with more than that. How good either kind is is learnt apart.
// What is likely enough is read ahead, as much as the drives can carry until then;
// what turns out wrong is given up. A second guess for the same layer goes on with
// the first. The next Begin judges both.
func (t *Turn) Guess(layer, rows int, early bool, cands []Candidate) {
	s := t.s
	s.mu.Lock()
	defer s.mu.Unlock()
	f := &s.guesses
	if f.off || t.open || layer < 0 || layer >= len(f.layers) {
		return
	}
	s.poll()
	if t.guess.layer != layer {
		t.dropGuesses()
		t.guess.layer, t.guess.rows = layer, rows
		f.out = append(f.out, t)
	}
	ahead := distance(early)
	g := &t.guess.made[ahead]
	g.at, g.cands = s.now(), append(g.cands[:0], cands...)
	f.measure()
	t.readAhead(ahead, f.room(layer, ahead, rows))
}

// manyRows is from how many rows on a pass is a prompt's: its arithmetic takes so
// long that the drives could carry far more than the slots kept free hold.
const manyRows = 32

// setAside gives up to n slots of the cache, half of it at most, to what is read
// ahead. A prompt's pass uses most experts of a layer anyway, so the coldest ones
// that make room for the next layer's are read once more at worst, while the drives
// would stand still during the attention of every layer.
func (s *Store) setAside(n int) {
	n = max(min(n, s.slots/2), 0)
	if n == s.aside {
		return
	}
	s.aside = n
	s.policy.SetLimit(s.keeps())
	s.evict()
	s.gauge()
}

// measure keeps the rate up to date.
func (f *foresight) measure() {
	if f.tick++; f.tick%rateEvery != 1 {
		return
	}
	f.s.set.Counters(&f.count)
	if len(f.paces) != len(f.count.Drives) {
		f.paces = make([]pace, len(f.count.Drives))
	}
	var rate float64
	for i := range f.count.Drives {
		d, p := &f.count.Drives[i], &f.paces[i]
		if p.note(d.Read, d.Busy); !d.Down {
			rate += p.rate
		}
	}
	if rate > 0 {
		f.rate = rate
	}
}

// pace is how fast one drive is while it has work. It follows the drive: loading the
// trunk, or a day before it got warm, says little about now.
type pace struct {
	read int64         // bytes, and
	busy time.Duration // the time they took, when it was looked at last
	rate float64       // bytes per second, 0 until it has read
}

// note takes in a reading of the drive's counters: half of the rate is of what was
// read since the last one. A drive that had no work since keeps its rate.
func (p *pace) note(read int64, busy time.Duration) {
	if took := busy - p.busy; took > 0 {
		now := float64(read-p.read) / took.Seconds()
		if p.rate > 0 {
			now = (p.rate + now) / 2
		}
		p.rate = now
	}
	p.read, p.busy = read, busy
}

// room is how many experts the drives can carry before a layer's router speaks,
// besides what they have been asked for already, and there are slots for.
func (f *foresight) room(layer, ahead, rows int) int {
	s := f.s
	gap := f.time(layer, ahead, rows)
	if gap == 0 {
		return 0
	}
	// One more than fits: what has not begun when the router speaks costs nothing.
	n := int(f.rate*gap.Seconds()/float64(s.cat.largest)+1) - s.reading
	if rows >= manyRows {
		s.setAside(n)
	}
	if s.slots < s.cat.Experts() {
		// Slots that a layer's own reads will want are left alone.
		n = min(n, s.slots-s.policy.Limit()-s.cat.topK/2-f.held)
	}
	return n
}

// readAhead reads the n most likely candidates that are not in memory.
func (t *Turn) readAhead(ahead, n int) {
	s, f := t.s, &t.s.guesses
	size := float64(s.cat.largest)
	had := len(t.guess.keys)
	for _, c := range t.guess.made[ahead].cands {
		if len(t.guess.keys)-had >= n {
			break
		}
		key := s.cat.index(t.guess.layer, int(c.Expert))
		if key < 0 || s.where[key] >= 0 {
			continue
		}
		p := f.chance(t.guess.layer, ahead, c.Class)
		if p < leastChance {
			continue
		}
		// Three times what it will cost on average, at most all of it.
		cost := size * min(3*(1-p), 1)
		if f.risk+cost > f.credit || !s.take(key) {
			break
		}
		f.risk += cost
		t.guess.risk += cost
		s.tenant(key).guess = true
		t.guess.keys = append(t.guess.keys, int32(key))
	}
	f.held += len(t.guess.keys) - had
	s.read(ssdio.Prefetch, t.guess.keys[had:])
}

// judge compares the guesses with what the layer that was just named needs. The
// recall that is reported is that of the later one.
func (t *Turn) judge() {
	f, g := &t.s.guesses, &t.guess
	if g.layer < 0 || g.layer != t.layer {
		return
	}
	l, now := &f.layers[t.layer], t.s.now()
	for ahead := range g.made {
		made := &g.made[ahead]
		if made.at.IsZero() {
			continue
		}
		l.gap[ahead][rowClass(g.rows)].note(now.Sub(made.at))
		f.all.gap[ahead][rowClass(g.rows)].note(now.Sub(made.at))
		foreseen := 0
		for i, c := range made.cands {
			_, right := t.index[int32(t.s.cat.index(t.layer, int(c.Expert)))]
			l.right[ahead][c.Class%Classes].note(right)
			f.all.right[ahead][c.Class%Classes].note(right)
			if right && i < len(t.uses) {
				foreseen++
			}
		}
		for i := range t.uses {
			l.recall[ahead].note(i < foreseen)
		}
		if ahead == 0 {
			t.s.counts[t.layer].judged.Add(int64(len(t.uses)))
			t.s.counts[t.layer].foreseen.Add(int64(foreseen))
		}
	}
}

// dropGuesses gives up what was read ahead and is not needed.
func (t *Turn) dropGuesses() {
	s, f, g := t.s, &t.s.guesses, &t.guess
	for i, o := range f.out {
		if o == t {
			f.out = append(f.out[:i], f.out[i+1:]...)
			break
		}
	}
	f.held -= len(g.keys)
	f.risk -= g.risk
	g.risk = 0
	for _, key := range g.keys {
		if s.where[key] < 0 {
			continue // its read failed
		}
		switch x := s.tenant(int(key)); {
		case !x.guess: // it was right
		case x.batch != nil:
			x.dropped = true
			x.batch.Cancel(x.index)
		default:
			s.leave(int(key))
		}
	}
	g.layer, g.keys = -1, g.keys[:0]
	for i := range g.made {
		g.made[i].at = time.Time{}
	}
}

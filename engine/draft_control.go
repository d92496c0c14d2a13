package engine

import (
	"math"
	"math/bits"
	"sync"
	"time"

	"deltafin/engine/lookup"
)

// maxDraftRows is the most rows of a draft pass, the token that is known included.
// Wider ones read fewer experts per row, but hold more (k3.DraftBytes), and a long
// draft is seldom right to its end.
const maxDraftRows = 16

const (
	// draftLoss is the share of a call's time that drafts may cost in all, beside what
	// they have saved. It is three quarters of the two percent that are promised, since
	// what a pass will cost is not known to the last bit.
	draftLoss = 0.015
	// advance is what a call may lose before it has saved anything, in plain steps, if
	// earlier calls have saved as much.
	advance = 1
	// dearest is how many times what was expected a step or a pass is taken to cost at
	// most: what takes longer was held up by something else.
	dearest = 2
	// worthwhile is how many times as fast the best width must be expected to be. Among
	// many guesses those that promise a little are mostly those that were overrated.
	worthwhile = 1.2
	// enoughSteps are the plain steps that have to be seen before the first draft.
	enoughSteps = 4
	// windowDrafts passes are followed by windowSteps plain steps: how long a step took
	// an hour ago says nothing.
	windowDrafts, windowSteps = 12, 3
	// firstPause to lastPause are the plain steps after which drafts are tried again
	// when they have lost for a while, whatever was expected of them.
	firstPause, lastPause = 32, 1024
)

// A draftControl decides how many tokens are worth drafting. It belongs to an Engine
// and learns from all its calls three things:
//
//   - how often a proposal is right, by the length of its match. That costs nothing: a
//     token that was generated without a draft says whether one would have been right;
//   - what a plain step takes, from the steps between the drafts;
//   - how the cost of a pass grows with its rows. Rows share experts, the more the
//     more there are: in measurements of several models the experts of n neighbouring
//     rows, and with them the time, grow like a power of n.
//
// From these follows how many tokens per second a draft of some width is expected to
// give. What it costs if all of it is wrong has to be covered by what the call's drafts
// have saved and by draftLoss of its time: so no run is much slower than without,
// whatever the text, and a text that does not repeat is not touched at all.
type draftControl struct {
	mu    sync.Mutex // guards below
	right [draftClasses]tally
	step  mean    // seconds of a plain step
	power float64 // of the rows, that a pass takes in plain steps: what it has over firstPower
	tried int     // passes that this comes from
	saved float64 // seconds, by all calls
	since int     // draft passes since the last window
	after bool    // nothing came after the latest draft pass yet
	owed  int     // plain steps that have to come before the next draft
	trend float64 // what the latest passes saved, in plain steps
	pause int     // plain steps of the last pause, 0 after drafts that paid
}

// firstPower is the power of the rows that is expected before any draft was seen: what
// was measured for few rows. It counts as firstWeight drafts.
const firstPower, firstWeight = 0.8, 3

// width is how many of have proposed tokens to draft after a match of some length, when
// the call has taken so long and its drafts have saved so much.
func (c *draftControl) width(match, have int, spent, saved time.Duration) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.since >= windowDrafts {
		c.since, c.owed = 0, max(c.owed, windowSteps)
	}
	if c.step.n < enoughSteps || c.owed > 0 {
		return 0
	}
	p, step := c.right[draftClass(match)].share(match), c.step.value
	credit := min(max(c.saved-saved.Seconds(), 0)/step, advance)
	room := credit + (draftLoss*spent.Seconds()+saved.Seconds())/step
	width, rate, best := 0, 1.0, 1.0 // within the room, and whatever the room
	tokens, likely := 1.0, 1.0
	for w := 1; w < maxDraftRows; w++ {
		likely *= p
		tokens += likely
		cost := c.cost(w + 1)
		best = max(best, tokens/cost)
		if w <= have && cost-1 <= room && tokens/cost > rate {
			width, rate = w, tokens/cost
		}
	}
	if best < worthwhile {
		return 0
	}
	return width
}

// cost is what a pass of some rows takes, in plain steps.
func (c *draftControl) cost(rows int) float64 {
	return math.Pow(float64(rows), firstPower+c.power)
}

// stepped learns from a plain step. The one after a draft pass finds caches as the pass
// left them: what it takes more is the pass's, and is returned as saved, below 0.
func (c *draftControl) stepped(took time.Duration) (saved time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owed = max(c.owed-1, 0)
	// What was seen of costs long ago is forgotten, or a bad moment would keep drafts
	// from being tried ever after.
	c.power -= c.power / 64
	t := took.Seconds()
	if c.step.n > 0 {
		t = min(t, dearest*c.step.value)
	}
	if c.after {
		c.after = false
		return c.gained(1 - t/c.step.value)
	}
	c.step.add(t)
	return 0
}

// drafted learns from a pass of rows of which some were kept, none if it failed, and
// says what it saved.
func (c *draftControl) drafted(rows, kept int, took time.Duration) (saved time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cost := min(took.Seconds()/c.step.value, dearest*c.cost(rows))
	if kept > 0 {
		c.tried++
		power := max(math.Log(cost)/math.Log(float64(rows)), 0) - firstPower
		c.power += (power - c.power) / float64(min(c.tried+firstWeight, 8))
	}
	c.since++
	c.after = true
	c.trend -= c.trend / 8
	saved = c.gained(float64(kept) - cost)
	switch {
	case c.trend < -2:
		c.pause = min(max(2*c.pause, firstPause), lastPause)
		c.owed, c.trend = c.pause, 0
	case c.trend > 2:
		c.pause = 0
	}
	return saved
}

// gained notes what drafts saved, in plain steps.
func (c *draftControl) gained(steps float64) time.Duration {
	c.trend += steps
	c.saved += steps * c.step.value
	return time.Duration(steps * c.step.value * float64(time.Second))
}

// judged learns how a proposal after a match fared: how many of its tokens were right,
// and whether one was wrong.
func (c *draftControl) judged(match, right int, wrong bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.right[draftClass(match)]
	for range right {
		t.add(1)
	}
	if wrong {
		t.add(0)
	}
}

// draftClasses tell matches apart by length: one by one first, then by doubling.
const draftClasses = 7

// draftClass is the class of a length: 2, 3, 4, 5 to 8, 9 to 16, 17 to 31 and the most.
func draftClass(match int) int {
	switch {
	case match >= lookup.Most:
		return draftClasses - 1
	case match <= 4:
		return match - 2
	}
	return bits.Len(uint(match - 1))
}

// A mean follows what it is given: the plain mean at first, then an eighth of each.
type mean struct {
	n     int
	value float64
}

func (m *mean) add(x float64) {
	m.n++
	m.value += (x - m.value) / float64(min(m.n, 8))
}

// A tally is how often something was true, the latest times most.
type tally struct{ times, hits float64 }

func (t *tally) add(hit float64) {
	const fade = 0.98
	t.times, t.hits = fade*t.times+1, fade*t.hits+hit
}

// share is how often it was. A few times outweigh the prejudice that it begins with: a
// longer match is right more often.
func (t *tally) share(match int) float64 {
	const weight = 4
	first := 1 - 2/float64(match+1) // 0.33 for two tokens, 0.94 for the most
	return (t.hits + weight*first) / (t.times + weight)
}

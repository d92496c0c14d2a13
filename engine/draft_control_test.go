package engine

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"deltafin/engine/lookup"
)

// A market is a text and a machine, for a draftControl to find its way in: every
// second in it is scripted.
type market struct {
	step                  func(at int) float64     // seconds of a plain step at a token
	power                 func(at int) float64     // of the rows, see draftControl
	right                 func(at int) (int, bool) // length of the match at a token, and whether the next token is right
	rng                   *rand.Rand               // noise of every duration
	noise                 float64                  // its size
	saw                   func(at, rows, kept int) // may be nil
	c                     *draftControl            // across calls
	plain, drafted, saved float64                  // seconds of all calls
}

// call generates tokens, with a prompt that took so many steps.
func (m *market) call(prompt float64, tokens int) {
	saved := time.Duration(0)
	spent := prompt * m.step(0)
	m.plain += spent
	m.drafted += spent
	seconds := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	for at := 0; at < tokens; {
		step := m.step(at)
		match, hit := m.right(at)
		width := 0
		if match > 0 {
			width = m.c.width(match, tokens-at-1, seconds(spent), saved)
		}
		took := step * (1 + m.noise*(2*m.rng.Float64()-1))
		if width == 0 {
			saved += m.c.stepped(seconds(took))
			if match > 0 {
				m.c.judged(match, map[bool]int{true: 1}[hit], !hit)
			}
			spent, m.drafted, m.plain = spent+took, m.drafted+took, m.plain+step
			at++
			continue
		}
		kept := 1
		for kept <= width && hit {
			kept++
			_, hit = m.right(at + kept - 1)
		}
		took *= math.Pow(float64(width+1), m.power(at))
		saved += m.c.drafted(width+1, kept, seconds(took))
		m.c.judged(match, kept-1, kept <= width)
		if m.saw != nil {
			m.saw(at, width+1, kept)
		}
		spent, m.drafted = spent+took, m.drafted+took
		for range kept {
			m.plain += m.step(at)
			at++
		}
	}
	m.saved += saved.Seconds()
}

func constant(x float64) func(int) float64 { return func(int) float64 { return x } }

// texts are how proposals fare: a token's match and whether it is right, by position.
var texts = map[string]func(rng *rand.Rand) func(at int) (int, bool){
	"nothing repeats": func(*rand.Rand) func(int) (int, bool) {
		return func(int) (int, bool) { return 0, false }
	},
	"short matches that mean nothing": func(rng *rand.Rand) func(int) (int, bool) {
		return func(int) (int, bool) { return 2 + rng.IntN(3), rng.IntN(4) == 0 }
	},
	"a coin": func(rng *rand.Rand) func(int) (int, bool) {
		return func(int) (int, bool) { return 6, rng.IntN(2) == 0 }
	},
	"copies": func(*rand.Rand) func(int) (int, bool) {
		return func(at int) (int, bool) { return min(2+at, lookup.Most), true }
	},
	"quotations": func(*rand.Rand) func(int) (int, bool) {
		return func(at int) (int, bool) { // 30 tokens of one's own, 30 that are copied
			if at%60 < 30 {
				return 0, false
			}
			return max(2, min(at%60-28, lookup.Most)), at%60 < 59
		}
	},
	"long matches that break off": func(*rand.Rand) func(int) (int, bool) {
		return func(at int) (int, bool) { return lookup.Most, at%3 != 0 }
	},
	"turns": func(rng *rand.Rand) func(int) (int, bool) { // copies, then long matches that are all wrong
		return func(at int) (int, bool) { return lookup.Most, at%200 < 100 }
	},
	"trap": func(rng *rand.Rand) func(int) (int, bool) { // right one by one, wrong in a row
		return func(at int) (int, bool) { return lookup.Most, at%2 == 0 }
	},
}

// TestDraftsNeverLose: whatever the text, the machine and the noise, a run takes at
// most two percent longer than without drafts; and where there is something to gain,
// most of it is gained.
func TestDraftsNeverLose(t *testing.T) {
	for name, text := range texts {
		for _, power := range []float64{0, 0.5, 0.75, 0.9, 1} {
			for _, noise := range []float64{0, 0.3} {
				for _, calls := range [][2]int{{1, 60}, {1, 300}, {1, 3000}, {12, 100}} {
					rng := rand.New(rand.NewPCG(9, uint64(calls[1])))
					m := market{step: constant(1.5), power: constant(power), right: text(rng), rng: rng, noise: noise, c: &draftControl{}}
					for range calls[0] {
						m.call(5, calls[1])
					}
					loss := m.drafted/m.plain - 1
					if loss > 0.02+noise/50 { // the noise of so many steps
						t.Errorf("%s, power %v, noise %v, %d calls of %d tokens: %.2f %% slower", name, power, noise, calls[0], calls[1], 100*loss)
					}
					if drift := math.Abs(m.saved-(m.plain-m.drafted)) / m.plain; drift > 0.05+noise/5 {
						t.Errorf("%s, power %v, noise %v, %d tokens: %.1f s are said to be saved, it was %.1f of %.1f", name, power, noise, calls[1], m.saved, m.plain-m.drafted, m.plain)
					}
					// After some steps to begin with, most of what is possible.
					best := math.Pow(maxDraftRows, 1-power)
					if most := 60 + float64(calls[1])/(0.7*best); name == "copies" && power < 0.8 && calls[0] == 1 && calls[1] >= 300 && m.drafted > 1.5*most {
						t.Errorf("%s, power %v, noise %v, %d tokens: %.0f steps, without drafts %.0f", name, power, noise, calls[1], m.drafted/1.5, m.plain/1.5)
					}
				}
			}
		}
	}
}

// TestDraftsFollowTheMachine: a machine whose reads become slower, and for which more
// rows suddenly cost as much as more steps, is found out; when that is over, drafts
// come back.
func TestDraftsFollowTheMachine(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	phase := func(at int) int { return at / 2000 }
	rows := map[int]int{} // drafted, by phase
	m := market{
		step:  func(at int) float64 { return []float64{1, 3, 0.5}[phase(at)] },
		power: func(at int) float64 { return []float64{0.7, 1.1, 0.7}[phase(at)] },
		right: texts["copies"](rng), rng: rng, noise: 0.1, c: &draftControl{},
		saw: func(at, n, _ int) { rows[phase(at)] += n },
	}
	m.call(5, 5999)
	if m.drafted > m.plain*0.88 || rows[0] < 1500 || rows[1] > 600 || rows[2] < 1000 {
		t.Errorf("%.0f s, without drafts %.0f; rows drafted in the three phases: %v", m.drafted, m.plain, rows)
	}
}

// TestOnlyWhatIsSavedIsRisked: proposals that everything speaks for and that are all
// wrong cost what was saved and the share of the time that is allowed, no more.
func TestOnlyWhatIsSavedIsRisked(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	c := &draftControl{}
	m := market{step: constant(2), power: constant(0.8), rng: rng, c: c,
		right: func(int) (int, bool) {
			c.right[draftClass(lookup.Most)] = tally{1000, 1000}
			c.trend, c.owed, c.pause = 0, 0, 0
			return lookup.Most, false
		}}
	drafts := 0
	m.saw = func(_, _, _ int) { drafts++ }
	m.call(0, 2000)
	if loss := m.drafted/m.plain - 1; loss > 0.016 || drafts < 5 {
		t.Errorf("%d drafts that were all wrong cost %.2f %%", drafts, 100*loss)
	}
}

func TestDraftClasses(t *testing.T) {
	last := 0
	for match := lookup.Least; match <= lookup.Most+1; match++ {
		k := draftClass(match)
		if k < last || k > last+1 || k >= draftClasses {
			t.Fatalf("a match of %d is of class %d, after %d", match, k, last)
		}
		last = k
	}
	if draftClass(lookup.Least) != 0 || last != draftClasses-1 {
		t.Errorf("classes from %d to %d", draftClass(lookup.Least), last)
	}
}

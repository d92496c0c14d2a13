package expert

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// ahead names candidates of one class.
func ahead(class uint8, experts ...int32) []Candidate {
	var out []Candidate
	for _, e := range experts {
		out = append(out, Candidate{Expert: e, Class: class})
	}
	return out
}

// trained returns a bench whose layer l expects a gap of a second and trusts class
// 1 but not class 2. Its clock stands still.
func trained(t *testing.T, spec string, slots int) (*bench, int) {
	t.Helper()
	b := newBench(t, "tiny-a", spec, slots)
	l := b.layers[1]
	f := &b.guesses.layers[l]
	f.gap[0][0] = gap{time.Second, 1}
	for range memory {
		f.right[0][1].note(true)
		f.right[0][2].note(false)
	}
	return b, l
}

// TestReadAhead: what is likely is read before it is asked for, counts as in time,
// and is not read again.
func TestReadAhead(t *testing.T) {
	b, l := trained(t, "", 1000)
	b.Guess(l, 1, false, append(ahead(1, 4, 7), ahead(2, 5)...))
	if len(b.guess.keys) != 2 {
		t.Fatalf("%d experts are read ahead, want the 2 likely ones", len(b.guess.keys))
	}
	for b.reading > 0 { // let them land
		r := <-b.landed
		b.land(&r)
	}
	b.run(t, l, []Want{{7, 1}, {4, 1}, {2, 1}})
	b.settled(t)
	var st Stats
	b.Stats(&st)
	if c := st.Total; c.InTime != 2 || c.Missed != 1 || c.Late+c.Hit+c.Unused+c.Wasted != 0 || c.Judged != 3 || c.Foreseen != 2 {
		t.Errorf("after two right guesses: %+v", c)
	}
	b.run(t, l, []Want{{7, 1}, {4, 1}})
	if b.Stats(&st); st.Total.Hit != 2 {
		t.Errorf("what was read ahead and used is not in the cache: %+v", st.Total)
	}
}

// TestEarlyGuess: a second guess for a layer keeps what the first one reads, and
// the last one is judged.
func TestEarlyGuess(t *testing.T) {
	b, l := trained(t, "", 1000)
	b.guesses.layers[l].gap[1][0], b.guesses.layers[l].right[1][1] = gap{time.Second, 1}, chance{memory, memory}
	b.Guess(l, 1, true, ahead(1, 4))
	b.Guess(l, 1, false, ahead(1, 7, 4))
	if len(b.guess.keys) != 2 || b.guesses.held != 2 || len(b.guesses.out) != 1 {
		t.Fatalf("%d experts are read ahead, %d held, %d outstanding", len(b.guess.keys), b.guesses.held, len(b.guesses.out))
	}
	b.run(t, l, []Want{{7, 1}, {4, 1}})
	b.settled(t)
	var st Stats
	if b.Stats(&st); st.Total.InTime+st.Total.Late != 2 || st.Total.Foreseen != 2 || b.guesses.held != 0 {
		t.Errorf("after two guesses: %+v", st.Total)
	}
}

// TestLate: an expert that the arithmetic had to wait for, although its read had
// been sent before it was asked for, is late.
func TestLate(t *testing.T) {
	b, l := trained(t, ",latency=20ms", 1000)
	b.Guess(l, 1, false, ahead(1, 4))
	b.run(t, l, []Want{{4, 1}})
	var st Stats
	if b.Stats(&st); st.Total.Late != 1 || st.Total.Uses() != 1 || st.Total.Stall == 0 {
		t.Errorf("waited for what was read ahead: %+v", st.Total)
	}
}

// TestGivenUpAndAskedFor: an expert whose early read was given up, and is waited for
// before that has come back, is read again: one use, which missed and was not late.
func TestGivenUpAndAskedFor(t *testing.T) {
	b, l := trained(t, ",latency=20ms", 1000)
	b.Guess(l, 1, false, ahead(1, 4))
	b.End() // no layer was opened
	b.run(t, l, []Want{{4, 1}})
	b.settled(t)
	var st Stats
	if b.Stats(&st); st.Total.Missed != 1 || st.Total.Uses() != 1 || st.Total.Stall == 0 {
		t.Errorf("given up and asked for: %+v", st.Total)
	}
}

// TestWrongGuess: a wrong guess that has arrived is thrown out when the cache is
// full of warmer ones, and counted; one that nobody opens a layer for is taken back.
func TestWrongGuess(t *testing.T) {
	b, l := trained(t, "", 3+3+2)
	for range 3 { // fill the cache with what is used often
		b.run(t, b.layers[0], []Want{{1, 1}, {2, 1}, {3, 1}})
		b.run(t, b.layers[2], []Want{{1, 1}, {2, 1}, {3, 1}})
	}
	land := func() {
		for b.reading > 0 {
			r := <-b.landed
			b.land(&r)
		}
	}
	b.Guess(l, 1, false, ahead(1, 4))
	land()
	b.run(t, l, []Want{{8, 1}})
	b.settled(t)
	var st Stats
	if b.Stats(&st); st.Total.Unused != 1 || st.Total.Wasted != b.cat.Largest() {
		t.Errorf("a wrong guess: %+v", st.Total)
	}
	credit := b.guesses.credit
	b.Guess(l, 1, false, ahead(1, 5))
	land()
	b.End()
	b.settled(t)
	if b.guesses.held != 0 || len(b.guesses.out) != 0 || b.guesses.credit >= credit {
		t.Errorf("a guess that no layer was opened for: %d held, %d outstanding, credit %g of %g", b.guesses.held, len(b.guesses.out), b.guesses.credit, credit)
	}
}

// TestWasteIsBounded: guesses that are always wrong, made by somebody who is sure of
// them, cost no more than the credit, a fiftieth of what was useful, and the guess in
// flight when the credit ran out.
func TestWasteIsBounded(t *testing.T) {
	b, _ := trained(t, "", 3+3+4)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 400 {
		l := b.layers[rng.IntN(len(b.layers))]
		f := &b.guesses.layers[l]
		f.gap[0][0], f.right[0][1] = gap{time.Second, 1}, chance{memory, memory}
		p := rng.Perm(b.cat.experts)
		b.Guess(l, 1, false, ahead(1, int32(p[3]), int32(p[4])))
		for b.reading > 0 {
			r := <-b.landed
			b.land(&r)
		}
		b.run(t, l, []Want{{int32(p[0]), 1}, {int32(p[1]), 1}, {int32(p[2]), 1}})
		b.settled(t)
	}
	var st Stats
	b.Stats(&st)
	if limit := st.Total.Useful/50 + (wasteStart+2)*b.cat.Largest(); st.Total.Wasted > limit || st.Total.Wasted == 0 {
		t.Errorf("%d bytes were wasted beside %d useful ones, want at most %d", st.Total.Wasted, st.Total.Useful, limit)
	}
}

// TestUselessGuessesEnd: a layer whose guesses foresee nothing is left alone, but
// for a look now and then; one that foresees everything goes on.
func TestUselessGuessesEnd(t *testing.T) {
	b, _ := trained(t, "", 3+3+4)
	bad, good := b.layers[0], b.layers[1]
	made := map[int]int{}
	const tokens = 10 * probeEvery
	for range tokens {
		for _, l := range []int{bad, good} {
			e := int32(1)
			if l == bad {
				e = 9
			}
			if b.Ahead(l, false) {
				made[l]++
				b.Guess(l, 1, false, ahead(3, e))
			}
			b.run(t, l, []Want{{1, 1}})
		}
	}
	if made[good] != tokens {
		t.Errorf("%d of %d right guesses were asked for", made[good], tokens)
	}
	if n := made[bad]; n < tokens/probeEvery || n > tokens/8 {
		t.Errorf("%d of %d useless guesses were asked for", n, tokens)
	}
}

// TestTurnsShare: turns at random over the same layers, with guesses right and
// wrong, faults of the drive and layers given up, each get the right bytes, and all
// slots are accounted for in the end.
func TestTurnsShare(t *testing.T) {
	for _, slots := range []int{3, 4, 6, 20, 1000} {
		b := newBench(t, "tiny-a", ",latency=30us,jitter=200us,fault=error/after=40/count=3", slots)
		for i := range b.guesses.layers {
			f := &b.guesses.layers[i]
			f.gap[0][0], f.right[0][1] = gap{time.Second, 1}, chance{memory, memory}
		}
		b.guesses.credit = 1e12
		var group sync.WaitGroup
		for k := range 3 {
			group.Add(1)
			go func() {
				defer group.Done()
				w := &bench{Store: b.Store, Turn: b.NewTurn(nil), ck: b.ck, cat: b.cat, layers: b.layers}
				w.wander(t, rand.New(rand.NewPCG(uint64(k), uint64(slots))))
			}()
		}
		group.Wait()
		for b.reading > 0 { // guesses that were given up
			r := <-b.landed
			b.land(&r)
		}
		b.settled(t)
		if b.guesses.held != 0 || len(b.turns) != 0 || len(b.guesses.out) != 0 {
			t.Errorf("%d slots: %d guesses, %d turns and %d outstanding are left", slots, b.guesses.held, len(b.turns), len(b.guesses.out))
		}
	}
}

// wander takes layers at random, some of them in part.
func (b *bench) wander(t *testing.T, rng *rand.Rand) {
	for range 150 {
		layer, n := b.layers[rng.IntN(3)], 1+rng.IntN(4)
		if rng.IntN(8) == 0 {
			n = 1 + rng.IntN(b.cat.experts)
		}
		want := b.want(rng, n)
		if rng.IntN(2) == 0 {
			b.Guess(layer, 1, false, ahead(1, want[0].Expert, int32(rng.IntN(b.cat.experts))))
		}
		if rng.IntN(10) == 0 {
			b.End() // the guess was for nothing
		}
		if err := b.Begin(t.Context(), layer, want); err != nil {
			t.Error(err)
		}
		for left := n; left > 0; left-- {
			i, data, ok, err := b.Next(true)
			if err != nil || !ok || rng.IntN(40) == 0 {
				break // given up in the middle
			}
			b.check(t, layer, want[i].Expert, data)
			b.Done(i)
		}
		b.End()
	}
}

// TestPromptSetsSlotsAside: before a layer of a prompt more is read ahead than the
// slots that are always kept free hold, up to half of the cache, by what other
// layers have taught; the next token has the cache back.
func TestPromptSetsSlotsAside(t *testing.T) {
	b := newBench(t, "tiny-a", "", 24)
	for _, l := range b.layers { // fill the cache
		b.run(t, l, []Want{{1, 1}, {2, 1}, {3, 1}, {4, 1}, {5, 1}})
	}
	before := b.policy.Limit()
	f := &b.guesses
	f.credit = 1e12
	f.all.gap[0][rowClass(64)] = gap{time.Second, 1}
	f.all.right[0][1] = chance{memory, memory}
	l := b.layers[len(b.layers)-1]
	b.Guess(l, 64, false, ahead(1, 6, 7, 8, 9, 10, 0, 1, 2, 3))
	if n := b.policy.Limit(); n < before-12 || n >= before {
		t.Errorf("the cache may hold %d experts during a prompt, %d before", n, before)
	}
	if n := len(b.guess.keys); n <= b.headroom(24) {
		t.Errorf("%d experts are read ahead, no more than the %d slots that are always free", n, b.headroom(24))
	}
	b.run(t, l, []Want{{6, 20}, {7, 20}, {8, 20}, {9, 20}})
	b.run(t, b.layers[0], []Want{{1, 1}, {2, 1}})
	b.settled(t)
	if n := b.policy.Limit(); n != before {
		t.Errorf("the cache may hold %d experts after the prompt, %d before", n, before)
	}
}

// TestPaceFollowsTheDrive: a drive that was slow once is not taken for slow for ever,
// and one without work keeps its rate.
func TestPaceFollowsTheDrive(t *testing.T) {
	var p pace
	for i, c := range []struct {
		read int64
		busy time.Duration
		rate float64
	}{
		{0, 0, 0},
		{4e8, time.Second, 4e8},              // loading
		{4e8, time.Second, 4e8},              // nothing to do
		{24e8, 2 * time.Second, 12e8},        // at work, five times as fast
		{44e8, 3 * time.Second, 16e8},        // and again
		{45e8, 3500 * time.Millisecond, 9e8}, // warm
	} {
		if p.note(c.read, c.busy); p.rate != c.rate {
			t.Errorf("reading %d: %g bytes/s, want %g", i, p.rate, c.rate)
		}
	}
}

package k3

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
)

// arriving is a Feed whose experts come in random order and in random company, and
// whose matrices are gone after Done and End.
type arriving struct {
	Experts
	seed uint64
}

func (a arriving) NewFeed() Feed {
	return &arrivingFeed{Feed: a.Experts.NewFeed(), rng: rand.New(rand.NewPCG(a.seed, 1))}
}

type arrivingFeed struct {
	Feed
	rng   *rand.Rand
	there []int
	all   []Expert
	given map[int]*Expert

	guessed int
}

func (f *arrivingFeed) Streams() bool { return true }

func (f *arrivingFeed) Ahead(int, bool) bool { return true }

func (f *arrivingFeed) Guess(layer, rows int, _ bool, likely []Want) {
	seen := map[int32]bool{}
	for i, w := range likely {
		if seen[w.Expert] || w.Rows < 1 || int(w.Rows) > rows || i > 0 && w.Rows > likely[i-1].Rows {
			panic(fmt.Sprintf("layer %d: guess %v of %d rows", layer, likely, rows))
		}
		seen[w.Expert] = true
	}
	f.guessed++
}

func (f *arrivingFeed) Begin(ctx context.Context, layer int, want []Want) error {
	if err := f.Feed.Begin(ctx, layer, want); err != nil {
		return err
	}
	f.there, f.all, f.given = f.rng.Perm(len(want)), make([]Expert, len(want)), map[int]*Expert{}
	for range want {
		i, x, ok, err := f.Feed.Next(true)
		if err != nil || !ok {
			return fmt.Errorf("expert %d of %d: %v", i, len(want), err)
		}
		f.all[i] = x
	}
	return nil
}

func (f *arrivingFeed) Next(wait bool) (int, Expert, bool, error) {
	if len(f.there) == 0 || !wait && f.rng.IntN(2) == 0 {
		return 0, Expert{}, false, nil
	}
	i := f.there[0]
	f.there = f.there[1:]
	f.given[i] = &f.all[i]
	return i, f.all[i], true, nil
}

func (f *arrivingFeed) Done(i int) { delete(f.given, i) }

func (f *arrivingFeed) End() {
	if len(f.given) > 0 || len(f.there) > 0 {
		panic("experts were not taken or not given back")
	}
	f.Feed.End()
}

// TestSameBitsHoweverExpertsArrive: order and company of arrival change nothing.
func TestSameBitsHoweverExpertsArrive(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		dir := filepath.Join("..", "testdata", "golden", name)
		g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
		ids := g.IDs[:24]
		if testing.Short() {
			ids = ids[:8]
		}
		pool := newPool(t, 2)
		want, wantState := runIn(t, m, pool, ids, 1)
		for seed := range uint64(4) {
			for _, size := range []int{1, 7, len(ids)} {
				what := fmt.Sprintf("%s/seed %d/rows of %d", name, seed, size)
				got, st := runIn(t, m.WithExperts(arriving{m.experts, seed}), pool, ids, size)
				sameBits(t, what, got.position, want.position)
				sameState(t, what, st, wantState)
			}
		}
	}
}

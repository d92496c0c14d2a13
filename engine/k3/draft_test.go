package k3

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"deltafin/engine/kernel"
)

// TestKeptRowsAreSteps: whatever a draft of n rows is kept of, m rows of it leave the
// logits and the state that m single steps leave, bit for bit, and the sequence goes
// on alike.
func TestKeptRowsAreSteps(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		dir := filepath.Join("..", "testdata", "golden", name)
		g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
		ctx, levels := t.Context(), kernel.Levels()
		for i, start := range []int{0, 2, 17} {
			level, workers := levels[i%len(levels)], 1+i%3
			pool := kernel.NewPool(level, workers)
			plain, r := m.NewRunner(pool), m.NewRunner(pool)
			begin := m.NewState()
			if _, err := plain.Forward(ctx, begin, g.IDs[:start], NoLogits); err != nil {
				t.Fatal(err)
			}
			for _, n := range []int{1, 2, 3, 4, 5, 8} { // fewer and more than the convolution looks back
				// Single steps: the logits and a state after each.
				ids, states, steps := g.IDs[start:start+n], []*State{begin}, []float32(nil)
				for _, id := range ids {
					st := states[len(states)-1].Clone()
					lg, err := plain.Forward(ctx, st, []int{id}, LastLogits)
					if err != nil {
						t.Fatal(err)
					}
					states, steps = append(states, st), append(steps, lg...)
				}
				for keep := range n + 1 {
					what := fmt.Sprintf("%s/%s/%d workers/%d rows at %d, %d kept", name, level.Name, workers, n, start, keep)
					st := begin.Clone()
					lg, err := r.ForwardDraft(ctx, st, ids)
					if err != nil {
						t.Fatal(err)
					}
					sameBits(t, what+": logits", lg, steps)
					if !st.Broken() {
						t.Fatalf("%s: the state is not broken before Commit", what)
					}
					if err := r.Commit(st, keep); err != nil {
						t.Fatal(err)
					}
					sameState(t, what, st, states[keep])
					// Other ids than the draft's, and a draft that is kept whole.
					next := []int{g.IDs[start+n+keep], g.IDs[start+2]}
					want := states[keep].Clone()
					a, err := plain.Forward(ctx, want, next, AllLogits)
					if err != nil {
						t.Fatal(err)
					}
					b, err := r.ForwardDraft(ctx, st, next)
					if err != nil {
						t.Fatal(err)
					}
					sameBits(t, what+": logits after it", b, a)
					if err := r.Commit(st, 2); err != nil {
						t.Fatal(err)
					}
					sameState(t, what+", after it", st, want)
				}
			}
			pool.Close()
		}
	}
}

// TestKeepAgain: rows can be taken away and given back in any order until the next
// pass, also while the Runner serves other sequences.
func TestKeepAgain(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-a")
	g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
	pool, ctx, rng := newPool(t, 2), t.Context(), rand.New(rand.NewPCG(3, 1))
	r, st := m.NewRunner(pool), m.NewState()
	if _, err := r.Forward(ctx, st, g.IDs[:6], NoLogits); err != nil {
		t.Fatal(err)
	}
	states := []*State{st.Clone()}
	for _, id := range g.IDs[6:14] {
		next := states[len(states)-1].Clone()
		if _, err := r.Forward(ctx, next, []int{id}, NoLogits); err != nil {
			t.Fatal(err)
		}
		states = append(states, next)
	}
	if _, err := r.ForwardDraft(ctx, st, g.IDs[6:14]); err != nil {
		t.Fatal(err)
	}
	other := m.NewState()
	for i := range 30 {
		if i%3 == 0 {
			if _, err := r.Forward(ctx, other, g.IDs[i%4:i%4+3], NoLogits); err != nil {
				t.Fatal(err)
			}
		}
		keep := rng.IntN(len(states))
		if err := r.Commit(st, keep); err != nil {
			t.Fatal(err)
		}
		sameState(t, fmt.Sprintf("Commit %d keeps %d", i, keep), st, states[keep])
		sameState(t, "its clone", st.Clone(), states[keep])
	}
	// A pass of the sequence ends it.
	if _, err := r.Forward(ctx, st, g.IDs[:1], NoLogits); err != nil {
		t.Fatal(err)
	}
	if err := r.Commit(st, 1); err == nil {
		t.Error("rows were taken away from under a later one")
	}
}

// TestInterruptedDraftLeavesTheState: a draft pass that is cancelled, or whose weights
// cannot be read, at any layer leaves the state of before, which goes on.
func TestInterruptedDraftLeavesTheState(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-a")
	g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
	pool := newPool(t, 2)
	begin := m.NewState()
	if _, err := m.NewRunner(pool).Forward(t.Context(), begin, g.IDs[:7], NoLogits); err != nil {
		t.Fatal(err)
	}
	enough, lost := errors.New("enough"), errors.New("drive lost")
	for layer := range m.cfg.Layers - 1 {
		r, st := m.NewRunner(pool), begin.Clone()
		ctx, cancel := context.WithCancelCause(t.Context())
		r.Observe = &Observer{Layer: func(l int) {
			if l == layer {
				cancel(enough)
			}
		}}
		if _, err := r.ForwardDraft(ctx, st, g.IDs[7:12]); !errors.Is(err, enough) {
			t.Fatalf("cancelled after layer %d: %v", layer, err)
		}
		sameState(t, fmt.Sprintf("cancelled after layer %d", layer), st, begin)
		if err := r.Commit(st, 1); err == nil || st.Broken() {
			t.Errorf("after layer %d: a row that was not computed can be kept (%v), or the state is broken (%v)", layer, err, st.Broken())
		}
	}
	bad := m.WithExperts(failing{m.experts, 6, lost})
	r, st := bad.NewRunner(pool), begin.Clone()
	if _, err := r.ForwardDraft(t.Context(), st, g.IDs[7:12]); !errors.Is(err, lost) {
		t.Errorf("lost expert: %v", err)
	}
	sameState(t, "after a lost expert", st, begin)
}

func TestDraftRefusesWhatCannotBe(t *testing.T) {
	m := openModel(t, filepath.Join("..", "testdata", "golden", "tiny-b"))
	r, st, ctx := m.NewRunner(newPool(t, 1)), m.NewState(), t.Context()
	if err := r.Commit(st, 0); err == nil {
		t.Error("rows of no draft were kept")
	}
	for _, ids := range [][]int{nil, {1, m.cfg.Vocab}, make([]int, m.cfg.MaxContext+1)} {
		if _, err := r.ForwardDraft(ctx, st, ids); err == nil || st.Broken() || st.Pos() != 0 {
			t.Errorf("%d ids: %v, broken %v, at %d", len(ids), err, st.Broken(), st.Pos())
		}
	}
	if _, err := r.ForwardDraft(ctx, st, []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ForwardDraft(ctx, st, []int{1, 2}); !errors.Is(err, ErrBroken) {
		t.Errorf("a draft on top of one that waits: %v", err)
	}
	for _, keep := range []int{-1, 3} {
		if err := r.Commit(st, keep); err == nil {
			t.Errorf("%d of 2 rows were kept", keep)
		}
	}
	if err := r.Commit(m.NewState(), 1); err == nil {
		t.Error("rows of another state were kept")
	}
}

// TestDraftBytes compares what is foretold with what a Runner holds.
func TestDraftBytes(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		m := openModel(t, "../testdata/golden/"+name)
		for _, rows := range []int{1, 2, 5, 16} {
			ids, size := slices.Repeat([]int{3}, rows), [2]int64{}
			for i := range size {
				r, err := m.NewRunner(newPool(t, 2)), error(nil)
				if i == 0 {
					_, err = r.Forward(t.Context(), m.NewState(), ids, LastLogits)
				} else {
					_, err = r.ForwardDraft(t.Context(), m.NewState(), ids)
				}
				if err != nil {
					t.Fatal(err)
				}
				seen := map[uintptr]bool{}
				size[i] = held(reflect.ValueOf(r).Elem(), seen)
				for k := range r.draft.layers {
					size[i] += held(reflect.ValueOf(r.draft.layers[k]), seen)
				}
			}
			got, want := size[1]-size[0], DraftBytes(m.cfg, rows)
			if d := want - got; d < -1024-want/20 || d > want/20+1024 {
				t.Errorf("%s, %d rows: %d bytes are foretold, %d held", name, rows, want, got)
			}
		}
	}
}

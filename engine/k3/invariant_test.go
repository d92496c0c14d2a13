package k3

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"deltafin/engine/kernel"
)

// sameBits fails unless the two are equal bit for bit.
func sameBits(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: value %d is %x, want %x", what, i, got[i], want[i])
		}
	}
}

func sameState(t *testing.T, what string, got, want *State) {
	t.Helper()
	if got.pos != want.pos {
		t.Fatalf("%s: state at %d, want %d", what, got.pos, want.pos)
	}
	for l := range got.layers {
		a, b := got.layers[l], want.layers[l]
		sameBits(t, fmt.Sprintf("%s: KDA state of layer %d", what, l), a.s, b.s)
		sameBits(t, fmt.Sprintf("%s: convolution rows of layer %d", what, l), a.conv, b.conv)
		sameBits(t, fmt.Sprintf("%s: latents of layer %d", what, l), a.latent, b.latent)
	}
}

// TestSameBitsHoweverItIsCut is invariant 1 of the architecture inside the
// forward pass: one prefill of n rows, single steps, odd pieces, any number of
// workers and every kernel level give the same logits, routes and state.
func TestSameBitsHoweverItIsCut(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		dir := filepath.Join("..", "testdata", "golden", name)
		g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
		g.IDs = g.IDs[:40] // enough for every block and bank of the models
		if testing.Short() {
			g.IDs = g.IDs[:12]
		}
		generic := kernel.Levels()[0]
		one := kernel.NewPool(generic, 1)
		t.Cleanup(one.Close)
		want, wantState := runIn(t, m, one, g.IDs, 1)
		for _, level := range kernel.Levels() {
			for _, workers := range []int{1, 3} {
				for _, size := range []int{1, 2, 7, len(g.IDs)} {
					what := fmt.Sprintf("%s/%s/%d workers/rows of %d", name, level.Name, workers, size)
					pool := kernel.NewPool(level, workers)
					got, st := runIn(t, m, pool, g.IDs, size)
					pool.Close()
					sameBits(t, what+": logits", got.position, want.position)
					sameState(t, what, st, wantState)
					for l, e := range want.experts {
						if !slices.Equal(got.experts[l], e) {
							t.Fatalf("%s: layer %d chose other experts", what, l)
						}
						sameBits(t, what+": router weights", got.weights[l], want.weights[l])
					}
				}
			}
		}
	}
}

// TestCloneContinuesAlike: at every position a clone goes on to the same bits, and
// what the original does meanwhile does not reach it.
func TestCloneContinuesAlike(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-a")
	g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
	r := m.NewRunner(newPool(t, 2))
	ctx, ids := context.Background(), g.IDs[:24]
	var clones []*State
	var want [][]float32
	st := m.NewState()
	for _, id := range ids {
		clones = append(clones, st.Clone())
		lg, err := r.Forward(ctx, st, []int{id}, LastLogits)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, slices.Clone(lg))
	}
	for at, c := range clones {
		if c.Pos() != at {
			t.Fatalf("clone %d stands at %d", at, c.Pos())
		}
		lg, err := r.Forward(ctx, c, ids[at:], AllLogits)
		if err != nil {
			t.Fatal(err)
		}
		for i := at; i < len(ids); i++ {
			sameBits(t, fmt.Sprintf("clone at %d, position %d", at, i), lg[(i-at)*m.cfg.Vocab:(i-at+1)*m.cfg.Vocab], want[i])
		}
		sameState(t, "after a clone", c, st)
	}
	if got, want := st.Bytes(), StateBytes(m.cfg, st.Pos()); got < want {
		t.Errorf("the state holds %d bytes, by arithmetic it needs %d", got, want)
	}
}

// TestCompanyInOnePass: sequences that share passes, in pieces of any size and with
// others before and after them, get the logits and states they get alone.
func TestCompanyInOnePass(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-c"} {
		dir := filepath.Join("..", "testdata", "golden", name)
		g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
		pool := newPool(t, 2)
		seqs := [][]int{g.IDs[:20], g.IDs[3:15], g.IDs[9:10], g.IDs[5:24]}
		rng := rand.New(rand.NewPCG(7, 7))
		for round := range 4 {
			r := m.NewRunner(pool)
			states, got, done := make([]*State, len(seqs)), make([][]float32, len(seqs)), make([]int, len(seqs))
			for i := range states {
				states[i] = m.NewState()
			}
			for left := true; left; {
				var parts []Part
				var whose []int
				for _, i := range rng.Perm(len(seqs)) {
					if left := len(seqs[i]) - done[i]; left > 0 && rng.IntN(3) > 0 {
						n := 1 + rng.IntN(left)
						parts, whose = append(parts, Part{states[i], seqs[i][done[i] : done[i]+n]}), append(whose, i)
						done[i] += n
					}
				}
				if len(parts) == 0 {
					continue
				}
				lg, err := r.ForwardAll(context.Background(), parts, AllLogits)
				if err != nil {
					t.Fatal(err)
				}
				for k, i := range whose {
					n := len(parts[k].IDs) * m.cfg.Vocab
					got[i] = append(got[i], lg[:n]...)
					lg = lg[n:]
				}
				left = false
				for i := range seqs {
					left = left || done[i] < len(seqs[i])
				}
			}
			for i, ids := range seqs {
				want, st := runIn(t, m, pool, ids, len(ids))
				sameBits(t, fmt.Sprintf("%s/round %d/sequence %d", name, round, i), got[i], want.position)
				sameState(t, fmt.Sprintf("%s/round %d/sequence %d", name, round, i), states[i], st)
			}
		}
	}
}

// TestLastRowsOfParts: the last logits of a pass are one row per part.
func TestLastRowsOfParts(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-b")
	g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
	pool := newPool(t, 2)
	r := m.NewRunner(pool)
	a, b := g.IDs[:7], g.IDs[4:9]
	lg, err := r.ForwardAll(context.Background(), []Part{{m.NewState(), a}, {m.NewState(), b}}, LastLogits)
	if err != nil {
		t.Fatal(err)
	}
	v := m.cfg.Vocab
	for i, ids := range [][]int{a, b} {
		want, _ := runIn(t, m, pool, ids, len(ids))
		sameBits(t, fmt.Sprintf("part %d", i), lg[i*v:(i+1)*v], want.position[(len(ids)-1)*v:])
	}
	st := m.NewState()
	if _, err := r.ForwardAll(context.Background(), []Part{{st, a}, {st, b}}, NoLogits); err == nil {
		t.Error("one sequence twice in a pass was taken")
	}
	if _, err := r.ForwardAll(context.Background(), []Part{{st, a}, {m.NewState(), nil}}, NoLogits); err == nil {
		t.Error("a part without tokens was taken")
	}
}

// TestCompanyDoesNotMatter: two sequences taking turns in one Runner do not touch
// each other.
func TestCompanyDoesNotMatter(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-c")
	g, m := readGolden(t, filepath.Join(dir, "vectors.json")), openModel(t, dir)
	pool := newPool(t, 2)
	alone, _ := runIn(t, m, pool, g.IDs, len(g.IDs))
	r, a, b := m.NewRunner(pool), m.NewState(), m.NewState()
	ctx := context.Background()
	var got []float32
	for i := 0; i < len(g.IDs); i += 5 {
		piece := g.IDs[i:min(i+5, len(g.IDs))]
		lg, err := r.Forward(ctx, a, piece, AllLogits)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, lg...)
		if _, err := r.Forward(ctx, b, []int{g.IDs[len(g.IDs)-1-i], 3, 1}, NoLogits); err != nil {
			t.Fatal(err)
		}
	}
	sameBits(t, "logits in company", got, alone.position)
}

// failing serves experts until one is asked for that it refuses.
type failing struct {
	Experts
	layer int
	err   error
}

func (f failing) NewFeed() Feed { return &failingFeed{f.Experts.NewFeed(), f, 0} }

type failingFeed struct {
	Feed
	f     failing
	layer int
}

func (f *failingFeed) Begin(ctx context.Context, layer int, want []Want) error {
	f.layer = layer
	return f.Feed.Begin(ctx, layer, want)
}

func (f *failingFeed) Next(wait bool) (int, Expert, bool, error) {
	if f.layer == f.f.layer {
		return 0, Expert{}, false, f.f.err
	}
	return f.Feed.Next(wait)
}

func TestInterruptedStateIsRefused(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-a")
	m := openModel(t, dir)
	pool := newPool(t, 2)

	// A cancelled context stops between layers, with its cause.
	r, st := m.NewRunner(pool), m.NewState()
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(context.Background())
	r.Observe = &Observer{Layer: func(l int) {
		if l == 4 {
			cancel(cause)
		}
	}}
	if _, err := r.Forward(ctx, st, []int{1, 2, 3}, LastLogits); !errors.Is(err, cause) {
		t.Fatalf("cancelled pass: %v, want its cause", err)
	}
	if !st.Broken() {
		t.Error("a state interrupted between layers is not marked broken")
	}
	if _, err := r.Forward(context.Background(), st, []int{1}, LastLogits); !errors.Is(err, ErrBroken) {
		t.Errorf("broken state: %v, want ErrBroken", err)
	}

	// An expert that cannot be read names itself.
	lost := errors.New("drive lost")
	bad := m.WithExperts(failing{m.experts, 6, lost})
	r, st = bad.NewRunner(pool), bad.NewState()
	_, err := r.Forward(context.Background(), st, []int{1, 2, 3}, LastLogits)
	if !errors.Is(err, lost) || !st.Broken() {
		t.Errorf("lost expert: %v, broken %v", err, st.Broken())
	}
}

func TestForwardRefusesWhatCannotBe(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden", "tiny-b")
	m := openModel(t, dir)
	r, st, ctx := m.NewRunner(newPool(t, 1)), m.NewState(), context.Background()
	for _, id := range []int{-1, m.cfg.Vocab, 1 << 40} {
		if _, err := r.Forward(ctx, st, []int{1, id}, LastLogits); err == nil {
			t.Errorf("token %d was taken", id)
		}
	}
	if lg, err := r.Forward(ctx, st, nil, LastLogits); lg != nil || err != nil {
		t.Errorf("no tokens: %v, %v", lg, err)
	}
	if _, err := r.Forward(ctx, st, make([]int, m.cfg.MaxContext+1), NoLogits); err == nil {
		t.Error("more tokens than the context were taken")
	}
	if st.Broken() || st.Pos() != 0 {
		t.Errorf("refusals changed the state: pos %d, broken %v", st.Pos(), st.Broken())
	}
}

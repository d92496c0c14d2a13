package expert

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
	"deltafin/ssdio/place"
)

// A bench is a golden model on emulated drives with a store over it.
type bench struct {
	*Store
	*Turn
	ck     *checkpoint.Checkpoint
	cat    *Catalog
	layers []int // with experts
}

// copyModel copies a golden model, since opening a drive leaves a marker in it.
func copyModel(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), name)
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "testdata", "golden", name))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newBench opens a golden model in place on one drive, with a specification of
// faults, and as many slots as asked for.
func newBench(t testing.TB, name, spec string, slots int) *bench {
	t.Helper()
	dir := copyModel(t, name)
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	cat, err := NewCatalog(ck)
	if err != nil {
		t.Fatal(err)
	}
	var fleet emulate.Fleet
	drive, err := fleet.Open(dir+spec, &ssdio.DriveOptions{Name: "left"})
	if err != nil {
		t.Fatal(err)
	}
	p, err := place.Open(cat.Model(), []*ssdio.Drive{drive}, "")
	if err != nil {
		t.Fatal(err)
	}
	set, err := ssdio.Open(p.Drives, p.Layout, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := NewStore(cat, set, p.Layout, Options{Budget: budget(t, cat, slots)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		fleet.Release()
		if err := errors.Join(set.Close(), s.Close()); err != nil {
			t.Error(err)
		}
	})
	b := &bench{Store: s, Turn: s.NewTurn(nil), ck: ck, cat: cat}
	for l := range ck.Config().Layers {
		if ck.Config().MoE(l) {
			b.layers = append(b.layers, l)
		}
	}
	return b
}

// budget is the bytes of so many slots.
func budget(t testing.TB, cat *Catalog, slots int) int64 {
	t.Helper()
	a, err := ssdio.NewArena(int(cat.Largest()), slots, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	return a.Bytes()
}

// want names n experts at random.
func (b *bench) want(rng *rand.Rand, n int) []Want {
	var out []Want
	for _, e := range rng.Perm(b.cat.experts)[:n] {
		out = append(out, Want{Expert: int32(e), Rows: 1})
	}
	return out
}

// check compares an expert's bytes with the mapped file.
func (b *bench) check(t *testing.T, layer int, e int32, data []byte) {
	t.Helper()
	got, err := b.cat.Matrices(layer, int(e), data)
	if err != nil {
		t.Fatal(err)
	}
	x, err := b.ck.Expert(layer, int(e))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []struct {
		name string
		got  []byte
		want checkpoint.Tensor
	}{
		{"w1", got.W1.Data, x.W1.Weight}, {"w3", got.W3.Data, x.W3.Weight}, {"w2", got.W2.Data, x.W2.Weight},
		{"scales of w1", got.W1.Scale, x.W1.Scale}, {"scales of w2", got.W2.Scale, x.W2.Scale},
	} {
		if !bytes.Equal(m.got, m.want.Data) {
			t.Fatalf("layer %d, expert %d: %s is not what the file has", layer, e, m.name)
		}
	}
}

// run takes a whole layer and returns the order in which experts came.
func (b *bench) run(t *testing.T, layer int, want []Want) (order []int) {
	t.Helper()
	defer b.End()
	if err := b.Begin(t.Context(), layer, want); err != nil {
		t.Fatal(err)
	}
	seen := make([]bool, len(want))
	for range want {
		i, data, ok, err := b.Next(true)
		if err != nil || !ok {
			t.Fatalf("layer %d: %d of %d experts came: %v", layer, len(order), len(want), err)
		}
		if seen[i] {
			t.Fatalf("layer %d: expert %d came twice", layer, want[i].Expert)
		}
		seen[i] = true
		b.check(t, layer, want[i].Expert, data)
		b.Done(i)
		order = append(order, i)
	}
	if _, _, ok, err := b.Next(true); ok || err != nil {
		t.Fatalf("layer %d: more came than was asked for, %v", layer, err)
	}
	return order
}

// settled fails unless exactly the cached experts occupy slots.
func (b *bench) settled(t *testing.T) {
	t.Helper()
	if used, out := b.arena.Used(); used != b.policy.Len() || out != 0 || used > b.policy.Limit() {
		t.Fatalf("%d slots are in use and %d astray, %d experts are cached of at most %d", used, out, b.policy.Len(), b.policy.Limit())
	}
}

// TestStoreHandsOutTheRightBytes walks at random over layers, with fewer and more
// experts than there are slots: every expert comes once with the bytes of the
// file, hits are not read, and misses are read once.
func TestStoreHandsOutTheRightBytes(t *testing.T) {
	for _, slots := range []int{3, 4, 7, 40, 1000} {
		b := newBench(t, "tiny-a", ",latency=30us,jitter=200us", slots)
		rng := rand.New(rand.NewPCG(uint64(slots), 1))
		var st Stats
		var io ssdio.Counters
		uses := int64(0)
		for range 150 {
			n := 3
			if rng.IntN(8) == 0 {
				n = 1 + rng.IntN(b.cat.experts)
			}
			b.run(t, b.layers[rng.IntN(len(b.layers))], b.want(rng, n))
			b.settled(t)
			uses += int64(n)
		}
		b.Stats(&st)
		b.set.Counters(&io)
		if st.Total.Uses() != uses || st.Total.Hit+st.Total.Missed != uses {
			t.Errorf("%d slots: %d hits and %d misses of %d uses", slots, st.Total.Hit, st.Total.Missed, uses)
		}
		if io.Total.Requests != st.Total.Missed || io.Total.Useful != st.Total.Useful || st.Total.Wasted != 0 {
			t.Errorf("%d slots: %d reads of %d bytes for %d misses of %d bytes", slots, io.Total.Requests, io.Total.Useful, st.Total.Missed, st.Total.Useful)
		}
		if slots == 1000 && st.Total.Missed > int64(b.cat.Experts()) {
			t.Errorf("with a slot for every expert %d reads were made of %d experts", st.Total.Missed, b.cat.Experts())
		}
		if slots > 3 && st.Total.Hit == 0 {
			t.Errorf("%d slots: no hit", slots)
		}
	}
}

// TestStoreHitsBelowOneToken: a cache smaller than what one token uses still hits.
func TestStoreHitsBelowOneToken(t *testing.T) {
	b := newBench(t, "tiny-c", "", 4+3)
	for range 20 {
		for _, l := range b.layers {
			b.run(t, l, []Want{{1, 1}, {5, 1}, {7, 1}, {2, 1}})
		}
	}
	var st Stats
	b.Stats(&st)
	if want := int64(19 * 3); st.Total.Hit != want {
		t.Errorf("%d hits with 3 cached experts in 20 equal tokens of %d layers, want %d", st.Total.Hit, len(b.layers), want)
	}
}

// TestStoreHitsComeFirst: what is in memory is handed out before what is read, in
// the order of the router.
func TestStoreHitsComeFirst(t *testing.T) {
	b := newBench(t, "tiny-a", ",latency=2ms", 1000)
	l := b.layers[0]
	b.run(t, l, []Want{{4, 1}, {9, 1}})
	order := b.run(t, l, []Want{{1, 1}, {9, 1}, {2, 1}, {4, 1}})
	if order[0] != 1 || order[1] != 3 {
		t.Errorf("order %v: the hits are 1 and 3", order)
	}
}

func TestStoreRefusesASmallBudget(t *testing.T) {
	b := newBench(t, "tiny-a", "", 3)
	slot := budget(t, b.cat, 1)
	_, err := NewStore(b.cat, b.set, b.layout, Options{Budget: 3*slot + 4*slot - 1, Drives: 2})
	var small *BudgetError
	if !errors.As(err, &small) {
		t.Fatalf("a budget one byte too small: %v", err)
	}
	if want := (BudgetError{Budget: 7*slot - 1, Need: 7 * slot, Slot: slot, TopK: 3, Spare: 4}); *small != want {
		t.Errorf("refused with %+v, want %+v", *small, want)
	}
	s, err := NewStore(b.cat, b.set, b.layout, Options{Budget: small.Need, Drives: 2})
	if err != nil {
		t.Fatalf("the budget that the refusal named: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestStoreGivesUpAndGoesOn: a layer can be ended at any point, and the next one
// works.
func TestStoreGivesUpAndGoesOn(t *testing.T) {
	for _, slots := range []int{3, 9, 1000} {
		b := newBench(t, "tiny-a", ",latency=50us,jitter=300us", slots)
		rng := rand.New(rand.NewPCG(uint64(slots), 9))
		for range 50 {
			layer, n := b.layers[rng.IntN(len(b.layers))], rng.IntN(b.cat.experts)
			if err := b.Begin(t.Context(), layer, b.want(rng, n)); err != nil {
				t.Fatal(err)
			}
			for range rng.IntN(n + 1) {
				i, _, ok, err := b.Next(rng.IntN(2) == 0)
				if err != nil {
					t.Fatal(err)
				}
				if ok && rng.IntN(3) > 0 {
					b.Done(i)
				}
			}
			b.End()
			b.settled(t)
			b.run(t, layer, b.want(rng, 3))
			b.settled(t)
		}
	}
}

func TestStoreRefusesWhatCannotBe(t *testing.T) {
	b := newBench(t, "tiny-a", "", 4)
	l := b.layers[0]
	for _, c := range []struct {
		layer int
		want  []Want
		text  string
	}{
		{0, []Want{{1, 1}}, "layer 0 expert 1: no such expert"},
		{-1, []Want{{1, 1}}, "no such expert"},
		{l, []Want{{1, 1}, {11, 1}}, "expert 11: no such expert"},
		{l, []Want{{1, 1}, {-1, 1}}, "expert -1: no such expert"},
		{l, []Want{{1, 1}, {3, 1}, {1, 1}}, "expert 1 is named twice"},
	} {
		err := b.Begin(t.Context(), c.layer, c.want)
		if err == nil || !strings.Contains(err.Error(), c.text) {
			t.Errorf("layer %d, %v: %v, want %q", c.layer, c.want, err, c.text)
		}
		b.End()
		b.settled(t)
	}
	if err := b.Begin(t.Context(), l, []Want{{1, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Begin(t.Context(), l, []Want{{2, 1}}); !errors.Is(err, ErrOpen) {
		t.Errorf("a second layer beside an open one: %v", err)
	}
	if err := b.Close(); !errors.Is(err, ErrOpen) {
		t.Errorf("closed with a layer open: %v", err)
	}
	b.End()
}

// TestStoreNamesWhatFailed: a failed read is an Error with layer, expert and
// drive; the store goes on with what the drive does give.
func TestStoreNamesWhatFailed(t *testing.T) {
	b := newBench(t, "tiny-a", ",fault=error/file=model-00003*/count=always", 5)
	bad := -1 // the layer whose experts are in shard 3
	for _, o := range b.cat.Model().Objects {
		if o.Extents[0].File == "model-00003-of-000014.safetensors" {
			bad = int(o.Key.Layer)
		}
	}
	if err := b.Begin(t.Context(), bad, []Want{{6, 1}}); err != nil {
		t.Fatal(err)
	}
	_, _, ok, err := b.Next(true)
	var e *Error
	if ok || !errors.As(err, &e) || e.Layer != bad || e.Expert != 6 || e.Drive != "left" {
		t.Fatalf("a bad sector: %v", err)
	}
	b.End()
	b.settled(t)
}

func TestStatsSub(t *testing.T) {
	b := newBench(t, "tiny-a", "", 1000)
	var before, after Stats
	b.run(t, 1, []Want{{1, 1}, {2, 1}})
	b.Stats(&before)
	b.run(t, 1, []Want{{1, 1}, {3, 1}, {4, 1}})
	b.run(t, 2, []Want{{1, 1}})
	b.Stats(&after)
	after.Sub(&before)
	if c := after.Layers[1]; c.Hit != 1 || c.Missed != 2 || c.Useful != 2*b.cat.Largest() {
		t.Errorf("layer 1 between two readings: %+v", c)
	}
	if c := after.Total; c.Hit != 1 || c.Missed != 3 || c.HitRate() != 0.25 {
		t.Errorf("in all between two readings: %+v", c)
	}
	if after.Cached != 5 || after.Limit != b.cat.Experts() {
		t.Errorf("%d cached of %d", after.Cached, after.Limit)
	}
}

package expert

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
)

// bytesOf is the size of a store with so many slots.
func (b *bench) bytesOf(slots int) int64 { return int64(slots+b.spare) * b.arena.Stride() }

// sized fails unless the store has exactly so many slots in use, and with no layer
// open the others parked.
func (b *bench) sized(t *testing.T, slots int) {
	t.Helper()
	b.settled(t)
	var st Stats
	b.Stats(&st)
	if st.Slots != slots || st.Bytes != b.bytesOf(slots) || st.Limit != slots-b.headroom(slots) || st.Cached > st.Limit {
		t.Fatalf("%d slots of %d bytes, %d of %d cached; want %d slots of %d bytes", st.Slots, st.Bytes, st.Cached, st.Limit, slots, b.bytesOf(slots))
	}
	if got := b.arena.Parked(); got != b.most-slots {
		t.Fatalf("%d of %d slots are parked, want %d", got, b.most, b.most-slots)
	}
}

// TestResizeBetweenLayers changes the size at random while layers are walked: every
// expert comes with the bytes of the file, the memory follows at once, and the
// counters add up.
func TestResizeBetweenLayers(t *testing.T) {
	b := newBench(t, "tiny-a", ",latency=20us,jitter=100us", 1000)
	rng := rand.New(rand.NewPCG(7, 7))
	slots, uses, evicted := b.most, int64(0), false
	for range 200 {
		if rng.IntN(3) == 0 {
			slots = b.cat.topK + rng.IntN(b.most-b.cat.topK+1)
			before := b.policy.Len()
			if err := b.Resize(b.bytesOf(slots) + rng.Int64N(b.arena.Stride())); err != nil {
				t.Fatal(err)
			}
			evicted = evicted || b.policy.Len() < before
			b.sized(t, slots)
		}
		n := 1 + rng.IntN(b.cat.experts)
		b.run(t, b.layers[rng.IntN(len(b.layers))], b.want(rng, n))
		b.sized(t, slots)
		uses += int64(n)
	}
	var st Stats
	b.Stats(&st)
	if st.Total.Uses() != uses || st.Total.Hit == 0 || !evicted {
		t.Errorf("%d uses counted of %d, %d hits; something was thrown out: %v", st.Total.Uses(), uses, st.Total.Hit, evicted)
	}
	if st.Total.Unused != 0 || st.Total.Wasted != 0 {
		t.Errorf("%d experts of %d bytes count as unused: all were used", st.Total.Unused, st.Total.Wasted)
	}
}

// TestResizeOfAnOpenLayer takes memory away from under a layer: what it needs stays
// until it is given back, and then the memory follows.
func TestResizeOfAnOpenLayer(t *testing.T) {
	b := newBench(t, "tiny-a", "", 1000)
	layer, all := b.layers[0], []Want{}
	for e := range b.cat.experts {
		all = append(all, Want{Expert: int32(e), Rows: 1})
	}
	for range 2 { // the second time everything is a hit
		if err := b.Begin(t.Context(), layer, all); err != nil {
			t.Fatal(err)
		}
		if err := b.Resize(b.Least()); err != nil {
			t.Fatal(err)
		}
		for range all {
			i, data, ok, err := b.Next(true)
			if err != nil || !ok {
				t.Fatalf("after the cut the layer got no expert: %v", err)
			}
			b.check(t, layer, all[i].Expert, data)
			b.Done(i)
		}
		b.End()
		b.sized(t, b.cat.topK)
		if err := b.Resize(b.bytesOf(b.most)); err != nil {
			t.Fatal(err)
		}
		b.run(t, layer, all)
		b.sized(t, b.most)
	}
}

// TestResizeCountsWhatWasNeverUsed: an expert that was read and goes before its use
// is counted.
func TestResizeCountsWhatWasNeverUsed(t *testing.T) {
	b := newBench(t, "tiny-a", "", 1000)
	all := []Want{{Expert: 0, Rows: 1}, {Expert: 1, Rows: 1}, {Expert: 2, Rows: 1}, {Expert: 3, Rows: 1}, {Expert: 4, Rows: 1}}
	if err := b.Begin(t.Context(), b.layers[0], all); err != nil {
		t.Fatal(err)
	}
	for got := 0; got < len(all); { // all arrive, none is taken
		b.mu.Lock()
		b.poll()
		got = len(b.ready)
		b.mu.Unlock()
	}
	b.End()
	if err := b.Resize(b.Least()); err != nil {
		t.Fatal(err)
	}
	b.sized(t, b.cat.topK)
	var st Stats
	b.Stats(&st)
	if st.Total.Unused != int64(len(all)) || st.Total.Wasted != int64(len(all))*b.cat.Largest() || st.Total.Useful != 0 {
		t.Errorf("%d experts, %d bytes count as unused, %d bytes as useful; want %d experts", st.Total.Unused, st.Total.Wasted, st.Total.Useful, len(all))
	}
}

// TestResizeRefusesTooLittle: the error says what is needed, and nothing changes.
func TestResizeRefusesTooLittle(t *testing.T) {
	b := newBench(t, "tiny-a", "", 9)
	for _, bytes := range []int64{-1, 0, b.Least() - 1} {
		var e *BudgetError
		if err := b.Resize(bytes); !errors.As(err, &e) || e.Need != b.Least() || e.Budget != bytes {
			t.Errorf("resizing to %d bytes: %v", bytes, err)
		}
	}
	b.sized(t, 9)
	if err := b.Resize(1 << 50); err != nil { // as much as was reserved
		t.Error(err)
	}
	b.sized(t, 9)
}

// TestResizeUnderTwoTurns resizes all the time while two turns walk over layers.
func TestResizeUnderTwoTurns(t *testing.T) {
	b := newBench(t, "tiny-a", ",latency=20us,jitter=200us", 1000)
	second := &bench{Store: b.Store, Turn: b.NewTurn(nil), ck: b.ck, cat: b.cat, layers: b.layers}
	stop := make(chan struct{})
	var resizer, walkers sync.WaitGroup
	resizer.Go(func() {
		rng := rand.New(rand.NewPCG(3, 3))
		for {
			select {
			case <-stop:
				return
			default:
			}
			// Two turns may hold the slots of two layers.
			if err := b.Resize(b.bytesOf(b.cat.topK + rng.IntN(b.most-b.cat.topK+1))); err != nil {
				t.Error(err)
				return
			}
		}
	})
	for seed, w := range []*bench{b, second} {
		walkers.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(seed), 5))
			for range 60 {
				w.run(t, w.layers[rng.IntN(len(w.layers))], w.want(rng, 1+rng.IntN(w.cat.experts)))
			}
		})
	}
	walkers.Wait()
	close(stop)
	resizer.Wait()
	if err := b.Resize(b.Least()); err != nil {
		t.Fatal(err)
	}
	b.sized(t, b.cat.topK)
}

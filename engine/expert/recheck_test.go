package expert

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"deltafin/ssdio"
)

// TestRecheck: a cached expert whose memory changed is thrown out, at once or when the
// layer that uses it gives it back, and comes right from the drive the next time. The
// others stay.
func TestRecheck(t *testing.T) {
	for _, open := range []bool{false, true} {
		b := newBench(t, "tiny-a", "", 1<<10)
		rng := rand.New(rand.NewPCG(4, 4))
		layer := b.layers[1]
		want := b.want(rng, 6)
		b.run(t, b.layers[0], b.want(rng, 6))
		b.run(t, layer, want)
		if changed, err := b.Recheck(t.Context()); len(changed) != 0 || err != nil {
			t.Fatalf("nothing changed: %v, %v", changed, err)
		}
		cached := b.policy.Len()

		// Two experts change, one in its first byte and one in its last.
		if err := b.Begin(t.Context(), layer, want[:3]); err != nil {
			t.Fatal(err)
		}
		var bad []ssdio.Key
		for n := range 3 {
			i, data, ok, err := b.Next(true)
			if err != nil || !ok {
				t.Fatal(ok, err)
			}
			if n < 2 {
				data[n*(len(data)-1)] ^= 0x10
				bad = append(bad, ssdio.Key{Layer: int32(layer), Expert: want[i].Expert})
			}
		}
		if !open {
			b.End()
		}
		changed, err := b.Recheck(t.Context())
		if open {
			b.End()
		}
		slices.SortFunc(bad, func(x, y ssdio.Key) int { return int(x.Expert - y.Expert) })
		if err != nil || !slices.Equal(changed, bad) {
			t.Errorf("open %v: %v changed, want %v: %v", open, changed, bad, err)
		}
		if n := b.policy.Len(); n != cached-2 {
			t.Errorf("open %v: %d cached experts of %d, two had changed", open, n, cached)
		}
		if used, _ := b.arena.Used(); used != cached-2 {
			t.Errorf("open %v: %d slots are held, want %d", open, used, cached-2)
		}
		b.run(t, layer, want) // compares every byte
		if n := b.policy.Len(); n != cached {
			t.Errorf("open %v: %d cached experts, want %d", open, n, cached)
		}
	}
}

// TestRecheckStops with its context.
func TestRecheckStops(t *testing.T) {
	b := newBench(t, "tiny-a", "", 1<<10)
	b.run(t, b.layers[0], b.want(rand.New(rand.NewPCG(1, 1)), 3))
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if _, err := b.Recheck(ctx); !errors.Is(err, why) {
		t.Errorf("%v, want %v", err, why)
	}
}

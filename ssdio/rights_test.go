package ssdio_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
)

// slowWorld is one drive in virtual time on which every block takes its time,
// so that what is asked first and last can be told apart.
func slowWorld(t *testing.T, objects int, f func(t *testing.T, w *world, set *ssdio.Set, arena *ssdio.Arena)) {
	const size = 4 * ssdio.BlockSize
	w := makeWorld(t, worldOptions{objects: objects, size: size, place: copies(1)})
	arena := newArena(t, size, objects, 0)
	synctest.Test(t, func(t *testing.T) {
		set := w.open(t, &ssdio.Options{Depth: 2, Slice: ssdio.BlockSize}, "limit=26214400B/s") // 10 ms a block
		f(t, w, set, arena)
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

func merged(bs ...*ssdio.Batch) (order []ssdio.Key) {
	all := make(chan ssdio.Key)
	for _, b := range bs {
		go func() {
			for r := range b.Results() {
				all <- r.Key
				r.Into.Slot().Free()
			}
			all <- ssdio.Key{Layer: -9}
		}()
	}
	for left := len(bs); left > 0; {
		if k := <-all; k.Layer == -9 {
			left--
		} else {
			order = append(order, k)
		}
	}
	return order
}

// TestRights: what has the higher right is served first, whatever came first.
func TestRights(t *testing.T) {
	slowWorld(t, 5, func(t *testing.T, w *world, set *ssdio.Set, arena *ssdio.Arena) {
		ask := func(i int, c ssdio.Class) *ssdio.Batch {
			return set.Read(t.Context(), c, w.requests(t, arena, w.keys[i]))
		}
		got := merged(ask(0, ssdio.Prefetch), ask(1, ssdio.Prefetch), ask(2, ssdio.Prefill), ask(3, ssdio.Trunk), ask(4, ssdio.Demand))
		want := []ssdio.Key{w.keys[4], w.keys[3], w.keys[2], w.keys[0], w.keys[1]}
		if !slices.Equal(got, want) {
			t.Errorf("served in the order %v, want %v", got, want)
		}
	})
}

// TestPromotion: a prefetch that turns out to be needed overtakes.
func TestPromotion(t *testing.T) {
	slowWorld(t, 4, func(t *testing.T, w *world, set *ssdio.Set, arena *ssdio.Arena) {
		guess := set.Read(t.Context(), ssdio.Prefetch, w.requests(t, arena, w.keys[:3]...))
		demand := set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys[3]))
		guess.Promote(2, ssdio.Demand)
		guess.Promote(2, ssdio.Prefill) // never down
		got := merged(guess, demand)
		want := []ssdio.Key{w.keys[3], w.keys[2], w.keys[0], w.keys[1]}
		if !slices.Equal(got, want) {
			t.Errorf("served in the order %v, want %v", got, want)
		}
	})
}

// TestCancelledGuessesCostNothing: a prefetch that has not started reads no
// byte; one that has started gives its slot back when its slices are back.
func TestCancelledGuessesCostNothing(t *testing.T) {
	slowWorld(t, 4, func(t *testing.T, w *world, set *ssdio.Set, arena *ssdio.Arena) {
		guess := set.Read(t.Context(), ssdio.Prefetch, w.requests(t, arena, w.keys[:3]...))
		guess.Cancel(2)
		guess.Cancel(1)
		guess.Cancel(0) // has one block in flight: half of the depth of two
		begin := time.Now()
		var errs int
		for r := range guess.Results() {
			if errors.Is(r.Err, context.Canceled) {
				errs++
			}
			r.Into.Slot().Free()
		}
		if took := time.Since(begin); took > 11*time.Millisecond {
			t.Errorf("cancelling took %v, one block takes 10 ms", took)
		}
		var n ssdio.Counters
		set.Counters(&n)
		if n.Total.Read != ssdio.BlockSize || n.Total.Wasted != ssdio.BlockSize || n.Total.Cancelled != 3 || errs != 3 {
			t.Errorf("read %d wasted %d cancelled %d with %d errors", n.Total.Read, n.Total.Wasted, n.Total.Cancelled, errs)
		}
	})
}

// TestContextCancelsWhatHasNotArrived: and the batch is over in the time of
// what was in flight.
func TestContextCancelsWhatHasNotArrived(t *testing.T) {
	slowWorld(t, 4, func(t *testing.T, w *world, set *ssdio.Set, arena *ssdio.Arena) {
		ctx, cancel := context.WithTimeout(t.Context(), 45*time.Millisecond)
		defer cancel()
		begin := time.Now()
		good, bad := 0, 0
		for r := range set.Read(ctx, ssdio.Demand, w.requests(t, arena, w.keys...)).Results() {
			switch {
			case r.Err == nil:
				w.same(t, r)
				good++
			case errors.Is(r.Err, context.DeadlineExceeded):
				bad++
			default:
				t.Error(r.Err)
			}
			r.Into.Slot().Free()
		}
		if good != 1 || bad != 3 || time.Since(begin) > 65*time.Millisecond {
			t.Errorf("%d arrived, %d cancelled after %v", good, bad, time.Since(begin))
		}
	})
}

// TestGuessesLeaveWorkersForDemand: a demand does not wait for more than the
// prefetches that are in flight, which hold half of the workers at most.
func TestGuessesLeaveWorkersForDemand(t *testing.T) {
	slowWorld(t, 4, func(t *testing.T, w *world, set *ssdio.Set, arena *ssdio.Arena) {
		guess := set.Read(t.Context(), ssdio.Prefetch, w.requests(t, arena, w.keys[:3]...))
		var n ssdio.Counters
		set.Counters(&n)
		if n.Total.InFlight != 1 {
			t.Errorf("%d prefetches in flight at a depth of 2", n.Total.InFlight)
		}
		begin := time.Now()
		r := set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys[3])).Wait()[0]
		w.same(t, r)
		// One block of a prefetch, then four of its own.
		if took := time.Since(begin); took > 51*time.Millisecond {
			t.Errorf("the demand took %v", took)
		}
		r.Into.Slot().Free()
		for r := range guess.Results() {
			r.Into.Slot().Free()
		}
	})
}

// TestFollowsADriveThatSlowsDown: with copies on two equal drives of which one
// falls to a third, the other takes over and a set of requests takes no longer
// than the sum of what both give, plus one slice.
func TestFollowsADriveThatSlowsDown(t *testing.T) {
	const size = 16 * ssdio.BlockSize
	w := makeWorld(t, worldOptions{objects: 16, size: size, place: copies(2)})
	arena := newArena(t, size, 16, 2)
	synctest.Test(t, func(t *testing.T) {
		set := w.open(t, &ssdio.Options{Depth: 4, Slice: ssdio.BlockSize},
			"limit=100MB/s", "limit=100MB/s,fault=slow/by=3/from=500ms")
		round := func() time.Duration {
			begin := time.Now()
			for r := range set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...)).Results() {
				w.same(t, r)
				r.Into.Slot().Free()
			}
			return time.Since(begin)
		}
		total := float64(16 * size)
		for range 4 {
			round()
		}
		block := float64(ssdio.BlockSize)
		for range 5 {
			got, ideal := round().Seconds(), total/(100e6*4/3)
			if got > ideal+4*block/(100e6/3) {
				t.Errorf("a round took %.4f s, ideal is %.4f", got, ideal)
			}
		}
		var n ssdio.Counters
		set.Counters(&n)
		if n.Total.Wasted > n.Total.Read/100 {
			t.Errorf("wasted %d of %d bytes", n.Total.Wasted, n.Total.Read)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

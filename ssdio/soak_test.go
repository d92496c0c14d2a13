package ssdio_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"deltafin/ssdio"
)

// soak is how long TestSoak runs: -soak 10m for the long run.
var soak = flag.Duration("soak", 1500*time.Millisecond, "how long TestSoak runs")

// soakSpecs are the faults of four drives: bad bits, errors, short reads,
// stalls longer and shorter than what counts as one, and drives that go and
// come back, for as long as the test runs.
func soakSpecs(long time.Duration) []string {
	specs := []string{
		"limit=400MB/s,latency=200us,jitter=2ms,fault=flip/after=5/every=41,fault=stall/after=30/every=300/for=700ms",
		"limit=300MB/s,latency=100us,jitter=1ms,fault=error/after=11/every=29,fault=slow/by=4/from=700ms/for=500ms",
		"limit=300MB/s,latency=100us,jitter=1ms,fault=short/after=17/every=37,fault=stall/after=50/every=101/for=60ms,fault=flip/after=50/every=101",
		"limit=200MB/s,latency=50us,jitter=500us",
	}
	for at := 300 * time.Millisecond; at < long; at += 2 * time.Second {
		specs[1] += fmt.Sprintf(",fault=gone/from=%v/for=250ms", at+500*time.Millisecond)
		specs[3] += fmt.Sprintf(",fault=gone/from=%v/for=500ms", at)
	}
	return specs
}

// soaker is what the goroutines of TestSoak share.
type soaker struct {
	w       *world
	set     *ssdio.Set
	arena   *ssdio.Arena
	good    atomic.Int64
	failed  atomic.Int64
	stopped atomic.Int64

	mu    sync.Mutex // guards below
	stuck []*ssdio.Slot
}

// TestSoak asks at random for demands, guesses, parts and sets that are given
// up, from drives on which everything goes wrong. What arrives is always the
// truth, errors have their types, and in the end nothing is left behind.
func TestSoak(t *testing.T) {
	done := settled(t)
	w := makeWorld(t, worldOptions{objects: 48, size: 9*ssdio.BlockSize + 1111, odd: 1000, mixed: true, place: placement{
		{0, 1}, {0, 0.7}, {0.3, 1}, {0, 1},
	}})
	arena := newArena(t, 9*ssdio.BlockSize+1111, 60, 12)
	set := w.open(t, &ssdio.Options{
		Depth: 4, Slice: 2 * ssdio.BlockSize, HedgeFloor: 10 * time.Millisecond, HedgeShare: 0.2,
		StallAfter: 300 * time.Millisecond, StuckAfter: 3 * time.Second, ProbeEvery: 20 * time.Millisecond, Verify: ssdio.VerifyAll(),
	}, soakSpecs(*soak)...)
	s := &soaker{w: w, set: set, arena: arena}
	ctx, cancel := context.WithTimeout(t.Context(), *soak)
	defer cancel()
	var wait sync.WaitGroup
	for i, f := range []func(context.Context, *testing.T, *rand.Rand){s.demand, s.demand, s.guess, s.guess, s.giveUp, s.parts, s.watch} {
		wait.Add(1)
		go func() {
			defer wait.Done()
			rng := rand.New(rand.NewPCG(uint64(i), 11))
			for ctx.Err() == nil && !t.Failed() {
				f(ctx, t, rng)
			}
		}()
	}
	wait.Wait()
	var n ssdio.Counters
	set.Counters(&n)
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	for _, slot := range s.stuck {
		slot.Free()
	}
	w.fleet.Release()
	if used, out := arena.Used(); used != 0 || out != 0 {
		t.Errorf("%d slots used and %d spares out at the end", used, out)
	}
	if s.good.Load() < 20 {
		t.Errorf("only %d objects arrived", s.good.Load())
	}
	t.Logf("%d arrived, %d failed, %d given up; %d MB read, %d useful, %d wasted, %d hedged, %d mismatches, %d errors, %d retries, %d hedges, %d moved, %d times lost, %d stuck",
		s.good.Load(), s.failed.Load(), s.stopped.Load(), n.Total.Read>>20, n.Total.Useful>>20, n.Total.Wasted>>20, n.Total.Hedged>>20,
		n.Total.Mismatch, n.Total.Errors, n.Total.Retries, n.Total.Hedges, n.Total.Moved, n.Total.Lost, len(s.stuck))
	done()
}

// some takes up to n slots for objects at random.
func (s *soaker) some(rng *rand.Rand, n int) (reqs []ssdio.Request) {
	for range 1 + rng.IntN(n) {
		slot := s.arena.Get()
		if slot == nil {
			break
		}
		k := s.w.keys[rng.IntN(len(s.w.keys))]
		reqs = append(reqs, ssdio.Request{Key: k, Into: slot.Buffer(s.w.layout.Residue(k), len(s.w.truth[k]))})
	}
	return reqs
}

// take checks one result and gives its slot back.
func (s *soaker) take(t *testing.T, r ssdio.Result) {
	var re *ssdio.ReadError
	switch {
	case r.Err == nil:
		if truth := s.w.truth[r.Key]; !bytes.Equal(r.Into.Bytes(), truth) {
			t.Errorf("%s: wrong at byte %d", r.Key, firstDiff(r.Into.Bytes(), truth))
		}
		s.good.Add(1)
	case errors.Is(r.Err, context.Canceled), errors.Is(r.Err, context.DeadlineExceeded):
		s.stopped.Add(1)
	case errors.As(r.Err, &re) && re.Key == r.Key:
		s.failed.Add(1)
	default:
		t.Errorf("%s: %v", r.Key, r.Err)
	}
	if r.Stuck {
		// On a machine so busy that the spares run out. The slot is the set's
		// until it is closed.
		if !errors.Is(r.Err, ssdio.ErrStuck) {
			t.Errorf("%s: stuck with %v", r.Key, r.Err)
		}
		s.mu.Lock()
		s.stuck = append(s.stuck, r.Into.Slot())
		s.mu.Unlock()
		return
	}
	r.Into.Slot().Free()
}

func (s *soaker) demand(_ context.Context, t *testing.T, rng *rand.Rand) {
	for r := range s.set.Read(context.Background(), ssdio.Demand, s.some(rng, 8)).Results() {
		s.take(t, r)
	}
}

func (s *soaker) guess(_ context.Context, t *testing.T, rng *rand.Rand) {
	reqs := s.some(rng, 6)
	b := s.set.Read(context.Background(), ssdio.Prefetch, reqs)
	for i := range reqs {
		switch rng.IntN(4) {
		case 0:
			b.Cancel(i)
		case 1:
			b.Promote(i, ssdio.Class(rng.IntN(4)))
		}
	}
	for r := range b.Results() {
		if rng.IntN(3) == 0 && len(reqs) > 0 {
			b.Cancel(rng.IntN(len(reqs)))
		}
		s.take(t, r)
	}
}

func (s *soaker) giveUp(ctx context.Context, t *testing.T, rng *rand.Rand) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(rng.IntN(20))*time.Millisecond)
	defer cancel()
	for r := range s.set.Read(ctx, ssdio.Class(rng.IntN(4)), s.some(rng, 6)).Results() {
		s.take(t, r)
	}
}

func (s *soaker) parts(_ context.Context, t *testing.T, rng *rand.Rand) {
	k := s.w.keys[rng.IntN(len(s.w.keys))]
	truth := s.w.truth[k]
	from := rng.IntN(len(truth))
	to := from + 1 + rng.IntN(len(truth)-from)
	mem := make([]byte, to-from)
	r := s.set.Read(context.Background(), ssdio.Trunk, []ssdio.Request{{Key: k, From: int64(from), To: int64(to), Into: ssdio.Fixed(mem)}}).Wait()[0]
	if r.Err == nil && !bytes.Equal(mem, truth[from:to]) {
		t.Errorf("%s [%d,%d): wrong bytes", k, from, to)
	}
	// Fixed memory cannot be exchanged, so here a read may well be stuck.
	var re *ssdio.ReadError
	if r.Err != nil && !errors.As(r.Err, &re) {
		t.Error(r.Err)
	}
}

func (s *soaker) watch(ctx context.Context, t *testing.T, _ *rand.Rand) {
	var n ssdio.Counters
	s.set.Counters(&n)
	if n.Total.InFlight < 0 || n.Total.InFlightBytes < 0 {
		t.Errorf("in flight: %d slices, %d bytes", n.Total.InFlight, n.Total.InFlightBytes)
	}
	select {
	case <-ctx.Done():
	case <-time.After(5 * time.Millisecond):
	}
}

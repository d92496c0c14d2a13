package ssdio_test

import (
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
)

// TestCloseIsBounded: a read that never returns holds Close up for the stated
// time and no longer, its request gets a typed error, and the memory it may
// still write to is not unmapped.
func TestCloseIsBounded(t *testing.T) {
	const size = 2 * ssdio.BlockSize
	w := makeWorld(t, worldOptions{objects: 2, size: size, place: copies(1)})
	arena, err := ssdio.NewArena(size, 2, 0)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		set := w.open(t, &ssdio.Options{Slice: ssdio.BlockSize, CloseWait: 3 * time.Second}, "fault=stall/count=1")
		b := set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...))
		synctest.Wait()
		begin := time.Now()
		if err := set.Close(); !errors.Is(err, ssdio.ErrStuck) {
			t.Errorf("Close: %v", err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("Close took %v", took)
		}
		var stuck []*ssdio.Slot
		for r := range b.Results() {
			if r.Stuck {
				stuck = append(stuck, r.Into.Slot())
				if !errors.Is(r.Err, ssdio.ErrStuck) {
					t.Errorf("stuck with %v", r.Err)
				}
				continue
			}
			w.same(t, r)
			r.Into.Slot().Free()
		}
		if len(stuck) != 1 {
			t.Errorf("%d requests stuck, want 1", len(stuck))
		}
		if err := arena.Close(); !errors.Is(err, ssdio.ErrArenaBusy) {
			t.Errorf("arena unmapped under a read: %v", err)
		}
		w.fleet.Release()
		synctest.Wait()
		for _, slot := range stuck {
			slot.Free()
		}
	})
	if err := arena.Close(); err != nil {
		t.Error(err)
	}
}

// TestFixedMemoryIsNeverExchanged: with another holder at hand a stuck read
// into fixed memory still makes the request fail, because the memory may change
// at any time.
func TestFixedMemoryIsNeverExchanged(t *testing.T) {
	w := makeWorld(t, worldOptions{objects: 1, size: 6 * ssdio.BlockSize, place: copies(2)})
	mem := make([]byte, 6*ssdio.BlockSize)
	synctest.Test(t, func(t *testing.T) {
		set := w.open(t, &ssdio.Options{Slice: ssdio.BlockSize}, "fault=stall/count=1", "")
		r := set.Read(t.Context(), ssdio.Trunk, []ssdio.Request{{Key: w.keys[0], Into: ssdio.Fixed(mem)}}).Wait()[0]
		var re *ssdio.ReadError
		if !r.Stuck || !errors.Is(r.Err, ssdio.ErrStuck) || !errors.As(r.Err, &re) || re.Drive != "d0" || re.Key != w.keys[0] {
			t.Errorf("%+v", r)
		}
		w.fleet.Release()
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLateSliceIsHedged: one slice that takes far longer than its drive's p99 is
// asked of the other holder, long before the drive counts as stalled; with no
// budget it is not.
func TestLateSliceIsHedged(t *testing.T) {
	const size = 8 * ssdio.BlockSize
	for _, c := range []struct {
		name   string
		factor float64
		within time.Duration
		hedges int64
	}{
		{"hedged", 3, 150 * time.Millisecond, 1},
		{"hedging off", -1, 950 * time.Millisecond, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := makeWorld(t, worldOptions{objects: 16, size: size, place: copies(2)})
			arena := newArena(t, size, 16, 2)
			synctest.Test(t, func(t *testing.T) {
				set := w.open(t, &ssdio.Options{Slice: ssdio.BlockSize, HedgeFactor: c.factor},
					"limit=500MB/s,latency=1ms,fault=stall/after=200/count=1/for=900ms", "limit=500MB/s,latency=1ms")
				longest := time.Duration(0)
				for range 6 {
					begin := time.Now()
					for r := range set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...)).Results() {
						w.same(t, r)
						r.Into.Slot().Free()
					}
					longest = max(longest, time.Since(begin))
				}
				<-time.After(2 * time.Second)
				var n ssdio.Counters
				set.Counters(&n)
				if n.Total.Hedges != c.hedges || n.Total.Lost != 0 || longest > c.within {
					t.Errorf("%d hedges, %d times lost, the longest round took %v", n.Total.Hedges, n.Total.Lost, longest)
				}
				if n.Total.Wasted != c.hedges*ssdio.BlockSize {
					t.Errorf("%d bytes wasted by %d hedges", n.Total.Wasted, c.hedges)
				}
				if err := set.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestListenerIsTold: what happened, in order where the order is certain.
func TestListenerIsTold(t *testing.T) {
	const size = 4 * ssdio.BlockSize
	w := makeWorld(t, worldOptions{objects: 8, size: size, place: copies(2)})
	arena := newArena(t, size, 8, 2)
	var mu sync.Mutex // guards below
	var told []string
	note := func(s string) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(told, s) {
			told = append(told, s)
		}
	}
	listener := ssdio.Listener{
		Buffered:   func(i ssdio.BufferedInfo) { note("buffered " + i.Drive + " " + i.File) },
		ReadFailed: func(i ssdio.ReadFailedInfo) { note("read failed on " + i.Drive) },
		DriveLost: func(i ssdio.DriveLostInfo) {
			note("lost " + i.Drive)
			if !errors.Is(i.Err, ssdio.ErrGone) {
				t.Errorf("lost because of %v", i.Err)
			}
		},
		DriveBack: func(i ssdio.DriveBackInfo) {
			note("back " + i.Drive)
			if i.Away < time.Second || i.Away > 4*time.Second {
				t.Errorf("away for %v", i.Away)
			}
		},
	}
	synctest.Test(t, func(t *testing.T) {
		set := w.open(t, &ssdio.Options{Listener: listener}, "limit=50MB/s,fault=gone/from=20ms/for=1500ms", "limit=50MB/s,cached")
		for range 40 {
			for r := range set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...)).Results() {
				w.same(t, r)
				r.Into.Slot().Free()
			}
		}
		var n ssdio.Counters
		set.Counters(&n)
		if n.Drives[0].Read < 20<<20 {
			t.Errorf("the drive that came back gave %d bytes", n.Drives[0].Read)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	want := []string{"buffered d1 pack", "lost d0", "read failed on d0", "back d0"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

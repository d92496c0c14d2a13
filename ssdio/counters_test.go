package ssdio_test

import (
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
)

func TestCounters(t *testing.T) {
	const size = 4 * ssdio.BlockSize
	w := makeWorld(t, worldOptions{objects: 8, size: size, place: stripes(0, 1, 1)})
	arena := newArena(t, size, 8, 0)
	synctest.Test(t, func(t *testing.T) {
		set := w.open(t, nil, "limit=50MB/s", "limit=50MB/s,cached")
		set2 := ssdio.Counters{}
		set.Counters(&set2)
		before := set2
		before.Drives = append([]ssdio.DriveCounters(nil), set2.Drives...)
		read := func() {
			for r := range set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...)).Results() {
				w.same(t, r)
				r.Into.Slot().Free()
			}
		}
		for range 16 {
			read()
		}
		var n ssdio.Counters
		set.Counters(&n)
		n.Sub(&before)
		total := int64(16 * 8 * size)
		equal(t, "useful", n.Total.Useful, total)
		equal(t, "read", n.Total.Read, total)
		equal(t, "requests", n.Total.Requests, 16*8)
		equal(t, "buffered", n.Total.Buffered, n.Drives[1].Read)
		equal(t, "buffered on the direct drive", n.Drives[0].Buffered, 0)
		equal(t, "slices in the histogram", int64(n.Total.Latency.Count()), n.Total.Reads)
		equal(t, "sum over drives", n.Drives[0].Read+n.Drives[1].Read, total)
		if m := n.Total.Mean(n.Elapsed); m < 95e6 || m > 101e6 {
			t.Errorf("mean %.3g of two drives of 50 MB/s", m)
		}
		if n.Total.Now < 80e6 || n.Total.Now > 120e6 {
			t.Errorf("now %.3g of two drives of 50 MB/s", n.Total.Now)
		}
		if busy := n.Drives[0].Busy; busy < n.Elapsed*95/100 || busy > n.Elapsed {
			t.Errorf("busy %v of %v", busy, n.Elapsed)
		}
		if p := n.Drives[0].Latency.Quantile(0.99); p <= 0 || p > time.Second {
			t.Errorf("p99 %v", p)
		}
		if a := testing.AllocsPerRun(100, func() { set.Counters(&n) }); a != 0 {
			t.Errorf("reading the counters allocates %v times", a)
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestVerifyChoices: what is checked is what was asked for.
func TestVerifyChoices(t *testing.T) {
	const size = 4 * ssdio.BlockSize
	for _, c := range []struct {
		name   string
		verify ssdio.Verify
		lo, hi int64 // blocks checked in ten rounds of 8 objects of 4 blocks
	}{
		{"all", ssdio.VerifyAll(), 320, 320},
		{"first", ssdio.VerifyFirst(), 32, 32},
		{"half", ssdio.VerifySample(0.5), 120, 230},
		{"default", ssdio.Verify{}, 32, 60},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := makeWorld(t, worldOptions{objects: 8, size: size, place: copies(1)})
			arena := newArena(t, size, 8, 0)
			set := w.open(t, &ssdio.Options{Verify: c.verify})
			for range 10 {
				for r := range set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...)).Results() {
					w.same(t, r)
					r.Into.Slot().Free()
				}
			}
			var n ssdio.Counters
			set.Counters(&n)
			if got := n.Total.Checked / ssdio.BlockSize; got < c.lo || got > c.hi {
				t.Errorf("%d blocks checked, want %d to %d", got, c.lo, c.hi)
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestRecordedSumsCount: an object without sums is recorded at first and a
// later read that differs is found.
func TestRecordedSumsCount(t *testing.T) {
	const size = ssdio.BlockSize
	w := makeWorld(t, worldOptions{objects: 1, size: size, noSums: true, place: copies(2)})
	arena := newArena(t, size, 1, 0)
	set := w.open(t, &ssdio.Options{Verify: ssdio.VerifyAll()}, "fault=flip/after=2", "")
	for range 20 {
		r := set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...)).Wait()[0]
		w.same(t, r)
		r.Into.Slot().Free()
	}
	var n ssdio.Counters
	set.Counters(&n)
	equal(t, "bytes recorded", n.Total.Noted, size)
	if n.Total.Mismatch == 0 && n.Drives[0].Reads > 2 {
		t.Error("a bit was wrong and nobody noticed")
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	w := makeWorld(t, worldOptions{objects: 1, size: 100, place: copies(1)})
	set := w.open(t, nil)
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	for _, o := range []ssdio.Options{
		{Depth: -1}, {Slice: 1000}, {Verify: ssdio.Verify{Sample: 0.5}}, {Verify: ssdio.VerifySample(2)},
	} {
		if _, err := ssdio.Open(w.drives, w.layout, &o); err == nil {
			t.Errorf("options %+v were taken", o)
		}
	}
	if _, err := ssdio.Open(nil, w.layout, nil); err == nil {
		t.Error("no drives were taken")
	}
}

package ssdio_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
)

// The fault table. Each row reads every object of a world whose drives behave
// badly, and says what must come out: the true bytes always, or an error that
// wraps the given one. Time is virtual.
var faultTable = []struct {
	name  string
	place placement
	specs []string // one for each drive
	want  error    // nil: every object arrives
	check func(t *testing.T, n *ssdio.Counters)
}{
	{"bad block once", copies(1), []string{"fault=flip/after=2/count=1"}, nil, func(t *testing.T, n *ssdio.Counters) {
		equal(t, "mismatch", n.Total.Mismatch, 1)
		equal(t, "retries", n.Total.Retries, 1)
	}},
	{"bad block always, another holder", copies(2), []string{"fault=flip/at=300000-300001", ""}, nil, func(t *testing.T, n *ssdio.Counters) {
		equal(t, "mismatch", n.Drives[0].Mismatch, 2) // read, read again
		equal(t, "mismatch of the other", n.Drives[1].Mismatch, 0)
	}},
	{"bad block always, nobody else", copies(1), []string{"fault=flip/at=300000-300001"}, ssdio.ErrChecksum, nil},
	{"bad block on both holders", copies(2), []string{"fault=flip/at=300000-300001", "fault=flip/at=300000-300001"}, ssdio.ErrChecksum, nil},
	{"read error once", copies(1), []string{"fault=error/after=3/count=1"}, nil, func(t *testing.T, n *ssdio.Counters) {
		equal(t, "errors", n.Total.Errors, 1)
	}},
	{"read error always, another holder", copies(2), []string{"fault=error/at=0-300000", ""}, nil, nil},
	{"read error always, nobody else", copies(1), []string{"fault=error/at=0-300000"}, syscall.EIO, nil},
	{"every read fails, another holder", copies(2), []string{"fault=error", ""}, nil, func(t *testing.T, n *ssdio.Counters) {
		if n.Drives[0].Lost == 0 {
			t.Error("a drive of which no read succeeds is not lost")
		}
	}},
	{"short read once", copies(1), []string{"fault=short/after=1/count=1"}, nil, nil},
	{"short read always, another holder", stripes(0.6, 1, 1), []string{"", "fault=short/at=0-100"}, nil, nil},
	{"short read always, nobody else", copies(1), []string{"fault=short/at=0-100"}, ssdio.ErrShort, nil},
	{"stall of 5 s, another holder", copies(2), []string{"fault=stall/after=1/count=1/for=5s", ""}, nil, func(t *testing.T, n *ssdio.Counters) {
		if n.Elapsed > 3*time.Second {
			t.Errorf("took %v although another holder had the bytes", n.Elapsed)
		}
		equal(t, "requests that moved to a spare slot", n.Total.Moved, 1)
	}},
	{"stall of 5 s, nobody else", copies(1), []string{"fault=stall/after=1/count=1/for=5s"}, nil, nil},
	{"all reads stall for 5 s, nobody else", copies(1), []string{"fault=stall/count=40/for=5s"}, nil, nil},
	{"stall for ever, nobody else", copies(1), []string{"fault=stall/after=1/count=1"}, ssdio.ErrStuck, nil},
	{"stall for ever, another holder", copies(2), []string{"fault=stall/after=4", ""}, nil, nil},
	{"late and wrong, another holder", copies(2), []string{"fault=stall/count=3/for=2s,fault=flip/count=3", ""}, nil, nil},
	{"gone, another holder", copies(2), []string{"fault=gone/from=2ms", ""}, nil, func(t *testing.T, n *ssdio.Counters) {
		equal(t, "times lost", n.Drives[0].Lost, 1)
	}},
	{"gone, part of the bytes nowhere else", stripes(0.2, 1, 1), []string{"fault=gone/from=2ms", ""}, ssdio.ErrDriveLost, nil},
	{"two of three gone", copies(3), []string{"fault=gone/from=1ms", "fault=gone/from=3ms", ""}, nil, nil},
	{"gone and back, another holder", copies(2), []string{"fault=gone/from=1ms/for=2s", "limit=2MB/s"}, nil, func(t *testing.T, n *ssdio.Counters) {
		equal(t, "times lost", n.Drives[0].Lost, 1)
		if n.Drives[0].Down {
			t.Error("the drive is back but not in use")
		}
	}},
	{"everything a little wrong", copies(3), []string{
		"fault=error/after=2/count=2", "fault=flip/after=1/count=3", "fault=short/count=2,fault=stall/after=4/count=1/for=1500ms",
	}, nil, nil},
}

func equal(t *testing.T, what string, got, want int64) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %d, want %d", what, got, want)
	}
}

func TestFaults(t *testing.T) {
	for _, c := range faultTable {
		t.Run(c.name, func(t *testing.T) {
			w := makeWorld(t, worldOptions{objects: 8, size: 5*ssdio.BlockSize + 77, odd: 24, place: c.place})
			arena := newArena(t, 5*ssdio.BlockSize+77, len(w.keys), 4)
			synctest.Test(t, func(t *testing.T) { runFaults(t, w, arena, c.specs, c.want, c.check) })
		})
	}
}

// TestPartsBesideABadBlock: of a slice that begins and ends within blocks, the
// good blocks beside a bad one count, so their bytes must be in place.
func TestPartsBesideABadBlock(t *testing.T) {
	const block = ssdio.BlockSize
	for bad := range int64(4) {
		w := makeWorld(t, worldOptions{objects: 1, size: 4 * block, place: copies(1)})
		set := w.open(t, &ssdio.Options{Depth: 1, Slice: 4 * block}, fmt.Sprintf("fault=flip/count=1/at=%d-%d", bad*block+100, bad*block+101))
		mem := make([]byte, 4*block-20)
		r := set.Read(t.Context(), ssdio.Demand, []ssdio.Request{{Key: w.keys[0], From: 10, To: 4*block - 10, Into: ssdio.Fixed(mem)}}).Wait()[0]
		if r.Err != nil || !bytes.Equal(mem, w.truth[w.keys[0]][10:4*block-10]) {
			t.Errorf("block %d bad once: %v, first wrong byte at %d", bad, r.Err, firstDiff(mem, w.truth[w.keys[0]][10:4*block-10]))
		}
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	}
}

func runFaults(t *testing.T, w *world, arena *ssdio.Arena, specs []string, want error, check func(*testing.T, *ssdio.Counters)) {
	for i := range specs {
		specs[i] = strings.TrimPrefix(specs[i]+",latency=100us,jitter=50us", ",")
		if !strings.Contains(specs[i], "limit") {
			specs[i] += ",limit=1GB/s"
		}
	}
	var failed atomic.Int64
	set := w.open(t, &ssdio.Options{
		Depth: 4, Slice: ssdio.BlockSize,
		Listener: ssdio.Listener{RequestFailed: func(ssdio.RequestFailedInfo) { failed.Add(1) }},
	}, specs...)
	b := set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...))
	bad := int64(0)
	var results []ssdio.Result
	for r := range b.Results() {
		results = append(results, r)
		if r.Err == nil {
			continue
		}
		bad++
		var re *ssdio.ReadError
		if want == nil || !errors.Is(r.Err, want) || !errors.As(r.Err, &re) {
			t.Errorf("%s: %v, want %v", r.Key, r.Err, want)
		} else if re.Key != r.Key || re.Drive == "" || re.File != "pack" {
			t.Errorf("%s: error names %+v", r.Key, re)
		}
	}
	if want != nil && bad == 0 {
		t.Errorf("nothing failed, want %v", want)
	}
	var n ssdio.Counters
	set.Counters(&n)
	equal(t, "failed requests counted", n.Total.Failed, bad)
	equal(t, "failed requests told", failed.Load(), bad)
	if check != nil {
		check(t, &n)
	}
	// Whatever was stuck comes back now, late, and must not change anything.
	if !errors.Is(want, ssdio.ErrStuck) {
		<-time.After(10 * time.Second)
	}
	for _, r := range results {
		if r.Err == nil {
			w.same(t, r)
		}
	}
	w.fleet.Release()
	synctest.Wait()
	for _, r := range results {
		if r.Err == nil {
			w.same(t, r)
		}
		if r.Stuck {
			t.Errorf("%s: stuck although spare slots were there", r.Key)
		}
		r.Into.Slot().Free()
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	if used, out := arena.Used(); used != 0 || out != 0 {
		t.Errorf("%d slots used, %d spares out after Close", used, out)
	}
	set.Counters(&n)
	equal(t, "in flight after Close", n.Total.InFlight, 0)
	equal(t, "read minus useful and wasted", n.Total.Read-n.Total.Useful-n.Total.Wasted, 0)
}

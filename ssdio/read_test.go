package ssdio_test

import (
	"context"
	"errors"
	"testing"

	"deltafin/ssdio"
)

// TestReadsEveryShape reads objects of a few KB at odd offsets and large ones,
// from one to four drives, in every kind of placement.
func TestReadsEveryShape(t *testing.T) {
	for _, c := range []struct {
		name string
		o    worldOptions
	}{
		{"tiny odd", worldOptions{objects: 40, size: 3277, odd: 1237, place: copies(1)}},
		{"tiny two copies", worldOptions{objects: 40, size: 5120, odd: 8, place: copies(2)}},
		{"one byte", worldOptions{objects: 5, size: 1, odd: 4095, place: copies(1)}},
		{"one block", worldOptions{objects: 9, size: ssdio.BlockSize, place: copies(3)}},
		{"one block and a byte odd", worldOptions{objects: 9, size: ssdio.BlockSize + 1, odd: 513, place: copies(3)}},
		{"stripes", worldOptions{objects: 6, size: 17547264 / 8, place: stripes(0, 4, 2, 2, 1)}},
		{"stripes odd", worldOptions{objects: 6, size: 17547264 / 8, odd: 777, place: stripes(0, 4, 2, 2, 1)}},
		{"overlap odd", worldOptions{objects: 6, size: 17547264 / 8, odd: 8, place: stripes(0.3, 4, 2, 2, 1)}},
		{"expert", worldOptions{objects: 2, size: 17547264, odd: 4096 + 8, place: stripes(0.2, 3, 2)}},
		{"unknown sums", worldOptions{objects: 6, size: 1 << 20, noSums: true, place: copies(2)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			done := settled(t)
			w := makeWorld(t, c.o)
			arena := newArena(t, c.o.size, len(w.keys), 1)
			set := w.open(t, nil)
			for range 2 {
				b := set.Read(t.Context(), ssdio.Demand, w.requests(t, arena, w.keys...))
				for r := range b.Results() {
					w.same(t, r)
					clear(r.Into.Bytes())
					r.Into.Slot().Free()
				}
			}
			var n ssdio.Counters
			set.Counters(&n)
			total := int64(2 * c.o.objects * c.o.size)
			if n.Total.Useful != total || n.Total.Read != total || n.Total.Wasted != 0 {
				t.Errorf("useful %d, read %d, wasted %d; want %d, %d, 0", n.Total.Useful, n.Total.Read, n.Total.Wasted, total, total)
			}
			known, all := w.layout.Sums()
			if known != all {
				t.Errorf("%d of %d sums known after all was read", known, all)
			}
			if c.o.noSums && n.Total.Noted != total/2 {
				t.Errorf("recorded sums of %d bytes, want %d", n.Total.Noted, total/2)
			}
			if err := set.Close(); err != nil {
				t.Error(err)
			}
			done()
		})
	}
}

// TestReadsParts: any byte range of an object can be asked for.
func TestReadsParts(t *testing.T) {
	const size = 3*ssdio.BlockSize + 1000
	w := makeWorld(t, worldOptions{objects: 1, size: size, odd: 100, place: stripes(0.5, 1, 1)})
	set := w.open(t, nil)
	key := w.keys[0]
	for _, r := range [][2]int64{
		{0, 1}, {5, 9}, {0, size}, {size - 1, size}, {ssdio.BlockSize - 1, ssdio.BlockSize + 1},
		{ssdio.BlockSize, 2 * ssdio.BlockSize}, {10, size - 10}, {3 * ssdio.BlockSize, size},
	} {
		mem := make([]byte, r[1]-r[0])
		err := set.Read(t.Context(), ssdio.Trunk, []ssdio.Request{{Key: key, From: r[0], To: r[1], Into: ssdio.Fixed(mem)}}).Err()
		if err != nil {
			t.Fatal(err)
		}
		if i := firstDiff(mem, w.truth[key][r[0]:r[1]]); i != len(mem) {
			t.Errorf("bytes %v: wrong at %d", r, i)
		}
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusesBadRequests: each gets its own typed error, and the good request
// beside them its bytes.
func TestRefusesBadRequests(t *testing.T) {
	w := makeWorld(t, worldOptions{objects: 1, size: 5000, place: copies(1)})
	set := w.open(t, nil)
	key, mem := w.keys[0], make([]byte, 5000)
	res := set.Read(t.Context(), ssdio.Demand, []ssdio.Request{
		{Key: ssdio.Key{Layer: 99}, Into: ssdio.Fixed(mem)},
		{Key: key, Into: ssdio.Fixed(mem[:10])},
		{Key: key, From: 10, To: 5, Into: ssdio.Fixed(mem[:5])},
		{Key: key, From: 10, To: 5001, Into: ssdio.Fixed(mem[:4991])},
		{Key: key, Into: ssdio.Fixed(mem)},
	}).Wait()
	for i, want := range []error{ssdio.ErrUnknownKey, ssdio.ErrRange, ssdio.ErrRange, ssdio.ErrRange} {
		if !errors.Is(res[i].Err, want) {
			t.Errorf("request %d: %v, want %v", i, res[i].Err, want)
		}
	}
	w.same(t, res[4])
	if n := len(set.Read(t.Context(), ssdio.Demand, nil).Wait()); n != 0 {
		t.Errorf("an empty batch has %d results", n)
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	err := set.Read(context.Background(), ssdio.Demand, []ssdio.Request{{Key: key, Into: ssdio.Fixed(mem)}}).Err()
	if !errors.Is(err, ssdio.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if err := set.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
}

// TestBatchesShareAChannel: batches of ReadTo send to one channel, told apart by key;
// each result says how many bytes came, all of them for a good one, and the channel
// stays open.
func TestBatchesShareAChannel(t *testing.T) {
	const n, size = 12, 3*ssdio.BlockSize + 7
	w := makeWorld(t, worldOptions{objects: n, size: size, odd: 100, place: copies(2)})
	arena := newArena(t, size, n, 0)
	set := w.open(t, nil)
	results := make(chan ssdio.Result, n+1)
	reqs := w.requests(t, arena, w.keys...)
	for i := 0; i < n; i += 3 {
		set.ReadTo(t.Context(), ssdio.Demand, reqs[i:i+3], results)
	}
	set.ReadTo(t.Context(), ssdio.Prefetch, []ssdio.Request{{Key: ssdio.Key{Layer: 99}, Into: ssdio.Fixed(make([]byte, 1))}}, results)
	set.ReadTo(t.Context(), ssdio.Demand, nil, results) // nothing comes of it
	seen := map[ssdio.Key]bool{}
	for range n + 1 {
		r := <-results
		if seen[r.Key] {
			t.Errorf("%s came twice", r.Key)
		}
		seen[r.Key] = true
		if r.Key.Layer == 99 {
			if !errors.Is(r.Err, ssdio.ErrUnknownKey) || r.Arrived != 0 {
				t.Errorf("an unknown key: %v, %d bytes", r.Err, r.Arrived)
			}
			continue
		}
		w.same(t, r)
		if r.Arrived != size {
			t.Errorf("%s: %d bytes came of %d", r.Key, r.Arrived, size)
		}
		r.Into.Slot().Free()
	}
	if err := set.Close(); err != nil {
		t.Error(err)
	}
	select {
	case r, open := <-results:
		t.Errorf("more came, or the channel was closed: %+v, %v", r, open)
	default:
	}
}

package ssdio_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// A world is a small model on some drives, with the truth beside it.
type world struct {
	keys    []ssdio.Key
	truth   map[ssdio.Key][]byte
	folders []string // one for each drive
	builder *ssdio.Builder
	layout  *ssdio.Layout
	fleet   emulate.Fleet
	drives  []*ssdio.Drive
}

// A part is blocks [from,to) of an object, as fractions of the whole.
type part struct{ from, to float64 }

// placement says which part of every object each drive holds.
type placement []part

// full copies on n drives.
func copies(n int) placement {
	p := make(placement, n)
	for i := range p {
		p[i] = part{0, 1}
	}
	return p
}

// stripes by weight, each widened by overlap of its length on either side.
func stripes(overlap float64, weights ...float64) placement {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	var p placement
	at := 0.0
	for _, w := range weights {
		w /= sum
		p = append(p, part{max(0, at-overlap*w), min(1, at+w+overlap*w)})
		at += w
	}
	p[len(p)-1].to = 1 // whatever the sums round to
	return p
}

// blocks are the block bounds of a part of the i-th object. Exact shares that
// fall within a block are dithered over the objects, as a real placement does,
// so that each drive's share is right on average.
func (p part) blocks(i, n int) (lo, hi int) {
	cut := func(x float64) int {
		dither := float64(i*7919%997) / 997
		return min(int(x*float64(n)+dither), n)
	}
	lo, hi = cut(p.from), cut(p.to)
	if p.from == 0 {
		lo = 0
	}
	if p.to == 1 {
		hi = n
	}
	return lo, hi
}

// worldOptions: how a world is made.
type worldOptions struct {
	objects int
	size    int
	odd     int  // added to every offset in the files
	noSums  bool // nobody states the sums
	mixed   bool // sizes from size down to a sixteenth of it, none of them even
	place   placement
	base    string // parent of the folders; default: the test's
}

func makeWorld(t testing.TB, o worldOptions) *world {
	t.Helper()
	w := &world{truth: map[ssdio.Key][]byte{}, builder: &ssdio.Builder{}}
	base := o.base
	if base == "" {
		base = t.TempDir()
	}
	rng := rand.New(rand.NewPCG(1, uint64(o.size)))
	files := make([]bytes.Buffer, len(o.place))
	type held struct {
		drive int
		h     ssdio.Holding
	}
	var holds []held
	for i := range files {
		files[i].Write(make([]byte, o.odd))
	}
	for i := range o.objects {
		key := ssdio.Key{Layer: int32(i / 16), Expert: int32(i % 16)}
		size := o.size
		if o.mixed {
			size = o.size>>(i%5) - i
		}
		data := make([]byte, size)
		for k := 0; k+8 <= len(data); k += 8 {
			v := rng.Uint64()
			for j := range 8 {
				data[k+j] = byte(v >> (8 * j))
			}
		}
		w.keys = append(w.keys, key)
		w.truth[key] = data
		var sums []uint32
		for at := 0; at < len(data); at += ssdio.BlockSize {
			sums = append(sums, ssdio.Sum(data[at:min(at+ssdio.BlockSize, len(data))]))
		}
		if o.noSums {
			sums = nil
		}
		if err := w.builder.Object(key, int64(size), sums); err != nil {
			t.Fatal(err)
		}
		for d, p := range o.place {
			lo, hi := p.blocks(i, ssdio.Blocks(int64(size)))
			if lo == hi {
				continue
			}
			from, to := lo*ssdio.BlockSize, min(hi*ssdio.BlockSize, size)
			holds = append(holds, held{d, ssdio.Holding{
				Key: key, From: int64(from), To: int64(to), Offset: int64(files[d].Len()),
			}})
			files[d].Write(data[from:to])
		}
	}
	index := make([]int, len(files))
	for d := range files {
		dir := filepath.Join(base, fmt.Sprintf("drive%d", d))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		w.folders = append(w.folders, dir)
		if err := os.WriteFile(filepath.Join(dir, "pack"), files[d].Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		var err error
		if index[d], err = w.builder.File(d, "pack", int64(files[d].Len())); err != nil {
			t.Fatal(err)
		}
	}
	for _, h := range holds {
		h.h.File = index[h.drive]
		if err := w.builder.Hold(h.h); err != nil {
			t.Fatal(err)
		}
	}
	w.layout = w.builder.Layout()
	return w
}

// open opens the drives with a specification each ("" for plain) and the set.
func (w *world) open(t testing.TB, opt *ssdio.Options, specs ...string) *ssdio.Set {
	t.Helper()
	w.drives = nil
	for i, dir := range w.folders {
		text := "."
		if i < len(specs) && specs[i] != "" {
			text += "," + specs[i]
		}
		spec, err := emulate.ParseSpec(text)
		if err != nil {
			t.Fatal(err)
		}
		spec.Path = dir
		d, err := w.fleet.OpenSpec(spec, &ssdio.DriveOptions{Name: fmt.Sprintf("d%d", i)})
		if err != nil {
			t.Fatal(err)
		}
		w.drives = append(w.drives, d)
	}
	set, err := ssdio.Open(w.drives, w.layout, opt)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// requests for whole objects into slots of an arena.
func (w *world) requests(t testing.TB, a *ssdio.Arena, keys ...ssdio.Key) []ssdio.Request {
	t.Helper()
	var out []ssdio.Request
	for _, k := range keys {
		slot := a.Get()
		if slot == nil {
			t.Fatal("arena is empty")
		}
		out = append(out, ssdio.Request{Key: k, Into: slot.Buffer(w.layout.Residue(k), len(w.truth[k]))})
	}
	return out
}

// same fails the test unless the result is the truth.
func (w *world) same(t testing.TB, r ssdio.Result) {
	t.Helper()
	if r.Err != nil {
		t.Fatalf("%s: %v", r.Key, r.Err)
	}
	if !bytes.Equal(r.Into.Bytes(), w.truth[r.Key]) {
		t.Fatalf("%s: wrong bytes, first at %d", r.Key, firstDiff(r.Into.Bytes(), w.truth[r.Key]))
	}
}

func firstDiff(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

func newArena(t testing.TB, size, slots, spare int) *ssdio.Arena {
	t.Helper()
	a, err := ssdio.NewArena(size, slots, spare)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// settled fails the test if goroutines are left that were not there before.
func settled(t testing.TB) (check func()) {
	before := runtime.NumGoroutine()
	return func() {
		t.Helper()
		for range 5000 {
			if runtime.NumGoroutine() <= before {
				return
			}
			<-time.After(time.Millisecond) // goroutines that are on their way out
		}
		buf := make([]byte, 1<<16)
		t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
	}
}

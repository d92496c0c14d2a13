package benchio

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"

	"deltafin/ssdio"
)

// ExpertSize is the size of one routed expert of Kimi K3 in bytes.
const ExpertSize = 17547264

// A Share is the part of every object that a drive holds, as fractions.
type Share struct{ From, To float64 }

// Full gives full copies on n drives.
func Full(n int) []Share {
	out := make([]Share, n)
	for i := range out {
		out[i] = Share{0, 1}
	}
	return out
}

// Stripes divides every object in proportion to the weights, in their order,
// and widens each part by overlap of its length at either end.
func Stripes(overlap float64, weights []float64) []Share {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	var out []Share
	at := 0.0
	for _, w := range weights {
		w /= sum
		out = append(out, Share{max(0, at-overlap*w), min(1, at+w+overlap*w)})
		at += w
	}
	if n := len(out); n > 0 {
		out[n-1].To = 1 // whatever the sums round to
	}
	return out
}

// blocks are the bounds of a share in the i-th of several objects of n blocks.
// Bounds within a block are rounded up for some objects and down for others, so
// that over all of them the share is exact.
func (s Share) blocks(i, n int) (lo, hi int) {
	const golden = 0.6180339887498949 // spreads evenly for any number of objects
	cut := func(x float64) int {
		dither := float64(i) * golden
		return min(int(x*float64(n)+dither-float64(int(dither))), n)
	}
	if s.From > 0 {
		lo = cut(s.From)
	}
	hi = n
	if s.To < 1 {
		hi = cut(s.To)
	}
	return lo, hi
}

// data is objects on folders: random bytes, sums known.
type data struct {
	layout  *ssdio.Layout
	keys    []ssdio.Key
	folders []string
	made    []string // to be removed
}

// makeData writes count objects of size bytes, divided by shares, into one new
// folder below each parent. Full copies that have one parent share one file.
func makeData(parents []string, shares []Share, count, size int) (d *data, err error) {
	d = &data{}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.remove())
		}
	}()
	var w writers
	defer func() { err = errors.Join(err, w.close()) }()
	for i, parent := range parents {
		dir, err := os.MkdirTemp(parent, "deltafin-bench-*")
		if err != nil {
			return d, err
		}
		d.made = append(d.made, dir)
		d.folders = append(d.folders, dir)
		if err := w.add(i, dir, parent, shares[i]); err != nil {
			return d, err
		}
	}
	var b ssdio.Builder
	rng := rand.NewChaCha8([32]byte{1})
	object := make([]byte, size)
	type held struct {
		ssdio.Holding
		drive int
	}
	var holds []held
	for i := range count {
		key := ssdio.Key{Layer: int32(i / 896), Expert: int32(i % 896)}
		d.keys = append(d.keys, key)
		_, _ = rng.Read(object) // never fails
		var sums []uint32
		for at := 0; at < size; at += ssdio.BlockSize {
			sums = append(sums, ssdio.Sum(object[at:min(at+ssdio.BlockSize, size)]))
		}
		if err := b.Object(key, int64(size), sums); err != nil {
			return d, err
		}
		for k, s := range shares {
			lo, hi := s.blocks(i, ssdio.Blocks(int64(size)))
			if lo == hi {
				continue
			}
			from, to := lo*ssdio.BlockSize, min(hi*ssdio.BlockSize, size)
			h := ssdio.Holding{Key: key, From: int64(from), To: int64(to), Offset: w.files[k].at}
			holds = append(holds, held{h, k})
			if err := w.files[k].write(object[from:to]); err != nil {
				return d, err
			}
		}
	}
	index := make([]int, len(shares))
	for k := range shares {
		if index[k], err = b.File(k, fileName, w.files[k].at); err != nil {
			return d, err
		}
	}
	for _, h := range holds {
		h.File = index[h.drive]
		if err := b.Hold(h.Holding); err != nil {
			return d, err
		}
	}
	d.layout = b.Layout()
	return d, nil
}

const fileName = "experts"

// remove removes everything that was made.
func (d *data) remove() error {
	var errs []error
	for _, dir := range d.made {
		errs = append(errs, os.RemoveAll(dir))
	}
	return errors.Join(errs...)
}

// writers are the files being written, one for each drive.
type writers struct {
	files []*writer
	full  map[string]string // parent: file of a full copy
}

type writer struct {
	f  *os.File // nil: the same file as another one's
	b  *bufio.Writer
	at int64
}

func (w *writers) add(i int, dir, parent string, s Share) error {
	name := filepath.Join(dir, fileName)
	if have, ok := w.full[parent]; ok && s == (Share{0, 1}) {
		w.files = append(w.files, &writer{})
		return os.Link(have, name)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	w.files = append(w.files, &writer{f: f, b: bufio.NewWriterSize(f, 4<<20)})
	if s == (Share{0, 1}) {
		if w.full == nil {
			w.full = map[string]string{}
		}
		w.full[parent] = name
	}
	return nil
}

func (w *writer) write(p []byte) error {
	w.at += int64(len(p))
	if w.f == nil {
		return nil
	}
	_, err := w.b.Write(p)
	return err
}

func (w *writers) close() error {
	var errs []error
	for _, f := range w.files {
		if f.f == nil {
			continue
		}
		// Synced, so that reads past the cache find the data on the device.
		if err := errors.Join(f.b.Flush(), f.f.Sync(), f.f.Close()); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", f.f.Name(), err))
		}
	}
	return errors.Join(errs...)
}

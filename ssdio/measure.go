package ssdio

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"sync"
	"time"
)

// MeasureOptions are the options of Measure. Zero means the default.
type MeasureOptions struct {
	// Sizes of single reads in bytes, multiples of 4 KiB. Default 256 KiB,
	// 1 MiB, 2 MiB, 4 MiB, 16 MiB.
	Sizes []int
	// Depths: how many reads at once. Default 1, 2, 4, 8, 16, 32.
	Depths []int
	// Point is how long one size and depth is read. Default 400 ms.
	Point time.Duration
	// Bytes is the size of the file that is written where the drive has no
	// files of at least this size in all. Default 2 GiB, but never more than a
	// quarter of what is free.
	Bytes int64
}

// A MeasureProgress tells how far Measure is.
type MeasureProgress struct {
	Drive string // being measured; "" while all are read together
	Phase string // "writing", "reading" or "together"
	Size  int    // of the point that was just measured
	Depth int
	Rate  float64 // bytes per second of that point, or of writing
	Done  float64 // fraction of all work, 0 to 1
}

// testFile is the name of the file that Measure writes and removes.
const testFile = "deltafin-measure.tmp"

// Measure finds the ceiling of each drive and then of all together: drives that
// share a hub show as less than their sum. It reads large files that the drive
// has, at random places and past the page cache, or else writes one and removes
// it, also when ctx is cancelled. It takes about Sizes x Depths x Point for each
// drive. progress may be nil; it is called on the caller's goroutine.
//
// The profiles stand in the order of the drives; nothing is stored.
func Measure(ctx context.Context, drives []*Drive, o *MeasureOptions, progress func(MeasureProgress)) ([]*Profile, error) {
	m := measurement{tell: progress}
	if o != nil {
		m.o = *o
	}
	if err := m.ensure(len(drives)); err != nil {
		return nil, err
	}
	out := make([]*Profile, len(drives))
	targets := make([]*target, len(drives))
	defer func() {
		for _, t := range targets {
			t.close()
		}
	}()
	for i, d := range drives {
		var err error
		if targets[i], err = m.open(ctx, d); err == nil {
			out[i], err = m.drive(ctx, d, targets[i])
		}
		if err != nil {
			return nil, fmt.Errorf("measure drive %s: %w", d.Name, err)
		}
	}
	if len(drives) > 1 {
		if err := m.together(ctx, drives, targets, out); err != nil {
			return nil, fmt.Errorf("measure all drives together: %w", err)
		}
	}
	return out, nil
}

// measurement is one run of Measure.
type measurement struct {
	o     MeasureOptions
	tell  func(MeasureProgress)
	steps float64 // of all work
	step  float64
}

func (m *measurement) ensure(drives int) error {
	if len(m.o.Sizes) == 0 {
		m.o.Sizes = []int{256 << 10, 1 << 20, 2 << 20, 4 << 20, 16 << 20}
	}
	if len(m.o.Depths) == 0 {
		m.o.Depths = []int{1, 2, 4, 8, 16, 32}
	}
	def(&m.o.Point, 400*time.Millisecond)
	def(&m.o.Bytes, 2<<30)
	for _, s := range m.o.Sizes {
		if s <= 0 || s%maxAlign != 0 || int64(s) > m.o.Bytes {
			return fmt.Errorf("measure: read size %d is not a multiple of %d up to %d: %w", s, maxAlign, m.o.Bytes, ErrRange)
		}
	}
	for _, d := range m.o.Depths {
		if d <= 0 || d > 1024 {
			return fmt.Errorf("measure: depth %d is not 1 to 1024: %w", d, ErrRange)
		}
	}
	if m.tell == nil {
		m.tell = func(MeasureProgress) {}
	}
	m.steps = float64(drives * len(m.o.Sizes) * len(m.o.Depths))
	if drives > 1 {
		m.steps++
	}
	return nil
}

// target is the files of a drive that are read.
type target struct {
	src   []Source
	made  string // file to be removed, "" if none was written
	total int64
}

func (t *target) close() {
	if t == nil {
		return
	}
	for _, s := range t.src {
		_ = s.Close() // opened for reading: nothing can be lost
	}
	if t.made != "" {
		_ = os.Remove(t.made) // a file left behind is overwritten the next time
	}
}

// open finds files large enough, or writes one.
func (m *measurement) open(ctx context.Context, d *Drive) (*target, error) {
	t := &target{}
	least := int64(0)
	for _, s := range m.o.Sizes {
		least = max(least, int64(s))
	}
	for _, name := range bigFiles(d.Path, max(least, m.o.Bytes/16)) {
		if src, err := d.FS.Open(name); err == nil {
			t.src = append(t.src, src)
			t.total += src.Size()
		}
	}
	if t.total >= m.o.Bytes {
		return t, nil
	}
	t.close()
	t = &target{made: filepath.Join(d.Path, testFile)}
	err := m.write(ctx, d, t.made, least)
	if err == nil {
		var src Source
		if src, err = d.FS.Open(testFile); err == nil {
			t.src, t.total = []Source{src}, src.Size()
		}
	}
	if err != nil {
		t.close()
		return nil, err
	}
	return t, nil
}

// bigFiles lists regular files of at least least bytes in the folder and one
// level below, at most 64.
func bigFiles(dir string, least int64) (names []string) {
	_ = fs.WalkDir(os.DirFS(dir), ".", func(p string, e fs.DirEntry, err error) error {
		switch {
		case err != nil, len(names) == 64: // unreadable or enough
			return fs.SkipDir
		case e.IsDir() && p != "." && path.Dir(p) != ".":
			return fs.SkipDir
		case !e.Type().IsRegular() || p == testFile:
			return nil
		}
		if info, err := e.Info(); err == nil && info.Size() >= least {
			names = append(names, p)
		}
		return nil
	})
	return names
}

// write makes the test file: random, so that no drive can compress it.
func (m *measurement) write(ctx context.Context, d *Drive, name string, least int64) (err error) {
	free, _, err := d.Space()
	if err != nil {
		return err
	}
	n := min(m.o.Bytes, free/4) &^ (maxAlign - 1)
	if n < least {
		return fmt.Errorf("%d bytes are free in %s; a test file needs %d: free some space, or put the model there first", free, d.Path, 4*least)
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	rng := rand.NewChaCha8([32]byte{2})
	block := make([]byte, min(4<<20, n))
	start := time.Now()
	for at := int64(0); at < n; at += int64(len(block)) {
		if err := ctx.Err(); err != nil {
			return err
		}
		_, _ = rng.Read(block) // never fails
		if _, err := f.Write(block[:min(int64(len(block)), n-at)]); err != nil {
			return err
		}
		m.tell(MeasureProgress{
			Drive: d.Name, Phase: "writing", Done: m.step / m.steps,
			Rate: float64(at+int64(len(block))) / max(time.Since(start).Seconds(), 1e-9),
		})
	}
	return f.Sync()
}

// drive measures the matrix of one drive.
func (m *measurement) drive(ctx context.Context, d *Drive, t *target) (*Profile, error) {
	p := &Profile{
		Version: profileVersion, Drive: d.ID, Device: d.Device.ID, Emulated: d.Emulated,
		Measured: time.Now().UTC().Truncate(time.Second), Direct: true,
	}
	for _, s := range t.src {
		p.Direct = p.Direct && s.Direct()
	}
	for _, size := range m.o.Sizes {
		for _, depth := range m.o.Depths {
			pt, err := t.point(ctx, size, depth, m.o.Point)
			if err != nil {
				return nil, err
			}
			p.Points = append(p.Points, pt)
			m.step++
			m.tell(MeasureProgress{Drive: d.Name, Phase: "reading", Size: size, Depth: depth, Rate: pt.Rate, Done: m.step / m.steps})
		}
	}
	p.Best = best(p.Points)
	return p, nil
}

// best is the point with the fewest bytes in flight that reaches 97 % of the
// fastest, among reads of 1 to 4 MiB if one of them does: smaller ones cost more
// processor time, larger ones leave the scheduler less freedom.
func best(points []Point) Point {
	fastest := 0.0
	for _, p := range points {
		fastest = max(fastest, p.Rate)
	}
	var found Point
	for _, p := range points {
		if p.Rate < 0.97*fastest {
			continue
		}
		handy := p.Size >= 1<<20 && p.Size <= 4<<20
		had := found.Size >= 1<<20 && found.Size <= 4<<20
		if found.Size == 0 || (handy && !had) || (handy == had && p.Size*p.Depth < found.Size*found.Depth) {
			found = p
		}
	}
	return found
}

// together reads all drives at once, each at its best point.
func (m *measurement) together(ctx context.Context, drives []*Drive, targets []*target, out []*Profile) error {
	var wait sync.WaitGroup
	errs := make([]error, len(drives))
	sum := 0.0
	for i := range drives {
		wait.Add(1)
		go func() {
			defer wait.Done()
			var p Point
			// Longer than a single point, so that the ends of the runs, where
			// not all are busy, do not count.
			p, errs[i] = targets[i].point(ctx, out[i].Best.Size, out[i].Best.Depth, 4*m.o.Point)
			out[i].Together = p.Rate
		}()
	}
	wait.Wait()
	for i := range out {
		sum += out[i].Together
		for k := range drives {
			if k != i {
				out[i].Company = append(out[i].Company, drives[k].ID)
			}
		}
	}
	m.step++
	m.tell(MeasureProgress{Phase: "together", Rate: sum, Done: 1})
	return errors.Join(errs...)
}

// point reads at random places for a while.
func (t *target) point(ctx context.Context, size, depth int, long time.Duration) (Point, error) {
	var (
		wait    sync.WaitGroup
		mu      sync.Mutex // guards below
		total   int64
		latency Histogram
		failed  error
	)
	start := time.Now()
	for i := range depth {
		wait.Add(1)
		go func() {
			defer wait.Done()
			n, err := t.reader(ctx, size, uint64(i), start, long, func(d time.Duration) {
				mu.Lock()
				latency[bucketOf(d)]++
				mu.Unlock()
			})
			mu.Lock()
			defer mu.Unlock()
			total += n
			failed = errors.Join(failed, err)
		}()
	}
	wait.Wait()
	took := time.Since(start).Seconds()
	return Point{
		Size: size, Depth: depth, Rate: float64(total) / max(took, 1e-9),
		P50: latency.Quantile(0.5), P99: latency.Quantile(0.99),
	}, failed
}

// reader is one of the readers of a point.
func (t *target) reader(ctx context.Context, size int, seed uint64, start time.Time, long time.Duration, took func(time.Duration)) (int64, error) {
	mem, err := mapMemory(size)
	if err != nil {
		return 0, err
	}
	defer unmapMemory(mem)
	var bounce Scratch
	defer bounce.Free()
	rng := rand.New(rand.NewPCG(seed, uint64(size)))
	total := int64(0)
	for begin := time.Now(); begin.Sub(start) < long; {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		src := t.src[rng.IntN(len(t.src))]
		at := rng.Int64N(src.Size()-int64(size)+1) &^ (maxAlign - 1)
		if _, err := src.ReadInto(mem, at, &bounce); err != nil {
			return total, err
		}
		now := time.Now()
		took(now.Sub(begin))
		begin = now
		total += int64(size)
	}
	return total, nil
}

package emulate

import (
	"fmt"
	"hash/maphash"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"deltafin/ssdio"
)

// A Fleet opens emulated drives that share hubs. Its zero value is ready; it is
// safe for concurrent use.
type Fleet struct {
	mu     sync.Mutex // guards below
	hubs   map[string]*pacer
	drives []*FS
}

// Open opens a drive by its specification. A plain path gives a plain drive.
// name is used unless the specification has one; o may be nil.
func (f *Fleet) Open(text string, o *ssdio.DriveOptions) (*ssdio.Drive, error) {
	spec, err := ParseSpec(text)
	if err != nil {
		return nil, err
	}
	return f.OpenSpec(spec, o)
}

// OpenSpec is Open for a specification that was parsed or made.
func (f *Fleet) OpenSpec(spec Spec, o *ssdio.DriveOptions) (*ssdio.Drive, error) {
	var opt ssdio.DriveOptions
	if o != nil {
		opt = *o
	}
	if spec.Name != "" {
		opt.Name = spec.Name
	}
	if !spec.Plain() {
		fs, err := f.wrap(spec, opt.FS)
		if err != nil {
			return nil, err
		}
		opt.FS = fs
		named := spec
		named.Name = ""
		opt.Emulated = named.options()[1:]
	}
	return ssdio.OpenDrive(spec.Path, &opt)
}

func (f *Fleet) wrap(spec Spec, below ssdio.FS) (*FS, error) {
	hub, err := f.hub(spec)
	if err != nil {
		return nil, err
	}
	if below == nil {
		below = ssdio.OS(spec.Path)
	}
	fs := &FS{below: below, spec: spec, hub: hub, opened: time.Now(), stop: make(chan struct{}), seed: maphash.MakeSeed()}
	if spec.Limit > 0 {
		fs.own = &pacer{rate: float64(spec.Limit)}
	}
	for i := range spec.Faults {
		fs.faults = append(fs.faults, &fault{Fault: spec.Faults[i]})
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.drives = append(f.drives, fs)
	return fs, nil
}

// hub finds or makes the hub of a drive.
func (f *Fleet) hub(spec Spec) (*pacer, error) {
	if spec.Hub == "" {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	h := f.hubs[spec.Hub]
	switch {
	case h == nil && spec.HubRate == 0:
		return nil, fmt.Errorf("hub %s has no rate: write hub=%s:1GB/s at its first drive: %w", spec.Hub, spec.Hub, ErrSpec)
	case h == nil:
		h = &pacer{rate: float64(spec.HubRate)}
		if f.hubs == nil {
			f.hubs = map[string]*pacer{}
		}
		f.hubs[spec.Hub] = h
	case spec.HubRate != 0 && h.rate != float64(spec.HubRate):
		return nil, fmt.Errorf("hub %s has two rates, %.0f and %d B/s: %w", spec.Hub, h.rate, spec.HubRate, ErrSpec)
	}
	return h, nil
}

// Release ends all waiting of the fleet's drives, now and from now on: reads
// that hang fail, all others are no longer slowed.
func (f *Fleet) Release() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range f.drives {
		d.Release()
	}
}

// FS is the files of one emulated drive. It implements ssdio.FS.
type FS struct {
	below  ssdio.FS
	spec   Spec
	own    *pacer
	hub    *pacer
	opened time.Time
	seed   maphash.Seed
	reads  atomic.Uint64 // for jitter
	faults []*fault
	stop   chan struct{}
	once   sync.Once
}

// fault is a Fault with its count.
type fault struct {
	Fault
	met atomic.Int64 // reads that met the conditions
}

// strike says whether the fault hits this read, and counts it if it could.
func (f *fault) strike(at time.Duration, name string, off int64, n int) bool {
	if !f.active(at) || !f.touches(name, off, n) {
		return false
	}
	k := f.met.Add(1) - f.After - 1 // reads before this one that could be hit
	every := max(f.Every, 1)
	return k >= 0 && k%every == 0 && (f.Count == 0 || k/every < f.Count)
}

// Release: see Fleet.Release.
func (e *FS) Release() { e.once.Do(func() { close(e.stop) }) }

func (e *FS) age() time.Duration { return time.Since(e.opened) }

// errGone is what a drive that was pulled out answers.
func errGone(spec *Spec) error {
	return fmt.Errorf("emulated drive %s: %w: %w", spec.Path, ssdio.ErrGone, syscall.ENODEV)
}

// Open implements ssdio.FS.
func (e *FS) Open(name string) (ssdio.Source, error) {
	for _, f := range e.faults {
		if f.Kind == Gone && f.After == 0 && f.Count == 0 && f.At == [2]int64{} && f.File == "" && f.active(e.age()) {
			return nil, errGone(&e.spec)
		}
	}
	src, err := e.below.Open(name)
	if err != nil {
		return nil, err
	}
	return &source{Source: src, fs: e, name: name}, nil
}

// source is one file of an emulated drive.
type source struct {
	ssdio.Source
	fs   *FS
	name string
}

// Direct implements ssdio.Source.
func (s *source) Direct() bool { return s.Source.Direct() && !s.fs.spec.Cached }

// ReadInto implements ssdio.Source.
func (s *source) ReadInto(p []byte, off int64, w *ssdio.Scratch) (int, error) {
	e := s.fs
	age := e.age()
	slow := 1.0
	var hit []*fault
	for _, f := range e.faults {
		if !f.strike(age, s.name, off, len(p)) {
			continue
		}
		if f.Kind == Slow {
			slow *= f.By
			continue
		}
		hit = append(hit, f)
	}
	for _, f := range hit {
		if f.Kind == Gone {
			return 0, errGone(&e.spec)
		}
	}
	done := e.pace(len(p), slow, time.Now())
	for _, f := range hit {
		if f.Kind == Stall {
			if err := e.hang(f); err != nil {
				return 0, err
			}
		}
	}
	copied, err := s.Source.ReadInto(p, off, w)
	// The real read is part of the time that the emulated one takes.
	waitUntil(done, e.stop)
	if err != nil {
		return copied, err
	}
	for _, f := range hit {
		switch f.Kind {
		case Error:
			clear(p)
			return copied, fmt.Errorf("emulated drive %s: read %d bytes at offset %d of %s: %w", e.spec.Path, len(p), off, s.name, syscall.EIO)
		case Short:
			clear(p[len(p)/2:])
			return copied, fmt.Errorf("emulated drive %s: got %d of %d bytes at offset %d of %s: %w: %w",
				e.spec.Path, len(p)/2, len(p), off, s.name, ssdio.ErrShort, io.ErrUnexpectedEOF)
		case Flip:
			at := max(off, f.At[0]) - off
			p[at] ^= 0x10
		}
	}
	return copied, nil
}

// pace says when a read that starts at a time is over by the specification.
func (e *FS) pace(n int, slow float64, now time.Time) time.Time {
	done := now
	if e.own != nil {
		done = e.own.reserve(n, now, slow)
	}
	if e.hub != nil {
		if t := e.hub.reserve(n, now, 1); t.After(done) {
			done = t
		}
	}
	done = done.Add(time.Duration(float64(e.spec.Latency) * slow))
	if e.spec.Jitter > 0 {
		// A hash of the number of the read: no lock, no shared generator.
		h := maphash.Comparable(e.seed, e.reads.Add(1))
		done = done.Add(time.Duration(h % uint64(e.spec.Jitter)))
	}
	return done
}

// hang is a stall: for a time or until the drive is released.
func (e *FS) hang(f *fault) error {
	if f.For > 0 {
		waitUntil(time.Now().Add(f.For), e.stop)
		return nil
	}
	<-e.stop
	return fmt.Errorf("emulated drive %s was released: %w", e.spec.Path, syscall.EIO)
}

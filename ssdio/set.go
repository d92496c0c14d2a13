package ssdio

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Verify says which blocks are compared with their sum.
type Verify struct {
	// First checks each block the first time it comes from a holder.
	First bool
	// Sample is the fraction of later reads of a block that are checked, 0 to 1.
	Sample float64
}

// VerifyAll checks every block every time.
func VerifyAll() Verify { return Verify{First: true, Sample: 1} }

// VerifyFirst checks a block only the first time it comes from a holder.
func VerifyFirst() Verify { return Verify{First: true} }

// VerifySample checks the first time and then the given fraction.
func VerifySample(fraction float64) Verify { return Verify{First: true, Sample: fraction} }

// Options are the options of a Set. The zero value of every field means its
// default.
type Options struct {
	// Depth is how many reads a drive gets at once. Default: what its profile
	// measured best, else 8.
	Depth int
	// Slice is the largest single read in bytes, a multiple of BlockSize.
	// Default: what the profile measured best, else 2 MiB.
	Slice int
	// PrefetchDepth is how many of a drive's reads may be prefetches, so that a
	// demand always finds a free worker soon. Default: half the depth, at
	// least 1.
	PrefetchDepth int
	// Verify: which blocks are checked. Default: the first time, then one in a
	// hundred. To check nothing is not offered.
	Verify Verify
	// HedgeFactor: a slice is late after this many times the p99 of its drive.
	// Default 3; below 0 turns hedging off, except for drives that stalled.
	HedgeFactor float64
	// HedgeFloor: no slice is late before this. Default 20 ms.
	HedgeFloor time.Duration
	// HedgeShare bounds the bytes of hedges to this fraction of all bytes read,
	// plus a start of 64 MiB. Default 0.01.
	HedgeShare float64
	// StallAfter: a drive that has reads in flight and answers none of them for
	// so long is lost. Default 1 s.
	StallAfter time.Duration
	// StuckAfter: a request whose bytes cannot be had because of reads that do
	// not return fails after so long, counted from the read. Default 15 s.
	StuckAfter time.Duration
	// LostAfter: a drive is lost after so many failed reads in a row. Default 4.
	LostAfter int
	// ProbeEvery: a lost drive is asked whether it is back after this, then
	// after twice this and so on up to 32 times. Default 1 s.
	ProbeEvery time.Duration
	// CloseWait bounds how long Close waits for reads in flight. Default 10 s.
	CloseWait time.Duration
	// Listener is told what happens.
	Listener Listener
	// Timeline replaces time and drives, for simulations. nil: the real ones.
	Timeline Timeline
}

// ensure returns the options with defaults filled in, or says what is wrong.
func (o *Options) ensure() (Options, error) {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Depth < 0 || out.Depth > 1024 {
		return out, fmt.Errorf("depth %d is not 1 to 1024: %w", out.Depth, ErrRange)
	}
	if out.Slice < 0 || out.Slice%BlockSize != 0 || out.Slice > 256<<20 {
		return out, fmt.Errorf("slice of %d bytes is not a multiple of %d up to 256 MiB: %w", out.Slice, BlockSize, ErrRange)
	}
	if out.Verify == (Verify{}) {
		out.Verify = VerifySample(0.01)
	}
	if !out.Verify.First || out.Verify.Sample < 0 || out.Verify.Sample > 1 {
		return out, fmt.Errorf("verify %+v: the first read of a block is always checked and the fraction is 0 to 1: %w", out.Verify, ErrRange)
	}
	def(&out.HedgeFactor, 3)
	def(&out.HedgeFloor, 20*time.Millisecond)
	def(&out.HedgeShare, 0.01)
	def(&out.StallAfter, time.Second)
	def(&out.StuckAfter, 15*time.Second)
	def(&out.LostAfter, 4)
	def(&out.ProbeEvery, time.Second)
	def(&out.CloseWait, 10*time.Second)
	out.Listener = out.Listener.ensure()
	return out, nil
}

func def[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

const (
	defaultDepth = 8
	defaultSlice = 2 << 20
	// priorRate is what is expected of a drive that was never measured.
	priorRate = 1e9
	// hedgeStart is what hedges may read before HedgeShare counts.
	hedgeStart = 64 << 20
	// watchEvery is how often the reads in flight are looked at.
	watchEvery = 5 * time.Millisecond
)

// A Set reads the objects of a layout from its drives. All methods may be
// called from any goroutine.
type Set struct {
	opt     Options
	layout  *Layout
	drives  []*member
	count   setCount
	started time.Time

	stop chan struct{}  // closed by Close
	wake chan struct{}  // something is in flight again: the watcher looks
	done sync.WaitGroup // workers, watcher, probers

	mu       sync.Mutex // guards below, and all of member and request that says so
	queue    [classes]queue
	inFlight int
	read     int64 // bytes, for the budget of hedges
	hedged   int64
	after    []func() // what unlock does
	closed   bool
}

// Open makes a set. The drives stand in the order of the layout's drive
// indices. It opens every file of the layout, so a missing or short file is
// found here and not at three in the morning.
func Open(drives []*Drive, layout *Layout, options *Options) (*Set, error) {
	opt, err := options.ensure()
	if err != nil {
		return nil, err
	}
	if layout.drives > len(drives) || len(drives) == 0 || len(drives) > MaxDrives {
		return nil, fmt.Errorf("%d drives for a layout that names %d: %w", len(drives), layout.drives, ErrRange)
	}
	s := &Set{
		opt: opt, layout: layout, started: time.Now(),
		stop: make(chan struct{}), wake: make(chan struct{}, 1),
	}
	for i, d := range drives {
		s.drives = append(s.drives, newMember(s, i, d))
	}
	if opt.Timeline != nil {
		return s, nil // nothing to open, nobody to work
	}
	for _, m := range s.drives {
		if err := m.openFiles(); err != nil {
			for _, m := range s.drives {
				err = errors.Join(err, m.closeFiles())
			}
			return nil, err
		}
	}
	for _, m := range s.drives {
		for range m.depth {
			s.done.Add(1)
			go s.worker(m)
		}
		s.done.Add(1)
		go s.prober(m)
	}
	s.done.Add(1)
	go s.watcher()
	return s, nil
}

// since is the time since the set was opened, the clock of all estimates.
func (s *Set) since() time.Duration {
	if t := s.opt.Timeline; t != nil {
		return t.Now()
	}
	return time.Since(s.started)
}

// Read asks for a set of requests of one class. It returns at once; what is
// wrong with a request comes as its result. Cancelling ctx cancels what has not
// arrived yet.
func (s *Set) Read(ctx context.Context, class Class, reqs []Request) *Batch {
	b := s.send(ctx, class, reqs, make(chan Result, len(reqs)), true)
	if len(reqs) == 0 {
		close(b.results)
	}
	return b
}

// ReadTo is Read with results that go to a channel of the caller's, which several
// batches may share: Result.Key tells them apart. The channel must have room for
// the results of all requests under way, since the set does not wait for it, and
// is never closed.
func (s *Set) ReadTo(ctx context.Context, class Class, reqs []Request, results chan Result) *Batch {
	return s.send(ctx, class, reqs, results, false)
}

func (s *Set) send(ctx context.Context, class Class, reqs []Request, results chan Result, owned bool) *Batch {
	b := &Batch{set: s, reqs: make([]request, len(reqs)), results: results, owned: owned, left: len(reqs)}
	if len(reqs) == 0 {
		return b
	}
	for i := range reqs {
		b.reqs[i].init(s, b, i, class, &reqs[i])
	}
	s.submit(ctx, b)
	return b
}

// Close cancels all requests and stops the workers. It waits for reads in
// flight up to Options.CloseWait; if some have not returned by then, the error
// wraps ErrStuck, their workers stay behind in the kernel, and the memory they
// read into must not be unmapped (an Arena refuses to).
func (s *Set) Close() error {
	if !s.shut() {
		return nil
	}
	timer := time.NewTimer(s.opt.CloseWait)
	defer timer.Stop()
	gone := make(chan struct{})
	go func() { // ends with the last worker; stays behind only with a stuck one
		s.done.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-timer.C:
		return s.abandon()
	}
	var errs []error
	for _, m := range s.drives {
		errs = append(errs, m.closeFiles())
	}
	return errors.Join(errs...)
}

package place

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"deltafin/ssdio"
)

// VerifyOptions are the options of Verify. Zero means the default.
type VerifyOptions struct {
	// State is as for Open.
	State string
	// Repair: blocks of packs that are bad are written again from another
	// drive that holds them, or from Source. The model's own files are never
	// written to.
	Repair bool
	// Source, if not nil, is where the model's own files are.
	Source *Model
	// Progress is told how far the check is, by one goroutine at a time. It
	// must not block.
	Progress func(Progress)
}

// A Check is what Verify found on one drive.
type Check struct {
	Drive    string // name
	ID       string
	Files    int
	Blocks   int   // that the drive holds
	Bytes    int64 // that were read
	Noted    int   // blocks whose sum was not known and is now recorded
	Bad      int   // blocks that do not match or cannot be read
	Repaired int   // of these
	Heads    int   // packs whose size, header or table is wrong and not repaired
	Buffered bool  // through the page cache, so perhaps from memory
	Took     time.Duration
	// Problems are the first of what is wrong, at most 100.
	Problems []Problem
}

// Good says that everything is as the manifest says, by now.
func (c *Check) Good() bool { return c.Bad == c.Repaired && c.Heads == 0 }

// A Problem is a block that is not as the manifest says, or the head of a pack.
type Problem struct {
	File     string
	Offset   int64 // in the file, bytes
	Length   int64
	Key      ssdio.Key // zero and Block -1 for a head
	Block    int
	Err      error
	Repaired bool
	From     string // where the right bytes came from
}

const maxProblems = 100

// Verify reads everything that the drives hold, past the page cache, and
// compares it with the manifests; drives are read at the same time. Sums that
// were unknown are recorded. With Repair, bad blocks of packs are written again
// and read back. The error is nil if everything could be looked at; whether it
// is good stands in the checks.
func Verify(ctx context.Context, drives []*ssdio.Drive, o *VerifyOptions) ([]*Check, error) {
	v := &verification{}
	if o != nil {
		v.o = *o
	}
	v.meter.report = v.o.Progress
	total := int64(0)
	for _, d := range drives {
		m, err := load(d, v.o.State, "")
		if err != nil {
			return nil, err
		}
		if len(v.manifests) > 0 && m.Fingerprint != v.manifests[0].Fingerprint {
			return nil, fmt.Errorf("drive %s: %w", d.Name, &ForeignModelError{ManifestName, m.Fingerprint, v.manifests[0].Fingerprint})
		}
		v.drives = append(v.drives, d)
		v.manifests = append(v.manifests, m)
		total += m.Bytes()
	}
	if s := v.o.Source; s != nil && len(v.manifests) > 0 && s.Fingerprint != v.manifests[0].Fingerprint {
		return nil, fmt.Errorf("drive %s: %w", drives[0].Name, &ForeignModelError{ManifestName, v.manifests[0].Fingerprint, s.Fingerprint})
	}
	v.meter.begin(total)
	checks := make([]*Check, len(drives))
	bad := make([][]badBlock, len(drives))
	errs := make([]error, len(drives))
	var wait sync.WaitGroup
	for i := range drives {
		wait.Go(func() { checks[i], bad[i], errs[i] = v.drive(ctx, i) })
	}
	wait.Wait()
	if err := errors.Join(errs...); err != nil {
		return checks, err
	}
	for i := range drives {
		if v.o.Repair && (len(bad[i]) > 0 || checks[i].Heads > 0) {
			if err := v.repair(ctx, i, checks[i], bad[i]); err != nil {
				return checks, err
			}
		}
		if checks[i].Noted > 0 {
			if err := save(drives[i], v.manifests[i], v.o.State); err != nil {
				return checks, err
			}
		}
	}
	return checks, nil
}

type verification struct {
	o         VerifyOptions
	drives    []*ssdio.Drive
	manifests []*Manifest
	index     []map[ssdio.Key][]int // entries of each manifest by object, made when needed
	meter     meter
}

// badBlock is a block of an entry of a manifest that is not as it should be.
type badBlock struct {
	entry, block int
	problem      int // index in Check.Problems, -1 if it is not listed
}

// drive checks one drive.
func (v *verification) drive(ctx context.Context, i int) (*Check, []badBlock, error) {
	begun := time.Now()
	d, m := v.drives[i], v.manifests[i]
	c := &Check{Drive: d.Name, ID: d.ID, Files: len(m.Files), Blocks: len(m.sums)}
	src := newSources(d.FS)
	defer src.close()
	v.heads(c, m, src)
	starts := m.starts()
	var mu sync.Mutex // guards c, bad and the sums of m
	var bad []badBlock
	err := scan(ctx, m.Files, m.entries, src, func(n, b int, data []byte, err error) error {
		e := &m.entries[n]
		from, to, offset := e.block(b)
		var got uint32
		if err == nil {
			got = ssdio.Sum(data)
		}
		v.meter.add("checking", d.Name, to-from)
		mu.Lock()
		defer mu.Unlock()
		c.Bytes += int64(len(data))
		want, known := m.sum(starts[n] + b)
		switch {
		case err == nil && !known:
			m.setSum(starts[n]+b, got)
			c.Noted++
			return nil
		case err == nil && got == want:
			return nil
		case err == nil:
			err = fmt.Errorf("has sum %08x, recorded is %08x: %w", got, want, ssdio.ErrChecksum)
		case errors.Is(err, ssdio.ErrGone):
			return fmt.Errorf("drive %s: %w", d.Name, err)
		}
		c.Bad++
		x := badBlock{n, b, -1}
		if len(c.Problems) < maxProblems {
			x.problem = len(c.Problems)
			c.Problems = append(c.Problems, Problem{
				File: m.Files[e.file].Name, Offset: offset, Length: to - from, Key: e.key, Block: int(e.lo) + b, Err: err,
			})
		}
		bad = append(bad, x)
		return nil
	})
	c.Buffered = src.buffered()
	c.Took = time.Since(begun)
	slices.SortFunc(bad, func(a, b badBlock) int {
		return cmp.Or(cmp.Compare(a.entry, b.entry), cmp.Compare(a.block, b.block))
	})
	return c, bad, err
}

// heads checks the part of every pack before its stripes.
func (v *verification) heads(c *Check, m *Manifest, src *sources) {
	for f := range m.Files {
		if !m.Files[f].Pack {
			continue
		}
		head, err := m.packHead(f)
		if err == nil {
			err = sameHead(src, &m.Files[f], head)
		}
		if err == nil {
			continue
		}
		c.Heads++
		if len(c.Problems) < maxProblems {
			c.Problems = append(c.Problems, Problem{File: m.Files[f].Name, Length: int64(len(head)), Block: -1, Err: err})
		}
	}
}

// starts are the indices of each entry's first block in the sums.
func (m *Manifest) starts() []int {
	out := make([]int, len(m.entries))
	at := 0
	for i := range m.entries {
		out[i] = at
		at += m.entries[i].blocks()
	}
	return out
}

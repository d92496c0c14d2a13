package place

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"deltafin/ssdio"
)

const (
	// chunkBlocks is how much is read at once when a drive is checked: 4 MiB
	// reaches the ceiling with few readers.
	chunkBlocks = 16
	// scanWorkers read one drive at the same time.
	scanWorkers = 4
)

// A sources opens the files of a drive once each.
type sources struct {
	fs ssdio.FS

	mu   sync.Mutex // guards below
	open map[string]ssdio.Source
}

func newSources(fs ssdio.FS) *sources { return &sources{fs: fs, open: map[string]ssdio.Source{}} }

func (s *sources) get(name string) (ssdio.Source, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if src, ok := s.open[name]; ok {
		return src, nil
	}
	src, err := s.fs.Open(name)
	if err != nil {
		return nil, err
	}
	s.open[name] = src
	return src, nil
}

func (s *sources) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.open {
		_ = src.Close() // opened for reading: nothing can be lost
	}
	clear(s.open)
}

// buffered says whether any file that was opened goes through the page cache.
func (s *sources) buffered() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, src := range s.open {
		if !src.Direct() {
			return true
		}
	}
	return false
}

// scan reads entries of a drive block by block. visit gets every block once,
// with its bytes or the error that kept them away, and is called by several
// goroutines at once, for one entry by one. An error of visit ends the scan.
func scan(ctx context.Context, files []ManifestFile, entries []entry, src *sources, visit func(i, block int, data []byte, err error) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range min(scanWorkers, len(entries)) {
		wait.Go(func() {
			var mem, bounce ssdio.Scratch
			defer mem.Free()
			defer bounce.Free()
			for {
				i := int(next.Add(1)) - 1
				if i >= len(entries) || ctx.Err() != nil {
					return
				}
				e := &entries[i]
				err := scanEntry(ctx, files[e.file].Name, e, src, &mem, &bounce, func(b int, data []byte, err error) error {
					return visit(i, b, data, err)
				})
				if err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	wait.Wait()
	return context.Cause(ctx)
}

func scanEntry(ctx context.Context, name string, e *entry, src *sources, mem, bounce *ssdio.Scratch, visit func(block int, data []byte, err error) error) error {
	file, ferr := src.get(name)
	for b := 0; b < e.blocks(); b += chunkBlocks {
		if err := ctx.Err(); err != nil {
			return err
		}
		end := min(b+chunkBlocks, e.blocks())
		from, _, offset := e.block(b)
		_, to, _ := e.block(end - 1)
		// In place: memory starts where the file's page does.
		residue := int(offset % page)
		buf, err := mem.Bytes(residue + int(to-from))
		if err != nil {
			return fmt.Errorf("memory for checking: %w", err)
		}
		buf = buf[residue:]
		if err = ferr; err == nil {
			_, err = file.ReadInto(buf, offset, bounce)
		}
		for k := b; k < end; k++ {
			lo, hi, at := e.block(k)
			data := buf[lo-from : hi-from]
			bad := err
			if err != nil && ferr == nil && end-b > 1 {
				// Only the blocks that cannot be read are bad, not their
				// neighbours.
				_, bad = file.ReadInto(data, at, bounce)
			}
			if bad != nil {
				data = nil
			}
			if err := visit(k, data, bad); err != nil {
				return err
			}
		}
	}
	return nil
}

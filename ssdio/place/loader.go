package place

import (
	"errors"
	"fmt"
	"sync"

	"deltafin/ssdio"
)

// A loader reads objects from the model's own files, past the page cache.
type loader struct {
	model *Model
	fs    ssdio.FS

	mu   sync.Mutex // guards below
	open map[string]ssdio.Source
}

func newLoader(m *Model) *loader {
	return &loader{model: m, fs: ssdio.OS(m.Dir), open: map[string]ssdio.Source{}}
}

func (l *loader) source(name string) (ssdio.Source, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if src, ok := l.open[name]; ok {
		return src, nil
	}
	src, err := l.fs.Open(name)
	if err != nil {
		return nil, fmt.Errorf("model file: %w", err)
	}
	l.open[name] = src
	return src, nil
}

// read fills into with the object's bytes from from on.
func (l *loader) read(o *Object, from int64, into []byte, w *ssdio.Scratch) error {
	at := int64(0)
	for _, e := range o.Extents {
		skip := max(from-at, 0)
		at += e.Length
		if skip >= e.Length || len(into) == 0 {
			continue
		}
		n := min(e.Length-skip, int64(len(into)))
		src, err := l.source(e.File)
		if err == nil {
			_, err = src.ReadInto(into[:n], e.Offset+skip, w)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", o.Key, err)
		}
		into, from = into[n:], from+n
	}
	if len(into) > 0 {
		return fmt.Errorf("%s ends %d bytes early: %w", o.Key, len(into), ErrModel)
	}
	return nil
}

// size is the size of one of the model's files.
func (l *loader) size(name string) (int64, error) {
	src, err := l.source(name)
	if err != nil {
		return 0, err
	}
	return src.Size(), nil
}

func (l *loader) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, src := range l.open {
		errs = append(errs, src.Close())
	}
	clear(l.open)
	return errors.Join(errs...)
}

// blockSums are the sums of an object's blocks.
func blockSums(data []byte) []uint32 {
	sums := make([]uint32, 0, ssdio.Blocks(int64(len(data))))
	for at := 0; at < len(data); at += ssdio.BlockSize {
		sums = append(sums, ssdio.Sum(data[at:min(at+ssdio.BlockSize, len(data))]))
	}
	return sums
}

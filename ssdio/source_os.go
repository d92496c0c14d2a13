package ssdio

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// OS is the files of a folder, read past the page cache: O_DIRECT on Linux,
// F_NOCACHE on macOS, FILE_FLAG_NO_BUFFERING on Windows. Where the file system
// refuses that, files are read through the cache and say so ([Source.Direct]).
func OS(dir string) FS { return osFS{dir} }

type osFS struct{ dir string }

// Open implements FS.
func (o osFS) Open(name string) (Source, error) {
	if !fs.ValidPath(name) {
		return nil, fmt.Errorf("open %q in %s: %w", name, o.dir, fs.ErrInvalid)
	}
	return openFile(filepath.Join(o.dir, filepath.FromSlash(name)))
}

// file is a Source over a raw file of the operating system.
type file struct {
	raw    osFile
	size   int64
	align  Align
	direct bool
	path   string
}

// openFile opens for direct reads, or, if these are refused, for buffered ones.
func openFile(path string) (Source, error) {
	raw, err := openRaw(path, true)
	direct := err == nil
	if errors.Is(err, errRefused) {
		raw, err = openRaw(path, false)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := &file{raw: raw, direct: direct, path: path, align: Align{Offset: 1, Length: 1, Memory: 1}}
	if direct {
		f.align = raw.align()
	}
	f.size, err = raw.size()
	if err != nil {
		return nil, errors.Join(&fs.PathError{Op: "stat", Path: path, Err: err}, raw.close())
	}
	return f, nil
}

// ReadInto implements Source.
func (f *file) ReadInto(p []byte, off int64, s *Scratch) (int, error) {
	if off < 0 {
		return 0, fmt.Errorf("read %s at offset %d: %w", f.path, off, ErrRange)
	}
	n, err := readSpan(&f.raw, p, off, f.align, s)
	if err != nil {
		err = fmt.Errorf("read %d bytes at offset %d of %s: %w", len(p), off, f.path, err)
	}
	return n, err
}

// Size implements Source.
func (f *file) Size() int64 { return f.size }

// Align implements Source.
func (f *file) Align() Align { return f.align }

// Direct implements Source.
func (f *file) Direct() bool { return f.direct }

// Close implements Source.
func (f *file) Close() error { return f.raw.close() }

package checkpoint

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// InPlace is an fs.FS whose files already lie in memory. OpenFS uses their bytes
// where they are; from any other fs.FS it reads each shard into the Go heap once.
type InPlace interface {
	fs.FS
	// Bytes returns the content of a file, read-only and valid for the life
	// of the process, or an error that wraps fs.ErrNotExist.
	Bytes(name string) ([]byte, error)
}

// files is where a checkpoint lies: a directory, whose shards are mapped, or an
// fs.FS.
type files struct {
	fsys fs.FS
	dir  string // "" for a model in memory
}

// path is how messages and extents name a file.
func (f files) path(name string) string {
	if f.dir == "" {
		return name
	}
	return filepath.Join(f.dir, name)
}

// metadata reads a small file whole.
func (f files) metadata(name string, limit int64) ([]byte, error) {
	if mem, ok := f.fsys.(InPlace); ok {
		b, err := mem.Bytes(name)
		if err == nil && int64(len(b)) > limit {
			err = tooLong(f.path(name), limit)
		}
		return b, err
	}
	file, err := f.fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = tooLong(f.path(name), limit)
	}
	return b, err
}

func tooLong(path string, limit int64) error {
	return &FormatError{File: path, Offset: limit, Reason: fmt.Sprintf("file is longer than the limit of %d bytes", limit)}
}

// shard gives the bytes of a whole file and what ends their life. On disk they
// are a read-only mapping: address space, not memory, until touched.
func (f files) shard(name string) (data []byte, release func() error, err error) {
	nothing := func() error { return nil }
	if f.dir == "" {
		if mem, ok := f.fsys.(InPlace); ok {
			data, err = mem.Bytes(name)
		} else {
			data, err = fs.ReadFile(f.fsys, name)
		}
		return data, nothing, err
	}
	path := f.path(name)
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer file.Close() // the mapping outlives the descriptor
	info, err := file.Stat()
	if err != nil {
		return nil, nil, err
	}
	switch size := info.Size(); {
	case !info.Mode().IsRegular():
		return nil, nil, &FormatError{File: path, Offset: -1, Reason: "not a regular file"}
	case size == 0:
		return nil, nil, &FormatError{File: path, Offset: 0, Reason: "file is empty"}
	case int64(int(size)) != size:
		return nil, nil, &FormatError{File: path, Offset: -1,
			Reason: fmt.Sprintf("%d bytes do not fit the address space of this machine", size)}
	}
	data, release, err = mapFile(file, int(info.Size()))
	if err != nil {
		return nil, nil, fmt.Errorf("mapping %s (%d bytes): %w", path, info.Size(), err)
	}
	return data, release, nil
}

func notThere(err error) bool { return errors.Is(err, fs.ErrNotExist) }

package nano

import (
	"io"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"
	"unsafe"
)

// memory is a flat, read-only file system of strings. It implements
// checkpoint.InPlace: Bytes hands out the memory itself.
type memory map[string]string

// Bytes returns the content of a file where it lies. It must not be written to.
func (m memory) Bytes(name string) ([]byte, error) {
	s, ok := m[name]
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return unsafe.Slice(unsafe.StringData(s), len(s)), nil
}

// Open gives a file, or the one directory as ".".
func (m memory) Open(name string) (fs.File, error) {
	if name == "." {
		return &root{list: m.list()}, nil
	}
	s, ok := m[name]
	if !ok {
		err := fs.ErrNotExist
		if !fs.ValidPath(name) {
			err = fs.ErrInvalid
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return &file{Reader: strings.NewReader(s), info: info{name: name, size: int64(len(s))}}, nil
}

func (m memory) list() []fs.DirEntry {
	var out []fs.DirEntry
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, fs.FileInfoToDirEntry(info{name: name, size: int64(len(m[name]))}))
	}
	return out
}

// A file reads one string.
type file struct {
	*strings.Reader
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// A root lists the files.
type root struct{ list []fs.DirEntry }

func (*root) Stat() (fs.FileInfo, error) { return info{name: ".", dir: true}, nil }
func (*root) Close() error               { return nil }
func (*root) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: ".", Err: fs.ErrInvalid}
}

// ReadDir gives the next n entries, all that are left if n <= 0.
func (r *root) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(r.list)
	} else if len(r.list) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(r.list))
	out := r.list[:n]
	r.list = r.list[n:]
	return out, nil
}

// info describes a file or the directory.
type info struct {
	name string
	size int64
	dir  bool
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return i.dir }
func (i info) Sys() any           { return nil }
func (i info) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | 0o555
	}
	return 0o444
}

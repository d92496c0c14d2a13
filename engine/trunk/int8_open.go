package trunk

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"deltafin/engine/checkpoint"
	"deltafin/ssdio"
)

var (
	// ErrInt8Damaged: the file is not the one that was written.
	ErrInt8Damaged = errors.New("the int8 trunk is damaged: convert it again")
	// ErrInt8Foreign: the file is of another model, or of another version of the
	// program.
	ErrInt8Foreign = errors.New("the int8 trunk does not belong to this model: convert it again")
)

// maxInt8Header bounds the header of a file that may be anything. K3's takes 2 MB.
const maxInt8Header = 64 << 20

// OpenInt8 reads the header of a converted trunk and checks that the file is whole and
// belongs to the model. The matrices are checked when they are read. The error wraps
// fs.ErrNotExist, ErrInt8Damaged or ErrInt8Foreign.
func OpenInt8(path string, ck *checkpoint.Checkpoint) (*Int8, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	units, err := matricesOf(ck)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	f, err := readInt8(file, info.Size(), ck.Fingerprint(), units)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f.path = path
	return f, nil
}

// readInt8 reads and judges the header of a file of so many bytes.
func readInt8(r io.ReaderAt, size int64, fingerprint string, units [][]named) (*Int8, error) {
	var head [len(int8Magic)]byte
	var tail [int8Tail]byte
	if size < page+int8Tail {
		return nil, fmt.Errorf("it has %d bytes: %w", size, ErrInt8Damaged)
	}
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return nil, err
	}
	if _, err := r.ReadAt(tail[:], size-int8Tail); err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	n, sum, version := le.Uint64(tail[:]), le.Uint32(tail[8:]), le.Uint32(tail[12:])
	switch {
	case string(head[:]) != int8Magic:
		return nil, fmt.Errorf("it does not begin like one: %w", ErrInt8Damaged)
	case string(tail[16:]) != int8Magic:
		return nil, fmt.Errorf("it has %d bytes and does not end like one: %w", size, ErrInt8Damaged)
	case version != int8Version:
		return nil, fmt.Errorf("it has version %d of the format, this program knows %d: %w", version, int8Version, ErrInt8Foreign)
	case n > maxInt8Header || int64(n) > size-page-int8Tail:
		return nil, fmt.Errorf("its header claims %d bytes of %d: %w", n, size, ErrInt8Damaged)
	}
	text := make([]byte, n)
	if _, err := r.ReadAt(text, size-int8Tail-int64(n)); err != nil {
		return nil, err
	}
	if ssdio.Sum(text) != sum {
		return nil, fmt.Errorf("the checksum of its header is wrong: %w", ErrInt8Damaged)
	}
	f := &Int8{}
	if err := json.Unmarshal(text, f); err != nil {
		return nil, fmt.Errorf("its header is not readable (%v): %w", err, ErrInt8Damaged)
	}
	if f.Fingerprint != fingerprint {
		return nil, fmt.Errorf("it was made from model %.16s, this is %.16s: %w", f.Fingerprint, fingerprint, ErrInt8Foreign)
	}
	if f.Group <= 0 || f.Group%int8Columns != 0 {
		return nil, fmt.Errorf("its groups have %d columns: %w", f.Group, ErrInt8Damaged)
	}
	if err := f.match(planInt8(fingerprint, units, f.Group)); err != nil {
		return nil, err
	}
	if have := size - int8Tail - int64(n); have != f.end() {
		return nil, fmt.Errorf("it has %d bytes before its header, the matrices take %d: %w", have, f.end(), ErrInt8Damaged)
	}
	return f, nil
}

// match compares the header with what the model calls for, matrix by matrix: nothing
// of a file that may be anything is taken on trust. It takes over what is not written.
func (f *Int8) match(want *Int8) error {
	if len(f.Units) != len(want.Units) {
		return fmt.Errorf("it has %d layers with the head, the model %d: %w", len(f.Units), len(want.Units), ErrInt8Damaged)
	}
	for i := range f.Units {
		u, w := &f.Units[i], &want.Units[i]
		same := func(a, b Int8Tensor) bool {
			return a.Name == b.Name && a.Format == b.Format && a.Shape == b.Shape && a.Offset == b.Offset && a.Length == b.Length
		}
		if u.Offset != w.Offset || u.Length != w.Length || len(u.Sums) != 4*ssdio.Blocks(w.Length) || !slices.EqualFunc(u.Tensors, w.Tensors, same) {
			return fmt.Errorf("unit %d (%d bytes at %d) is not laid out as this program does (%d at %d): %w", i, u.Length, u.Offset, w.Length, w.Offset, ErrInt8Foreign)
		}
		for k := range u.Tensors {
			u.Tensors[k].class, u.Tensors[k].format = w.Tensors[k].class, w.Tensors[k].format
		}
	}
	return nil
}

func (u *Int8Unit) sum(block int) uint32 { return binary.LittleEndian.Uint32(u.Sums[4*block:]) }

// at names the matrix that has a byte of the unit, or that is next to it.
func (u *Int8Unit) at(offset int64) string {
	name := u.Tensors[0].Name
	for i := range u.Tensors {
		if u.Tensors[i].Offset <= offset {
			name = u.Tensors[i].Name
		}
	}
	return name
}

// Verify reads the whole file past the system's cache, where that is possible, and
// compares every block with its checksum. It gives the blocks that are wrong, each by
// its offset and the matrix in it; an error means that it could not go on.
func (f *Int8) Verify(ctx context.Context, tell func(Progress)) (bad []string, err error) {
	dir, name := splitPath(f.path)
	src, err := ssdio.OS(dir).Open(name)
	if err != nil {
		return nil, err
	}
	defer src.Close()
	var scratch ssdio.Scratch
	defer scratch.Free()
	buf := make([]byte, ssdio.BlockSize)
	p := Progress{Total: f.end() - page}
	for i := range f.Units {
		u := &f.Units[i]
		for b := range ssdio.Blocks(u.Length) {
			if err := context.Cause(ctx); err != nil {
				return bad, err
			}
			at := int64(b) * ssdio.BlockSize
			block := buf[:min(ssdio.BlockSize, u.Length-at)]
			if _, err := src.ReadInto(block, u.Offset+at, &scratch); err != nil {
				return bad, fmt.Errorf("%s, at %d: %w", f.path, u.Offset+at, err)
			}
			if ssdio.Sum(block) != u.sum(b) {
				bad = append(bad, fmt.Sprintf("offset %d: %s", u.Offset+at, u.at(at+int64(len(block))-1)))
			}
			if p.Done += int64(len(block)); tell != nil {
				tell(p)
			}
		}
	}
	return bad, nil
}

// Load reads the whole file into the heap and checks it, for models that are so small
// that a file of theirs counts as memory. The error wraps ErrInt8Damaged.
func (f *Int8) Load() ([]byte, error) {
	data, err := os.ReadFile(f.path)
	if err != nil {
		return nil, err
	}
	for i := range f.Units {
		u := &f.Units[i]
		for b := range ssdio.Blocks(u.Length) {
			at := int64(b) * ssdio.BlockSize
			end := u.Offset + min(at+ssdio.BlockSize, u.Length)
			if int64(len(data)) < end || ssdio.Sum(data[u.Offset+at:end]) != u.sum(b) {
				return nil, fmt.Errorf("%s: wrong checksum at %d: %w", f.path, u.Offset+at, ErrInt8Damaged)
			}
		}
	}
	return data, nil
}

// splitPath is the folder and the name of a file, both "" of none.
func splitPath(path string) (dir, name string) {
	if path == "" {
		return "", Int8Name
	}
	return filepath.Dir(path), filepath.Base(path)
}

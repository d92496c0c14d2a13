package ssdio

// An FS opens the files of a drive. [OS] is the real one; package emulate wraps
// it with limits and faults.
type FS interface {
	// Open opens a file for reading. The name is relative to the drive's folder
	// and slash-separated.
	Open(name string) (Source, error)
}

// A Source is one open file that any number of goroutines read at once.
type Source interface {
	// ReadInto fills p with the bytes of the file from off on. Any offset and
	// length can be asked for. The parts of p that satisfy the alignment are
	// read in place, the rest through s, which only this call uses meanwhile.
	// It returns how many bytes of p went through s (were copied), whatever the
	// error. The error is nil only if p was filled; it wraps ErrShort where the
	// file ends early and ErrGone where the device is not there any more.
	ReadInto(p []byte, off int64, s *Scratch) (copied int, err error)
	// Size of the file when it was opened, in bytes.
	Size() int64
	// Align is what in-place reads need.
	Align() Align
	// Direct is false where the system refused direct reads and the page cache
	// is in between.
	Direct() bool
	// Close closes the file. No read may be in progress.
	Close() error
}

// Align is what a device demands of reads that go past the page cache. All are
// powers of two; 1 means no demand.
type Align struct {
	Offset int // file offset, bytes
	Length int // length, bytes (64 KiB on Windows for speed, not of need)
	Memory int // address, bytes
}

// maxAlign is the largest demand that slots and scratch are laid out for.
const maxAlign = 4096

// Residue is an object's offset in its file modulo this: see [Slot.Buffer].
const residueUnit = maxAlign

// A Scratch is the bounce buffer of one worker: page-aligned memory outside the
// Go heap. It grows to what is asked of it and keeps that.
type Scratch struct {
	mem []byte
}

// Bytes returns n bytes on a page boundary. The next call may reuse them.
func (s *Scratch) Bytes(n int) ([]byte, error) {
	if n <= len(s.mem) {
		return s.mem[:n], nil
	}
	mem, err := mapMemory((n + maxAlign - 1) &^ (maxAlign - 1))
	if err != nil {
		return nil, err
	}
	if err := s.Free(); err != nil {
		return nil, err
	}
	s.mem = mem
	return mem[:n], nil
}

// Free gives the memory back. The Scratch may be used again.
func (s *Scratch) Free() error {
	if s.mem == nil {
		return nil
	}
	mem := s.mem
	s.mem = nil
	return unmapMemory(mem)
}

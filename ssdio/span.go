package ssdio

import (
	"errors"
	"fmt"
	"io"
)

// A raw file reads exactly what it is told, as the system call does: aligned if
// it must be, possibly less than asked, 0 and no error at the end of the file.
type rawFile interface {
	// readv fills the parts in order from one file offset on.
	readv(parts [][]byte, off int64) (int, error)
}

// span is one aligned read that covers [off, off+len(p)): head and tail go
// through the bounce buffer, body is read in place.
//
//	file     |----|----|----|----|        units of Align.Offset
//	p           [------------]
//	parts    |head| body    |tail|
type span struct {
	off              int64 // where the read starts, aligned
	head, body, tail int   // bytes of each part; head and tail in the bounce buffer
	skip             int   // bytes of head before p
	use              int   // bytes of p that come from head
	end              int   // bytes of p that come from tail
}

// planSpan cuts a read of n bytes at off into memory at addr. Every part is a
// multiple of the alignment; if the body would land on an address that the
// device does not take, all of it is head.
func planSpan(off int64, n int, addr uintptr, a Align) span {
	unit := int64(a.Offset)
	start := off &^ (unit - 1)
	up := func(v int64, m int) int64 { return (v + int64(m) - 1) &^ (int64(m) - 1) }
	whole := func() span {
		skip := int(off - start)
		return span{off: start, head: int(up(int64(skip+n), max(a.Length, a.Offset))), skip: skip, use: n}
	}
	bodyAt := up(off, a.Offset)
	use := int(bodyAt - off)
	if n <= use || (addr+uintptr(use))&uintptr(a.Memory-1) != 0 {
		return whole()
	}
	body := (n - use) &^ (max(a.Length, a.Offset) - 1)
	if body == 0 {
		return whole()
	}
	s := span{off: start, head: int(bodyAt - start), skip: int(off - start), use: use, body: body}
	if s.head == 0 {
		s.skip = 0
	}
	s.end = n - use - body
	s.tail = int(up(int64(s.end), max(a.Length, a.Offset)))
	return s
}

// readSpan performs a read of any range with a raw file. Short counts are
// continued: the kernel may return less than asked at any time.
func readSpan(f rawFile, p []byte, off int64, a Align, s *Scratch) (copied int, err error) {
	if len(p) == 0 {
		return 0, nil
	}
	sp := planSpan(off, len(p), addressOf(p), a)
	// Head and tail stand one after the other in the scratch, each on a page.
	tailAt := (sp.head + maxAlign - 1) &^ (maxAlign - 1)
	bounce, err := s.Bytes(tailAt + sp.tail)
	if err != nil {
		return 0, err
	}
	parts := make([][]byte, 0, 3)
	if sp.head > 0 {
		parts = append(parts, bounce[:sp.head])
	}
	if sp.body > 0 {
		parts = append(parts, p[sp.use:sp.use+sp.body])
	}
	if sp.tail > 0 {
		parts = append(parts, bounce[tailAt:tailAt+sp.tail])
	}
	// The last part may reach beyond the end of the file: all that is needed is
	// what p takes of it.
	need := sp.head + sp.body + sp.end
	if sp.body == 0 {
		need = sp.skip + sp.use
	}
	got, err := readParts(f, parts, sp.off, need, a)
	copied = sp.use + sp.end
	if err != nil {
		return copied, err
	}
	if got < need {
		return copied, fmt.Errorf("got %d of %d bytes at offset %d: %w: %w", max(got-sp.skip, 0), len(p), off, ErrShort, io.ErrUnexpectedEOF)
	}
	copy(p[:sp.use], bounce[sp.skip:sp.skip+sp.use])
	copy(p[sp.use+sp.body:], bounce[tailAt:tailAt+sp.end])
	return copied, nil
}

// readParts reads until need bytes are there or the file ends.
func readParts(f rawFile, parts [][]byte, off int64, need int, a Align) (int, error) {
	got := 0
	for {
		n, err := f.readv(parts, off+int64(got))
		if err != nil {
			return got, err
		}
		got += n
		if got >= need || n == 0 {
			return got, nil
		}
		// The rest starts on a boundary again, or else the device would refuse
		// it: what lies behind the last boundary is read twice.
		back := got & (a.Offset - 1)
		if n <= back {
			return got, nil // ends within a unit and gets no further: end of file
		}
		got -= back
		parts = dropBytes(parts, n-back)
	}
}

// dropBytes removes the first n bytes of a list of parts.
func dropBytes(parts [][]byte, n int) [][]byte {
	for n > 0 && n >= len(parts[0]) {
		n -= len(parts[0])
		parts = parts[1:]
	}
	if n > 0 {
		parts = append([][]byte{parts[0][n:]}, parts[1:]...)
	}
	return parts
}

// errRefused: the file system does not do direct reads.
var errRefused = errors.New("direct reads are refused")

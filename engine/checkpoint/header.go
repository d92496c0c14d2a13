package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
)

// Limits of a safetensors header. 100 MB is the format's own; the largest
// header of the full model is under 1 MB, with 5,404 tensors.
const (
	maxHeader  = 100_000_000
	maxTensors = 1 << 20
	maxDims    = 8
	maxName    = 1 << 10
)

// A record is one tensor as a header describes it. The name is a window into
// the file.
type record struct {
	name       []byte
	at         int // offset of the name in the header text, for messages
	dtype      DType
	dims       []int
	begin, end int64 // bytes from the end of the header
}

// parseHeader reads the header of a safetensors file: 8 bytes little-endian
// length, that many bytes of JSON, data. It checks every tensor's bytes against
// its dtype and shape, and that the tensors cover the data without overlap, gap
// or rest, as the format demands. start is the offset of the data.
func parseHeader(file string, data []byte) (records []record, start int64, err error) {
	if len(data) < 8 {
		return nil, 0, &FormatError{File: file, Offset: 0,
			Reason: fmt.Sprintf("%d bytes, too short for the 8 bytes of a header length: truncated", len(data))}
	}
	n := binary.LittleEndian.Uint64(data)
	switch {
	case n > maxHeader:
		return nil, 0, &FormatError{File: file, Offset: 0,
			Reason: fmt.Sprintf("header length is %d, over the limit of %d: not a safetensors file", n, maxHeader)}
	case n > uint64(len(data)-8):
		return nil, 0, &FormatError{File: file, Offset: 0,
			Reason: fmt.Sprintf("header length is %d but only %d bytes follow: truncated", n, len(data)-8)}
	}
	start = 8 + int64(n)
	s := &scanner{file: file, base: 8, b: data[8:start]}
	err = s.object(func(name []byte, at int) error {
		if string(name) == "__metadata__" {
			return s.skip()
		}
		if len(records) == maxTensors {
			return s.errf(at, "more than %d tensors", maxTensors)
		}
		if len(name) == 0 || len(name) > maxName {
			return s.errf(at, "tensor name of %d bytes, allowed are 1 to %d", len(name), maxName)
		}
		r, err := s.record(name, at)
		records = append(records, r)
		return err
	})
	if err == nil {
		err = s.end()
	}
	if err == nil {
		err = s.cover(records, int64(len(data))-start)
	}
	return records, start, err
}

// record reads {"dtype": .., "shape": [..], "data_offsets": [begin, end]}.
func (s *scanner) record(name []byte, at int) (record, error) {
	r := record{name: name, at: at, dims: make([]int, 0, 2)}
	var seen [3]bool
	once := func(i int, key []byte, at int) error {
		if seen[i] {
			return s.errf(at, "tensor %s: %s stands twice", clip(name), key)
		}
		seen[i] = true
		return nil
	}
	err := s.object(func(key []byte, at int) error {
		switch string(key) {
		case "dtype":
			if err := once(0, key, at); err != nil {
				return err
			}
			word, err := s.str()
			if err != nil {
				return err
			}
			var ok bool
			if r.dtype, ok = parseDType(word); !ok {
				return s.errf(at, "tensor %s: unknown dtype %s", clip(name), clip(word))
			}
			return nil
		case "shape":
			if err := once(1, key, at); err != nil {
				return err
			}
			return s.array(func() error {
				d, err := s.whole("a dimension", name)
				if err == nil && len(r.dims) == maxDims {
					err = s.errf(at, "tensor %s: more than %d dimensions", clip(name), maxDims)
				}
				r.dims = append(r.dims, int(d))
				return err
			})
		case "data_offsets":
			if err := once(2, key, at); err != nil {
				return err
			}
			return s.offsets(&r, at)
		}
		return s.errf(at, "tensor %s: unknown field %s", clip(name), clip(key))
	})
	if err == nil && seen != [3]bool{true, true, true} {
		err = s.errf(at, "tensor %s: dtype, shape and data_offsets must all be there", clip(name))
	}
	return r, err
}

func (s *scanner) offsets(r *record, at int) error {
	var ends [2]int64
	n := 0
	err := s.array(func() error {
		if n == 2 {
			return s.errf(at, "tensor %s: more than two data_offsets", clip(r.name))
		}
		var err error
		ends[n], err = s.whole("a data offset", r.name)
		n++
		return err
	})
	if err == nil && (n != 2 || ends[0] > ends[1]) {
		err = s.errf(at, "tensor %s: data_offsets %v must be [begin, end]", clip(r.name), ends[:n])
	}
	r.begin, r.end = ends[0], ends[1]
	return err
}

// byteSize is the number of bytes of a shape. ok is false beyond 2^53 or if the
// elements do not fill whole bytes.
func byteSize(dt DType, dims []int) (n int64, ok bool) {
	elements := uint64(1)
	for _, d := range dims {
		hi, lo := bits.Mul64(elements, uint64(d))
		if hi != 0 || lo > 1<<53 {
			return 0, false
		}
		elements = lo
	}
	total := int64(elements) * dt.Bits() // at most 2^53 * 64 = 2^59
	return total / 8, total%8 == 0 && total/8 <= 1<<53
}

// cover checks sizes, and that the records tile the size bytes of data.
func (s *scanner) cover(records []record, size int64) error {
	for i := range records {
		r := &records[i]
		want, ok := byteSize(r.dtype, r.dims)
		if !ok {
			return s.errf(r.at, "tensor %s: %v %v is not a possible size", clip(r.name), r.dtype, r.dims)
		}
		if r.end-r.begin != want {
			return s.errf(r.at, "tensor %s: data_offsets [%d %d] span %d bytes, %v %v needs %d",
				clip(r.name), r.begin, r.end, r.end-r.begin, r.dtype, r.dims, want)
		}
		if r.end > size {
			return s.errf(r.at, "tensor %s: its data ends at byte %d of the data, which has %d: truncated file or lying header",
				clip(r.name), r.end, size)
		}
	}
	slices.SortFunc(records, func(a, b record) int {
		if a.begin != b.begin {
			return int(min(max(a.begin-b.begin, -1), 1))
		}
		return int(min(max(a.end-b.end, -1), 1))
	})
	var last int64
	for i := range records {
		r := &records[i]
		if r.begin < last {
			return s.errf(r.at, "tensor %s: its data starts at %d and overlaps tensor %s, which ends at %d",
				clip(r.name), r.begin, clip(records[i-1].name), last)
		}
		if r.begin > last {
			return s.errf(r.at, "tensor %s: its data starts at %d, the %d bytes before it belong to no tensor",
				clip(r.name), r.begin, r.begin-last)
		}
		last = r.end
	}
	if last != size {
		return s.errf(-int(s.base), "the header describes %d bytes of data, the file has %d", last, size)
	}
	return nil
}

package place

import (
	"encoding/binary"
	"fmt"
	"math"

	"deltafin/ssdio"
)

// Sizes of the parts of files, bytes.
const (
	entrySize  = 40
	sumSize    = 4
	recordSize = 20
	maxName    = 4096
)

var le = binary.LittleEndian

// A prefix is how every file of this package begins: 8 bytes of magic, then the
// version. They stand first, so that any later version can be told from damage.
func prefix(magic string, version uint32) []byte { return le.AppendUint32([]byte(magic), version) }

// checkPrefix judges magic and version of a file.
func checkPrefix(name string, data []byte, magic string, version uint32) error {
	if len(data) < 12 || string(data[:8]) != magic {
		return fmt.Errorf("%s does not begin with %q: %w", name, magic, ErrDamaged)
	}
	switch v := le.Uint32(data[8:]); {
	case v > version:
		return fmt.Errorf("%s has version %d, this program knows %d: %w; use that version, or place the model again with this one", name, v, version, ErrNewer)
	case v == 0:
		return fmt.Errorf("%s has version 0: %w", name, ErrDamaged)
	}
	return nil
}

// A scanner takes fields from the front of a file's bytes. After the first that
// is not there it gives zeros and remembers.
type scanner struct {
	data []byte
	at   int
	bad  bool
}

func (s *scanner) take(n int) []byte {
	if s.bad || n < 0 || n > len(s.data)-s.at {
		s.bad = true
		return nil
	}
	b := s.data[s.at : s.at+n : s.at+n] // nobody may append into the file
	s.at += n
	return b
}

func (s *scanner) u32() uint32 {
	if b := s.take(4); b != nil {
		return le.Uint32(b)
	}
	return 0
}

func (s *scanner) u64() uint64 {
	if b := s.take(8); b != nil {
		return le.Uint64(b)
	}
	return 0
}

func (s *scanner) print() (f fingerprint) {
	copy(f[:], s.take(len(f)))
	return f
}

func (s *scanner) id() (d driveID) {
	copy(d[:], s.take(len(d)))
	return d
}

// count takes a number of things of at least size bytes each that are still to
// come: one that the rest of the file has no room for is damage, and nothing is
// allocated for it.
func (s *scanner) count(size int) int {
	n := s.u32()
	if int64(n)*int64(size) > int64(len(s.data)-s.at) {
		s.bad = true
		return 0
	}
	return int(n)
}

func (s *scanner) text() string {
	n := int(s.u32())
	if n > maxName {
		s.bad = true
		return ""
	}
	return string(s.take(n))
}

func appendText(b []byte, s string) []byte {
	return append(le.AppendUint32(b, uint32(len(s))), s...)
}

// appendEntry writes an entry: layer, expert, size, lo, hi, file, 0, offset.
func appendEntry(b []byte, e *entry) []byte {
	b = le.AppendUint32(b, uint32(e.key.Layer))
	b = le.AppendUint32(b, uint32(e.key.Expert))
	b = le.AppendUint64(b, uint64(e.size))
	b = le.AppendUint32(b, uint32(e.lo))
	b = le.AppendUint32(b, uint32(e.hi))
	b = le.AppendUint32(b, uint32(e.file))
	b = le.AppendUint32(b, 0)
	return le.AppendUint64(b, uint64(e.offset))
}

// entry takes an entry and checks it against itself.
func (s *scanner) entry() (e entry) {
	e.key.Layer, e.key.Expert = int32(s.u32()), int32(s.u32())
	size, lo, hi := s.u64(), s.u32(), s.u32()
	file, zero, offset := s.u32(), s.u32(), s.u64()
	if s.bad || size == 0 || size > maxObject || lo >= hi || int64(hi) > int64(ssdio.Blocks(int64(size))) ||
		file > math.MaxInt32 || zero != 0 || offset > math.MaxInt64-size {
		s.bad = true
		return entry{}
	}
	e.size, e.lo, e.hi, e.file, e.offset = int64(size), int32(lo), int32(hi), int32(file), int64(offset)
	return e
}

// encode writes a plan; see the package comment for the fields.
func (p *Plan) encode() []byte {
	b := le.AppendUint64(nil, uint64(p.PackSize))
	b = le.AppendUint64(b, math.Float64bits(p.Rate))
	b = le.AppendUint32(b, uint32(len(p.Drives)))
	for i := range p.Drives {
		d := &p.Drives[i]
		id, _ := parseID(d.ID) // checked when the plan was made
		b = append(b, id[:]...)
		b = appendText(b, d.Name)
		b = le.AppendUint64(b, math.Float64bits(d.Speed))
		b = le.AppendUint64(b, math.Float64bits(d.Work))
		b = le.AppendUint64(b, uint64(d.Bytes))
		b = le.AppendUint64(b, uint64(d.Written))
		b = le.AppendUint32(b, d.Stripe.From)
		b = le.AppendUint32(b, d.Stripe.To)
		flags := uint32(0)
		if d.InPlace {
			flags = 1
		}
		b = le.AppendUint32(b, flags)
	}
	return b
}

// plan takes a plan of a model.
func (s *scanner) plan(f fingerprint) *Plan {
	p := &Plan{Fingerprint: f.String()}
	size := s.u64()
	p.PackSize = int64(size)
	p.Rate = math.Float64frombits(s.u64())
	n := s.count(64)
	if n > ssdio.MaxDrives || size < minPackSize || size > math.MaxInt64 {
		s.bad = true
		return p
	}
	for range n {
		var d Share
		d.ID = s.id().String()
		d.Name = s.text()
		d.Speed, d.Work = math.Float64frombits(s.u64()), math.Float64frombits(s.u64())
		d.Bytes, d.Written = int64(s.u64()), int64(s.u64())
		d.Stripe = Stripe{s.u32(), s.u32()}
		flags := s.u32()
		d.InPlace = flags == 1
		if d.Stripe.From > d.Stripe.To || d.Stripe.To > whole || flags > 1 || p.index(d.ID) >= 0 {
			s.bad = true
		}
		p.Drives = append(p.Drives, d)
	}
	return p
}

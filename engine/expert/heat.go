package expert

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"slices"
)

// Heat is how often each expert was used lately, kept between runs so that a cache
// knows from its first token what deserves to stay. It is advice: losing it costs
// some reads, never a result.
//
//	offset  bytes
//	0       8      magic "DFHEAT01"
//	8       2      f, length of the model's fingerprint, little-endian as all numbers
//	10      f      the fingerprint
//	        4      n, experts of all layers
//	        4*n    heat of each in decayed uses, float32, layer by layer
//	        4      CRC-32C of everything before it
type Heat []float32

const heatMagic = "DFHEAT01"

// maxHeat bounds the number of experts of a file that may be anything: 400 times
// those of K3.
const maxHeat = 1 << 25

// Errors of ReadHeat; test with errors.Is. Neither is a reason to stop.
var (
	// ErrHeatDamaged: the bytes are not those that were written.
	ErrHeatDamaged = errors.New("the heat file is damaged")
	// ErrHeatForeign: it belongs to another model.
	ErrHeatForeign = errors.New("the heat file belongs to another model")
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendHeat appends the file of a model's heat to b.
func AppendHeat(b []byte, fingerprint string, h Heat) []byte {
	at := len(b)
	b = append(b, heatMagic...)
	b = binary.LittleEndian.AppendUint16(b, uint16(len(fingerprint)))
	b = append(b, fingerprint...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h)))
	for _, v := range h {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
	}
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b[at:], castagnoli))
}

// ReadHeat reads what AppendHeat wrote for the same model.
func ReadHeat(r io.Reader, fingerprint string) (Heat, error) {
	sum := crc32.New(castagnoli)
	in := io.TeeReader(r, sum)
	head := make([]byte, len(heatMagic)+2)
	if _, err := io.ReadFull(in, head); err != nil {
		return nil, heatDamaged("it ends in its first bytes")
	}
	if string(head[:len(heatMagic)]) != heatMagic {
		return nil, heatDamaged("it does not begin like one")
	}
	name := make([]byte, binary.LittleEndian.Uint16(head[len(heatMagic):]))
	var word [4]byte
	if _, err := io.ReadFull(in, name); err != nil {
		return nil, heatDamaged("it ends in its fingerprint")
	}
	if _, err := io.ReadFull(in, word[:]); err != nil {
		return nil, heatDamaged("it ends before its heat")
	}
	n := binary.LittleEndian.Uint32(word[:])
	if n > maxHeat {
		return nil, heatDamaged("it claims %d experts", n)
	}
	// Grown as it is read: a false number must not cost memory.
	var h Heat
	buf := make([]byte, 1<<14)
	for left := 4 * int(n); left > 0; left -= len(buf) {
		buf = buf[:min(left, cap(buf))]
		if _, err := io.ReadFull(in, buf); err != nil {
			return nil, heatDamaged("it ends after %d of %d experts", len(h), n)
		}
		for word := range slices.Chunk(buf, 4) {
			h = append(h, math.Float32frombits(binary.LittleEndian.Uint32(word)))
		}
	}
	want := sum.Sum32()
	if _, err := io.ReadFull(r, word[:]); err != nil || binary.LittleEndian.Uint32(word[:]) != want {
		return nil, heatDamaged("its checksum is wrong")
	}
	if string(name) != fingerprint {
		return nil, fmt.Errorf("%w: %.12s…, this one is %.12s…", ErrHeatForeign, name, fingerprint)
	}
	for i, v := range h {
		if !(v >= 0) || math.IsInf(float64(v), 0) {
			return nil, heatDamaged("expert %d has heat %v", i, v)
		}
	}
	return h, nil
}

func heatDamaged(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrHeatDamaged, fmt.Sprintf(format, args...))
}

// Heat is the present heat of all experts.
func (s *Store) Heat() Heat {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := make(Heat, s.cat.Experts())
	for i := range h {
		h[i] = float32(s.policy.Heat(i))
	}
	return h
}

// SetHeat starts the store with the heat of an earlier run, before the first layer
// is opened. The error wraps ErrHeatForeign if it has another number of experts.
func (s *Store) SetHeat(h Heat) error {
	if len(h) != s.cat.Experts() {
		return fmt.Errorf("%w: it has %d experts, this one %d", ErrHeatForeign, len(h), s.cat.Experts())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) > 0 || s.policy.Len() > 0 {
		return ErrOpen
	}
	s.policy.SetHeat(h)
	return nil
}

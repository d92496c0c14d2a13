package tokenizer

import (
	"fmt"
	"math/bits"
)

// none marks bytes that are no token. It is above every rank, so that a search
// for the lowest rank needs no second test.
const none = ^uint32(0)

// lookup finds the rank of a token by its bytes. Encoding is a long series of
// such questions, most of them about a few bytes and most answered "no", so
// they are asked of an open-addressing table that keeps a tag of the hash
// beside the rank: a miss is one load, a hit two and a comparison.
type lookup struct {
	single [256]uint32   // rank of each single byte
	double [65536]uint32 // rank of each pair of bytes, first byte high, or none
	slots  []slot        // a power of two, at most two thirds full
	mask   uint64
	blob   string   // bytes of all tokens in order of rank
	off    []uint32 // token r is blob[off[r]:off[r+1]]
}

type slot struct {
	tag  uint32 // upper half of the hash
	rank uint32 // none: the slot is empty
}

// newLookup builds the table. It fails if two ranks have the same bytes or a
// single byte has no rank, in which case some text could not be encoded.
func newLookup(ranks rankList) (*lookup, error) {
	t := &lookup{blob: ranks.blob, off: ranks.off}
	// Between a third and two thirds full: a sparser table has shorter chains,
	// but misses the cache more often, which costs more.
	size := 1 << bits.Len(uint(t.len()*3/2))
	t.slots = make([]slot, size)
	t.mask = uint64(size - 1)
	for i := range t.slots {
		t.slots[i].rank = none
	}
	for i := range t.double {
		t.double[i] = none
	}
	for i := range t.single {
		t.single[i] = none
	}
	for r := range uint32(t.len()) {
		b := t.bytes(int(r))
		if old := t.find(b); old != none {
			return nil, fmt.Errorf("line %d: the bytes %.40q already have rank %d (line %d)", ranks.line[r], b, old, ranks.line[old])
		}
		t.insert(b, r)
	}
	for b, r := range t.single {
		if r == none {
			return nil, fmt.Errorf("the single byte 0x%02X has no rank: every byte needs one", b)
		}
	}
	return t, nil
}

func (t *lookup) insert(b string, rank uint32) {
	switch len(b) {
	case 1:
		t.single[b[0]] = rank
		return
	case 2:
		t.double[pair(b[0], b[1])] = rank
		return
	}
	h := hash(b)
	i := h & t.mask
	for t.slots[i].rank != none {
		i = (i + 1) & t.mask
	}
	t.slots[i] = slot{tag: uint32(h >> 32), rank: rank}
}

// len is the number of ranks.
func (t *lookup) len() int { return len(t.off) - 1 }

// bytes returns the bytes of a rank, which must be below len.
func (t *lookup) bytes(rank int) string { return t.blob[t.off[rank]:t.off[rank+1]] }

// find returns the rank of b, or none.
func (t *lookup) find(b string) uint32 {
	switch len(b) {
	case 0:
		return none
	case 1:
		return t.single[b[0]]
	case 2:
		return t.double[pair(b[0], b[1])]
	}
	h := hash(b)
	tag := uint32(h >> 32)
	for i := h & t.mask; ; i = (i + 1) & t.mask {
		s := t.slots[i]
		if s.rank == none || s.tag == tag && t.bytes(int(s.rank)) == b {
			return s.rank
		}
	}
}

func pair(a, b byte) int { return int(a)<<8 | int(b) }

// hash mixes b eight bytes at a time by folded multiplication. b has at least
// three bytes.
func hash(b string) uint64 {
	const k0, k1 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93
	h := uint64(len(b)) * k1
	for len(b) > 8 {
		h = fold(h^load8(b), k0)
		b = b[8:]
	}
	// The last 1..8 bytes: two overlapping halves, or bytes where there are
	// fewer than four.
	var tail uint64
	switch {
	case len(b) == 8:
		tail = load8(b)
	case len(b) >= 4:
		tail = load4(b) | load4(b[len(b)-4:])<<32
	default:
		tail = uint64(b[0]) | uint64(b[len(b)/2])<<8 | uint64(b[len(b)-1])<<16
	}
	return fold(h^tail, k1)
}

func fold(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

func load4(b string) uint64 {
	_ = b[3]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24
}

func load8(b string) uint64 {
	_ = b[7]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

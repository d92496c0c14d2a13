package ssdio

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// MaxDrives is the most drives one layout can have.
const MaxDrives = 64

// A Layout says where the bytes of every object lie. It is built once
// ([Builder]) and then read by any number of goroutines; only the sums that are
// recorded on first use and the marks of what was checked change.
type Layout struct {
	drives  int
	files   []File
	objects []object
	index   map[Key]int32
	sums    []atomic.Uint64 // [blocks of all objects]: sumKnown | CRC32C
	checked []atomic.Uint64 // [blocks of all holdings] bits: checked once from this holder
}

// A File is one file of one drive.
type File struct {
	Drive int    // index of the drive
	Name  string // relative to the drive's folder, slash-separated
	Size  int64  // bytes it must at least have
}

// A Holding says that the bytes [From,To) of an object lie in a file from
// Offset on. From is a multiple of [BlockSize]; To is one too, or the object's
// size. Offset can be anything.
type Holding struct {
	Key      Key
	From, To int64 // of the object
	File     int   // index given by Builder.File
	Offset   int64 // in the file
}

// sumKnown marks a sum that was stated or recorded; the low 32 bits are the sum.
const sumKnown = 1 << 63

// object is one object with its holdings, in block units where it can be.
type object struct {
	key    Key
	size   int64
	blocks int32
	sum0   int       // index of its first block in Layout.sums
	hold   []holding // by lo
}

// holding is a Holding in block units.
type holding struct {
	lo, hi int32 // blocks [lo,hi)
	file   int32
	drive  int32
	offset int64 // of block lo in the file
	seen0  int   // index of the bit of block lo in Layout.checked
}

// at is the file offset of a block that the holding covers.
func (h *holding) at(block int32) int64 {
	return h.offset + int64(block-h.lo)*BlockSize
}

// end is the object offset at which the block before b ends.
func (o *object) end(b int32) int64 { return min(int64(b)*BlockSize, o.size) }

// span is the number of bytes in blocks [lo,hi).
func (o *object) span(lo, hi int32) int64 { return max(o.end(hi)-int64(lo)*BlockSize, 0) }

// A Builder collects what is known of files and objects and makes a Layout. Its
// zero value is ready. It is not safe for concurrent use.
type Builder struct {
	files   []File
	objects []object
	sums    []uint64
	index   map[Key]int32
	bits    int
	drives  int
}

// File adds a file and returns its index. drive is the index of its drive in
// the slice that is later given to [Open].
func (b *Builder) File(drive int, name string, size int64) (int, error) {
	if drive < 0 || drive >= MaxDrives {
		return 0, fmt.Errorf("file %s on drive %d: a layout has drives 0 to %d: %w", name, drive, MaxDrives-1, ErrRange)
	}
	if size < 0 {
		return 0, fmt.Errorf("file %s has a size of %d: %w", name, size, ErrRange)
	}
	b.drives = max(b.drives, drive+1)
	b.files = append(b.files, File{Drive: drive, Name: name, Size: size})
	return len(b.files) - 1, nil
}

// Object states an object's size and, where known, the CRC32C of each of its
// blocks; nil sums are recorded when the block is first read. An object may be
// stated several times (once for each drive that holds a part); statements that
// contradict each other wrap [ErrConflict].
func (b *Builder) Object(key Key, size int64, sums []uint32) error {
	if size <= 0 || size > math.MaxInt32*int64(BlockSize) {
		return fmt.Errorf("%s has a size of %d bytes: %w", key, size, ErrRange)
	}
	n := Blocks(size)
	if sums != nil && len(sums) != n {
		return fmt.Errorf("%s has %d block sums, %d bytes need %d: %w", key, len(sums), size, n, ErrRange)
	}
	i, known := b.index[key]
	if !known {
		if b.index == nil {
			b.index = map[Key]int32{}
		}
		i = int32(len(b.objects))
		b.index[key] = i
		b.objects = append(b.objects, object{key: key, size: size, blocks: int32(n), sum0: len(b.sums)})
		b.sums = append(b.sums, make([]uint64, n)...)
	}
	o := &b.objects[i]
	if o.size != size {
		return fmt.Errorf("%s is %d bytes in one place and %d in another: %w", key, o.size, size, ErrConflict)
	}
	for k, s := range sums {
		at := &b.sums[o.sum0+k]
		if *at != 0 && *at != sumKnown|uint64(s) {
			return fmt.Errorf("%s block %d has sum %08x in one place and %08x in another: %w", key, k, uint32(*at), s, ErrConflict)
		}
		*at = sumKnown | uint64(s)
	}
	return nil
}

// BlockSum states one block's sum, for manifests that know only the blocks they
// hold. The object must have been stated.
func (b *Builder) BlockSum(key Key, block int, sum uint32) error {
	i, ok := b.index[key]
	if !ok {
		return fmt.Errorf("%s: %w", key, ErrUnknownKey)
	}
	o := &b.objects[i]
	if block < 0 || block >= int(o.blocks) {
		return fmt.Errorf("%s has no block %d, it has %d: %w", key, block, o.blocks, ErrRange)
	}
	at := &b.sums[o.sum0+block]
	if *at != 0 && *at != sumKnown|uint64(sum) {
		return fmt.Errorf("%s block %d has sum %08x in one place and %08x in another: %w", key, block, uint32(*at), sum, ErrConflict)
	}
	*at = sumKnown | uint64(sum)
	return nil
}

// Hold adds a holding. The object must have been stated. Holdings of one object
// may overlap: that is what gives the scheduler its freedom.
func (b *Builder) Hold(h Holding) error {
	i, ok := b.index[h.Key]
	if !ok {
		return fmt.Errorf("%s: %w", h.Key, ErrUnknownKey)
	}
	o := &b.objects[i]
	if h.From < 0 || h.To > o.size || h.From >= h.To || h.From%BlockSize != 0 || (h.To%BlockSize != 0 && h.To != o.size) {
		return fmt.Errorf("%s: bytes [%d,%d) of %d are no whole blocks of %d: %w", h.Key, h.From, h.To, o.size, BlockSize, ErrRange)
	}
	if h.File < 0 || h.File >= len(b.files) {
		return fmt.Errorf("%s: there is no file %d: %w", h.Key, h.File, ErrRange)
	}
	f := &b.files[h.File]
	if h.Offset < 0 || h.Offset > f.Size-(h.To-h.From) {
		return fmt.Errorf("%s: %d bytes at offset %d do not fit %s of %d bytes: %w", h.Key, h.To-h.From, h.Offset, f.Name, f.Size, ErrRange)
	}
	lo, hi := int32(h.From/BlockSize), int32((h.To+BlockSize-1)/BlockSize)
	o.hold = append(o.hold, holding{
		lo: lo, hi: hi, file: int32(h.File), drive: int32(f.Drive), offset: h.Offset, seen0: b.bits,
	})
	b.bits += int(hi - lo)
	return nil
}

// Layout makes the layout. The Builder must not be used afterwards. Objects
// with bytes that nobody holds are allowed, see [Layout.Gaps].
func (b *Builder) Layout() *Layout {
	l := &Layout{
		drives: b.drives, files: b.files, objects: b.objects, index: b.index,
		sums:    make([]atomic.Uint64, len(b.sums)),
		checked: make([]atomic.Uint64, (b.bits+63)/64),
	}
	for i, s := range b.sums {
		l.sums[i].Store(s)
	}
	for i := range l.objects {
		slices.SortFunc(l.objects[i].hold, func(x, y holding) int {
			if x.lo != y.lo {
				return int(x.lo - y.lo)
			}
			return int(x.drive - y.drive)
		})
	}
	*b = Builder{}
	return l
}

// Files lists the files of the layout. The caller must not change it.
func (l *Layout) Files() []File { return l.files }

// Len is the number of objects.
func (l *Layout) Len() int { return len(l.objects) }

// Keys lists the objects in the order in which they were stated.
func (l *Layout) Keys() []Key {
	keys := make([]Key, len(l.objects))
	for i := range l.objects {
		keys[i] = l.objects[i].key
	}
	return keys
}

// Size is the size of an object in bytes; false if there is no such object.
func (l *Layout) Size(key Key) (int64, bool) {
	i, ok := l.index[key]
	if !ok {
		return 0, false
	}
	return l.objects[i].size, true
}

// Holdings lists who holds what of an object, in the order of its bytes.
func (l *Layout) Holdings(key Key) []Holding {
	i, ok := l.index[key]
	if !ok {
		return nil
	}
	o := &l.objects[i]
	out := make([]Holding, len(o.hold))
	for k, h := range o.hold {
		out[k] = Holding{
			Key: key, From: int64(h.lo) * BlockSize, To: o.end(h.hi), File: int(h.file), Offset: h.offset,
		}
	}
	return out
}

// Sum is the recorded or stated checksum of a block; false if none is known.
func (l *Layout) Sum(key Key, block int) (uint32, bool) {
	i, ok := l.index[key]
	if !ok || block < 0 || block >= int(l.objects[i].blocks) {
		return 0, false
	}
	v := l.sums[l.objects[i].sum0+block].Load()
	return uint32(v), v&sumKnown != 0
}

// Check compares the bytes of a whole object with the known sums of its blocks: what
// was read and checked long ago may have changed in memory since. It gives the first
// block that differs, -1 if there is none.
func (l *Layout) Check(key Key, data []byte) (block int, err error) {
	i, ok := l.index[key]
	if !ok {
		return -1, fmt.Errorf("%s: %w", key, ErrUnknownKey)
	}
	o := &l.objects[i]
	if int64(len(data)) != o.size {
		return -1, fmt.Errorf("%s has %d bytes, not %d: %w", key, o.size, len(data), ErrRange)
	}
	for b := range o.blocks {
		want := l.sums[o.sum0+int(b)].Load()
		if want != 0 && want != sumKnown|uint64(Sum(data[int64(b)*BlockSize:o.end(b+1)])) {
			return int(b), nil
		}
	}
	return -1, nil
}

// Sums counts the blocks of all objects and those whose sum is known.
func (l *Layout) Sums() (known, blocks int) {
	for i := range l.sums {
		if l.sums[i].Load() != 0 {
			known++
		}
	}
	return known, len(l.sums)
}

// Residue is where an object should start within a page so that most of its
// bytes can be read in place: see [Slot.Buffer]. It is the residue that covers
// the most bytes over all holders, 0 for an unknown object.
func (l *Layout) Residue(key Key) int {
	i, ok := l.index[key]
	if !ok {
		return 0
	}
	o := &l.objects[i]
	best, most := 0, int64(0)
	for k := range o.hold {
		r, sum := residue(&o.hold[k]), int64(0)
		for j := range o.hold {
			if residue(&o.hold[j]) == r {
				sum += o.span(o.hold[j].lo, o.hold[j].hi)
			}
		}
		if sum > most {
			best, most = r, sum
		}
	}
	return best
}

// residue of one holding. BlockSize is a multiple of the unit, so every block
// of the holding has the same.
func residue(h *holding) int { return int(h.offset % residueUnit) }

// Gaps lists the objects of which some byte has no holder among the drives in
// the set; nil drives means all of them.
func (l *Layout) Gaps(drives []int) []Key {
	var out []Key
	for i := range l.objects {
		o := &l.objects[i]
		at := int32(0)
		for k := range o.hold {
			h := &o.hold[k]
			if drives != nil && !slices.Contains(drives, int(h.drive)) {
				continue
			}
			if h.lo > at {
				break
			}
			at = max(at, h.hi)
		}
		if at < o.blocks {
			out = append(out, o.key)
		}
	}
	return out
}

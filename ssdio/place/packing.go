package place

import (
	"fmt"

	"deltafin/ssdio"
)

// page is the unit on which stripes start in packs, bytes: what direct reads of
// every system take.
const page = 4096

func pages(n int64) int64 { return (n + page - 1) &^ (page - 1) }

// An entry says where a drive holds a part of one object.
type entry struct {
	key    ssdio.Key
	size   int64 // of the whole object, bytes
	lo, hi int32 // blocks of the object
	file   int32
	offset int64 // of block lo in the file
}

// from and to bound the entry in bytes of its object.
func (e *entry) from() int64  { return int64(e.lo) * ssdio.BlockSize }
func (e *entry) to() int64    { return min(int64(e.hi)*ssdio.BlockSize, e.size) }
func (e *entry) bytes() int64 { return e.to() - e.from() }
func (e *entry) blocks() int  { return int(e.hi - e.lo) }

// block bounds the b-th block of the entry: bytes of the object, and where they
// lie in the file.
func (e *entry) block(b int) (from, to, offset int64) {
	from = e.from() + int64(b)*ssdio.BlockSize
	return from, min(from+ssdio.BlockSize, e.to()), e.offset + int64(b)*ssdio.BlockSize
}

// A packing is everything that one drive is to hold by a plan, in the order of
// the model's objects: a pure function of model and plan, so that an
// interrupted placement is resumed by computing it again.
type packing struct {
	entries []entry
	objects []int32 // index in the model of each entry
	sums0   []int   // index of each entry's first block among all blocks
	files   []packFile
	blocks  int   // of all entries
	bytes   int64 // of all entries
}

// A packFile is one file of a packing.
type packFile struct {
	name        string // of the model's own files only: relative to its folder
	first, last int    // entries [first,last); packs only
	data        int64  // where the stripes begin, bytes
	size        int64  // bytes; 0 for the model's own files
}

// newPacking computes what the i-th drive of a plan holds.
func newPacking(m *Model, p *Plan, i int) *packing {
	d := &p.Drives[i]
	k := &packing{}
	if d.InPlace {
		k.inPlace(m)
		return k
	}
	var open packFile
	table, data := int64(0), int64(0)
	flush := func() {
		if open.last = len(k.entries); open.last == open.first {
			return
		}
		open.data = page + pages(table)
		open.size = open.data + data
		for e := open.first; e < open.last; e++ {
			k.entries[e].offset += open.data
		}
		k.files = append(k.files, open)
		open = packFile{first: len(k.entries)}
		table, data = 0, 0
	}
	for n := range m.Objects {
		o := &m.Objects[n]
		lo, hi := d.Stripe.blocks(n, ssdio.Blocks(o.Size))
		if lo >= hi {
			continue
		}
		e := entry{key: o.Key, size: o.Size, lo: int32(lo), hi: int32(hi)}
		row := int64(entrySize + sumSize*e.blocks())
		if page+pages(table+row)+data+pages(e.bytes()) > p.PackSize {
			flush()
		}
		e.file, e.offset = int32(len(k.files)), data
		table += row
		data += pages(e.bytes())
		k.add(e, n)
	}
	flush()
	return k
}

// inPlace lists the objects where the model's own files have them.
func (k *packing) inPlace(m *Model) {
	index := map[string]int32{}
	for n := range m.Objects {
		o := &m.Objects[n]
		name, off, ok := o.inPlace()
		if !ok {
			continue // refused by the plan
		}
		f, known := index[name]
		if !known {
			f = int32(len(k.files))
			index[name] = f
			k.files = append(k.files, packFile{name: name})
		}
		k.add(entry{key: o.Key, size: o.Size, hi: int32(ssdio.Blocks(o.Size)), file: f, offset: off}, n)
	}
}

func (k *packing) add(e entry, object int) {
	k.entries = append(k.entries, e)
	k.objects = append(k.objects, int32(object))
	k.sums0 = append(k.sums0, k.blocks)
	k.blocks += e.blocks()
	k.bytes += e.bytes()
}

// written is the size of everything that is written to the drive, bytes:
// packs, and the manifest and journal beside them.
func (k *packing) written() int64 {
	n := int64(3*page) + 2*int64(len(k.entries)*(entrySize+recordSize)+sumSize*k.blocks)
	for i := range k.files {
		n += pages(k.files[i].size)
	}
	return n
}

// padded is the size of the stripes alone, each on whole pages.
func (k *packing) padded() int64 {
	n := int64(0)
	for i := range k.entries {
		n += pages(k.entries[i].bytes())
	}
	return n
}

// packName is the name of a pack in the drive's folder. Names of different plans
// differ, so that a file that is left behind is never taken for a new one.
func packName(plan [16]byte, n int) string { return fmt.Sprintf("deltafin-%x-%05d.pack", plan[:4], n) }

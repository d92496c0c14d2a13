package place

import (
	"fmt"

	"deltafin/ssdio"
)

const (
	packMagic   = "dfinpack"
	packVersion = 1
	packHeader  = 112 // bytes of the header that say something; it fills a page
)

// packHead is the part of a pack before its stripes: header page and table. It
// is a function of the manifest, so it can be compared and written again.
func (m *Manifest) packHead(file int) ([]byte, error) {
	print, err := parsePrint(m.Fingerprint)
	if err != nil {
		return nil, err
	}
	drive, err := parseID(m.Drive)
	if err != nil {
		return nil, err
	}
	var table, sums []byte
	n, at, data := 0, 0, m.Files[file].Size
	for i := range m.entries {
		e := m.entries[i]
		if int(e.file) == file {
			n++
			data = min(data, e.offset)
			e.file = 0 // a pack stands for itself
			table = appendEntry(table, &e)
			for b := range e.blocks() {
				sum, known := m.sum(at + b)
				if !known {
					return nil, fmt.Errorf("%s: block %d of %s has no sum: %w", m.Files[file].Name, b, e.key, ErrDamaged)
				}
				sums = le.AppendUint32(sums, sum)
			}
		}
		at += m.entries[i].blocks()
	}
	table = append(table, sums...)
	if data < page+int64(len(table)) {
		return nil, fmt.Errorf("%s: table of %d bytes reaches into the data at %d: %w", m.Files[file].Name, len(table), data, ErrDamaged)
	}
	id := m.Plan.ID()
	b := prefix(packMagic, packVersion)
	b = le.AppendUint32(b, ssdio.BlockSize)
	b = append(b, print[:]...)
	b = append(b, drive[:]...)
	b = append(b, id[:]...)
	b = le.AppendUint32(b, uint32(file))
	b = le.AppendUint32(b, uint32(n))
	b = le.AppendUint64(b, uint64(data))
	b = le.AppendUint64(b, uint64(m.Files[file].Size))
	b = le.AppendUint32(b, ssdio.Sum(table))
	b = le.AppendUint32(b, ssdio.Sum(b))
	b = append(b, make([]byte, page-len(b))...)
	b = append(b, table...)
	return append(b, make([]byte, data-int64(len(b)))...), nil
}

// A Pack is what a pack says of itself.
type Pack struct {
	Fingerprint, Drive string
	Number             int   // among the drive's packs
	Size               int64 // bytes

	entries []entry
	sums    []uint32
	plan    [16]byte
	table   uint32 // checksum of the table
	count   int    // entries of the table
	data    int64  // where the stripes begin
}

// parsePackHeader reads the first page of a pack.
func parsePackHeader(name string, b []byte) (*Pack, error) {
	if err := checkPrefix(name, b, packMagic, packVersion); err != nil {
		return nil, err
	}
	if len(b) < packHeader {
		return nil, fmt.Errorf("%s ends within its header: %w", name, ErrDamaged)
	}
	if have, want := ssdio.Sum(b[:packHeader-4]), le.Uint32(b[packHeader-4:]); have != want {
		return nil, fmt.Errorf("%s: header has checksum %08x, recorded is %08x: %w", name, have, want, ErrDamaged)
	}
	s := &scanner{data: b[:packHeader], at: 12}
	block := s.u32()
	p := &Pack{}
	p.Fingerprint = s.print().String()
	p.Drive = s.id().String()
	copy(p.plan[:], s.take(16))
	p.Number, p.count = int(s.u32()), int(s.u32())
	p.data, p.Size = int64(s.u64()), int64(s.u64())
	p.table = s.u32()
	if block != ssdio.BlockSize || p.data < page || p.data%page != 0 || p.data > p.Size || p.data > maxTable ||
		int64(p.count)*(entrySize+sumSize) > p.data-page {
		return nil, fmt.Errorf("%s: header contradicts itself: %w", name, ErrDamaged)
	}
	return p, nil
}

// maxTable bounds what is read of a pack before anything is known about it: a
// terabyte of objects has a table of 24 MB.
const maxTable = 1 << 30

// parseTable reads the bytes from the header page to the data.
func (p *Pack) parseTable(name string, b []byte) error {
	s := &scanner{data: b}
	p.entries = make([]entry, p.count)
	blocks := 0
	for i := range p.entries {
		e := s.entry()
		if s.bad || e.file != 0 || e.offset < p.data || e.offset > p.Size-e.bytes() {
			return fmt.Errorf("%s: entry %d of the table contradicts the file: %w", name, i, ErrDamaged)
		}
		p.entries[i] = e
		blocks += e.blocks()
	}
	if int64(blocks)*sumSize > int64(len(b)-s.at) {
		return fmt.Errorf("%s: %d sums do not fit the table: %w", name, blocks, ErrDamaged)
	}
	p.sums = make([]uint32, blocks)
	for i := range p.sums {
		p.sums[i] = s.u32()
	}
	if have := ssdio.Sum(b[:s.at]); have != p.table {
		return fmt.Errorf("%s: table has checksum %08x, recorded is %08x: %w", name, have, p.table, ErrDamaged)
	}
	for _, v := range b[s.at:] {
		if v != 0 {
			return fmt.Errorf("%s: something stands between table and data: %w", name, ErrDamaged)
		}
	}
	return nil
}

package place

import (
	"fmt"
	"io/fs"
	"math"
	"math/bits"
	"os"

	"deltafin/ssdio"
)

// ManifestName is the name of the manifest in a drive's folder. It belongs to
// one model: a second model needs a folder of its own.
const ManifestName = "deltafin-place.manifest"

const (
	manifestMagic   = "dfinmani"
	manifestVersion = 1
)

// A Manifest says which bytes of which objects one drive holds. What its
// methods give is checked: ranges lie within objects and files.
type Manifest struct {
	// Fingerprint is that of the model, Drive the identity of the drive.
	Fingerprint, Drive string
	// Plan is the plan that the drive has a part in, with all drives.
	Plan *Plan
	// Files are the drive's files.
	Files []ManifestFile

	entries []entry  // by object
	sums    []uint32 // [blocks of all entries], in their order
	known   []uint64 // [blocks] bits: the sum is known
}

// A ManifestFile is one file that a manifest names.
type ManifestFile struct {
	Name string // relative to the drive's folder, slash-separated
	Size int64  // bytes
	// Pack: written by this package; otherwise one of the model's own files.
	Pack bool
}

// Objects is the number of objects that the drive holds a part of.
func (m *Manifest) Objects() int { return len(m.entries) }

// Bytes is what the drive holds of the model.
func (m *Manifest) Bytes() int64 {
	n := int64(0)
	for i := range m.entries {
		n += m.entries[i].bytes()
	}
	return n
}

// Sums counts the blocks and those of them whose sum is known. Sums of the
// model's own files may be unknown until they are read for the first time.
func (m *Manifest) Sums() (known, blocks int) {
	for _, w := range m.known {
		known += bits.OnesCount64(w)
	}
	return known, len(m.sums)
}

func (m *Manifest) setSum(i int, sum uint32) {
	m.sums[i] = sum
	m.known[i/64] |= 1 << (i % 64)
}

func (m *Manifest) sum(i int) (sum uint32, known bool) {
	return m.sums[i], m.known[i/64]&(1<<(i%64)) != 0
}

// newManifest makes the manifest of a packing, without sums.
func newManifest(print, drive string, p *Plan, files []ManifestFile, k *packing) *Manifest {
	return &Manifest{
		Fingerprint: print, Drive: drive, Plan: p, Files: files, entries: k.entries,
		sums: make([]uint32, k.blocks), known: make([]uint64, (k.blocks+63)/64),
	}
}

// encode writes the manifest in the form that the package comment describes.
func (m *Manifest) encode() ([]byte, error) {
	print, err := parsePrint(m.Fingerprint)
	if err != nil {
		return nil, err
	}
	id, err := parseID(m.Drive)
	if err != nil {
		return nil, err
	}
	plan := m.Plan.encode()
	b := make([]byte, 0, 256+len(plan)+64*len(m.Files)+entrySize*len(m.entries)+5*len(m.sums))
	b = append(b, prefix(manifestMagic, manifestVersion)...)
	b = le.AppendUint32(b, ssdio.BlockSize)
	b = append(b, print[:]...)
	b = append(b, id[:]...)
	b = append(b, plan...)
	b = le.AppendUint32(b, uint32(len(m.Files)))
	for _, f := range m.Files {
		b = le.AppendUint64(b, uint64(f.Size))
		kind := uint32(0)
		if f.Pack {
			kind = 1
		}
		b = le.AppendUint32(b, kind)
		b = appendText(b, f.Name)
	}
	b = le.AppendUint32(b, uint32(len(m.entries)))
	for i := range m.entries {
		b = appendEntry(b, &m.entries[i])
	}
	b = le.AppendUint32(b, uint32(len(m.sums)))
	for _, s := range m.sums {
		b = le.AppendUint32(b, s)
	}
	for _, w := range m.known {
		b = le.AppendUint64(b, w)
	}
	return le.AppendUint32(b, ssdio.Sum(b)), nil
}

// parseManifest reads a manifest. name is for messages. Magic and version are
// judged before the checksum: a newer version is no damage.
func parseManifest(name string, data []byte) (*Manifest, error) {
	if err := checkPrefix(name, data, manifestMagic, manifestVersion); err != nil {
		return nil, err
	}
	if len(data) < 16 {
		return nil, fmt.Errorf("%s ends after %d bytes: %w", name, len(data), ErrDamaged)
	}
	body := data[:len(data)-4]
	if have, want := ssdio.Sum(body), le.Uint32(data[len(body):]); have != want {
		return nil, fmt.Errorf("%s has checksum %08x, recorded is %08x: %w; place the model again, or copy the file back", name, have, want, ErrDamaged)
	}
	s := &scanner{data: body, at: 12}
	if n := s.u32(); n != ssdio.BlockSize {
		return nil, fmt.Errorf("%s has blocks of %d bytes, this program uses %d: %w", name, n, ssdio.BlockSize, ErrDamaged)
	}
	m := &Manifest{}
	print := s.print()
	m.Fingerprint = print.String()
	m.Drive = s.id().String()
	m.Plan = s.plan(print)
	for range s.count(16) {
		size, kind := s.u64(), s.u32()
		f := ManifestFile{Name: s.text(), Size: int64(size), Pack: kind == 1}
		if size > math.MaxInt64 || kind > 1 || !fs.ValidPath(f.Name) {
			s.bad = true
		}
		m.Files = append(m.Files, f)
	}
	n := s.count(entrySize)
	m.entries = make([]entry, n)
	blocks := 0
	for i := range m.entries {
		e := s.entry()
		if !s.bad && (int(e.file) >= len(m.Files) || e.offset > m.Files[e.file].Size-e.bytes()) {
			s.bad = true
		}
		m.entries[i] = e
		blocks += e.blocks()
	}
	if count := s.count(sumSize); s.bad || count != blocks {
		return nil, fmt.Errorf("%s contradicts itself before byte %d: %w", name, s.at, ErrDamaged)
	}
	m.sums = make([]uint32, blocks)
	for i := range m.sums {
		m.sums[i] = s.u32()
	}
	m.known = make([]uint64, (blocks+63)/64)
	for i := range m.known {
		m.known[i] = s.u64()
	}
	if extra := blocks % 64; extra != 0 && m.known[len(m.known)-1]>>extra != 0 {
		s.bad = true
	}
	if s.bad || s.at != len(body) {
		return nil, fmt.Errorf("%s contradicts itself at byte %d of %d: %w", name, s.at, len(data), ErrDamaged)
	}
	return m, nil
}

// readManifest reads the manifest of a drive from the folder that keeps its
// records. The error wraps fs.ErrNotExist if there is none.
func readManifest(path string, drive *ssdio.Drive) (*Manifest, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := parseManifest(path, data)
	if err != nil {
		return nil, err
	}
	if m.Drive != drive.ID {
		return nil, fmt.Errorf("%s is of drive %s, this is drive %s: %w; it was copied here without %s: copy the whole folder, or remove the file and place again",
			path, m.Drive, drive.ID, ErrForeignDrive, ssdio.MarkerName)
	}
	return m, nil
}

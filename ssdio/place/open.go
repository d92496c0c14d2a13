package place

import (
	"errors"
	"fmt"
	"path/filepath"

	"deltafin/ssdio"
)

// A Placement is what some drives hold of a model together, ready for
// ssdio.Open.
type Placement struct {
	// Drives and Layout are what ssdio.Open takes.
	Drives []*ssdio.Drive
	Layout *ssdio.Layout
	// Manifests are those of the drives, in their order.
	Manifests []*Manifest
	// Missing are drives that the plans of the manifests name and that were not
	// given.
	Missing []Share
	// Gaps counts the objects of which some byte is on none of the drives.
	Gaps int

	state string
	saved []bool // the manifest stands in its file
}

// Open combines the manifests of drives into a layout. Every manifest must be
// of the model and of the drive that it lies on; where the drive is mounted does
// not matter. A drive without a manifest that holds the model's own files is
// used as it is: its sums are recorded on first use (see Record). Any other drive
// without one is an error that wraps ErrNoManifest or ErrUnfinished.
//
// state is the folder for the records of drives that cannot be written; it may
// be "" if there are none.
func Open(m *Model, drives []*ssdio.Drive, state string) (*Placement, error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	p := &Placement{Drives: drives, state: state, saved: make([]bool, len(drives))}
	for i, d := range drives {
		man, err := load(d, state, m.Fingerprint)
		p.saved[i] = err == nil
		if errors.Is(err, ErrNoManifest) {
			man, err = inPlace(m, d, err)
		}
		if err != nil {
			return nil, err
		}
		p.Manifests = append(p.Manifests, man)
	}
	var b ssdio.Builder
	for i := range m.Objects {
		if err := b.Object(m.Objects[i].Key, m.Objects[i].Size, nil); err != nil {
			return nil, err
		}
	}
	for i, man := range p.Manifests {
		if err := man.addTo(&b, i); err != nil {
			return nil, fmt.Errorf("drive %s: %w", drives[i].Name, err)
		}
	}
	p.Layout = b.Layout()
	p.Gaps = len(p.Layout.Gaps(nil))
	p.missing()
	return p, nil
}

// load reads the manifest of a drive and checks that it is of the model; an
// empty fingerprint means any model.
func load(d *ssdio.Drive, state, print string) (*Manifest, error) {
	dir, err := home(d, state)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(dir, ManifestName)
	m, err := readManifest(path, d)
	switch {
	case absent(err):
		if _, err := readJournal(filepath.Join(dir, JournalName)); !absent(err) {
			return nil, fmt.Errorf("drive %s (%s): %w: give the command deltafin place again, it goes on where it stopped", d.Name, d.Path, ErrUnfinished)
		}
		return nil, fmt.Errorf("drive %s (%s): %w: use deltafin place first", d.Name, d.Path, ErrNoManifest)
	case err != nil:
		return nil, err
	case print != "" && m.Fingerprint != print:
		return nil, &ForeignModelError{path, m.Fingerprint, print}
	case m.Plan.index(d.ID) < 0:
		return nil, fmt.Errorf("%s: its plan does not name its own drive: %w", path, ErrDamaged)
	}
	return m, nil
}

// inPlace makes a manifest for a drive that holds the model's own files. cause
// is returned if it does not.
func inPlace(m *Model, d *ssdio.Drive, cause error) (*Manifest, error) {
	below, err := Below(d.Path, m.Dir)
	if err != nil {
		return nil, cause
	}
	if err := m.allInPlace(); err != nil {
		return nil, err
	}
	p := &Plan{Fingerprint: m.Fingerprint, PackSize: defaultPackSize, Drives: []Share{{
		ID: d.ID, Name: d.Name, InPlace: true, Stripe: Stripe{0, whole}, Work: 1, Bytes: m.bytes(),
	}}}
	k := newPacking(m, p, 0)
	src := newSources(d.FS)
	defer src.close()
	files := make([]ManifestFile, len(k.files))
	for i := range k.files {
		name := slash(below, k.files[i].name)
		f, err := src.get(name)
		if err != nil {
			return nil, fmt.Errorf("drive %s: %w", d.Name, err)
		}
		files[i] = ManifestFile{Name: name, Size: f.Size()}
	}
	return newManifest(m.Fingerprint, d.ID, p, files, k), nil
}

// addTo states a manifest's files, objects, holdings and sums to a builder.
func (m *Manifest) addTo(b *ssdio.Builder, drive int) error {
	index := make([]int, len(m.Files))
	for i, f := range m.Files {
		n, err := b.File(drive, f.Name, f.Size)
		if err != nil {
			return err
		}
		index[i] = n
	}
	at := 0
	for i := range m.entries {
		e := &m.entries[i]
		if err := m.addSums(b, e, at); err != nil {
			return fmt.Errorf("%w; the drives were placed from different files", err)
		}
		h := ssdio.Holding{Key: e.key, From: e.from(), To: e.to(), File: index[e.file], Offset: e.offset}
		if err := b.Hold(h); err != nil {
			return err
		}
		at += e.blocks()
	}
	return nil
}

// addSums states an object and what is known of its sums.
func (m *Manifest) addSums(b *ssdio.Builder, e *entry, at int) error {
	sums := m.sums[at : at+e.blocks()]
	all := true
	for k := range sums {
		_, known := m.sum(at + k)
		all = all && known
	}
	if all && e.bytes() == e.size { // in one statement: there are millions
		return b.Object(e.key, e.size, sums)
	}
	if err := b.Object(e.key, e.size, nil); err != nil {
		return err
	}
	for k := range sums {
		if sum, known := m.sum(at + k); known {
			if err := b.BlockSum(e.key, int(e.lo)+k, sum); err != nil {
				return err
			}
		}
	}
	return nil
}

// missing collects the drives that plans name and that are not here.
func (p *Placement) missing() {
	have := map[string]bool{}
	for _, d := range p.Drives {
		have[d.ID] = true
	}
	for _, m := range p.Manifests {
		for _, s := range m.Plan.Drives {
			if !have[s.ID] {
				have[s.ID] = true
				p.Missing = append(p.Missing, s)
			}
		}
	}
}

// Sums counts the blocks that the drives hold and those whose sum was known
// when the placement was opened or recorded since.
func (p *Placement) Sums() (known, blocks int) {
	for _, m := range p.Manifests {
		k, n := m.Sums()
		known, blocks = known+k, blocks+n
	}
	return known, blocks
}

// Record stores the sums that reading through the layout has recorded since,
// so that the next start can check against them. It returns how many are new.
// A drive on which someone is placing right now is left alone.
func (p *Placement) Record() (int, error) {
	count := 0
	for i, m := range p.Manifests {
		n, at := 0, 0
		for k := range m.entries {
			e := &m.entries[k]
			for b := range e.blocks() {
				if _, known := m.sum(at + b); known {
					continue
				}
				if sum, ok := p.Layout.Sum(e.key, int(e.lo)+b); ok {
					m.setSum(at+b, sum)
					n++
				}
			}
			at += e.blocks()
		}
		if n == 0 && p.saved[i] {
			continue
		}
		if err := save(p.Drives[i], m, p.state); err != nil {
			return count, err
		}
		p.saved[i] = true
		count += n
	}
	return count, nil
}

// save stores a manifest that has learnt something, under the drive's lock.
func save(d *ssdio.Drive, m *Manifest, state string) error {
	dir, err := home(d, state)
	if err != nil {
		return err
	}
	if err := makeDir(dir); err != nil {
		return fmt.Errorf("drive %s: %w", d.Name, err)
	}
	lock, err := lockDrive(dir, d.Name)
	if err != nil {
		return err
	}
	data, err := m.encode()
	if err == nil {
		err = publish(osDisk{}, filepath.Join(dir, ManifestName), data)
	}
	if err != nil {
		err = fmt.Errorf("drive %s: store the manifest: %w", d.Name, err)
	}
	return errors.Join(err, lock.Close())
}

// ReadManifest reads the manifest of a drive, whatever model it is of. The error
// wraps ErrNoManifest or ErrUnfinished if there is none.
func ReadManifest(d *ssdio.Drive, state string) (*Manifest, error) { return load(d, state, "") }

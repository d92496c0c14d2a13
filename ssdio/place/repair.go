package place

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"deltafin/ssdio"
)

// repair writes the bad blocks of a drive's packs again, file by file, from
// wherever the right bytes are, and reads them back.
func (v *verification) repair(ctx context.Context, i int, c *Check, bad []badBlock) (err error) {
	d, m := v.drives[i], v.manifests[i]
	dir, err := home(d, v.o.State)
	if err != nil {
		return err
	}
	lock, err := lockDrive(dir, d.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	r := &repairer{v: v, drive: i, check: c, starts: m.starts()}
	defer func() { err = errors.Join(err, r.close()) }()
	for f := range m.Files {
		if !m.Files[f].Pack {
			continue
		}
		var here []badBlock
		for _, x := range bad {
			if int(m.entries[x.entry].file) == f {
				here = append(here, x)
			}
		}
		head, err := m.packHead(f)
		if err != nil {
			return err
		}
		src := newSources(d.FS)
		wrong := sameHead(src, &m.Files[f], head) != nil
		src.close()
		if !wrong && len(here) == 0 {
			continue
		}
		if err := r.file(ctx, f, head, here); err != nil {
			return fmt.Errorf("drive %s: repair %s: %w", d.Name, m.Files[f].Name, err)
		}
	}
	return nil
}

// A repairer mends the packs of one drive.
type repairer struct {
	v           *verification
	drive       int
	check       *Check
	starts      []int
	others      []*sources // of each drive, opened when needed
	source      *loader    // of the model's own files, opened when needed
	objects     map[ssdio.Key]*Object
	mem, bounce ssdio.Scratch
}

func (r *repairer) close() error {
	for _, s := range r.others {
		if s != nil {
			s.close()
		}
	}
	var err error
	if r.source != nil {
		err = r.source.close()
	}
	return errors.Join(err, r.mem.Free(), r.bounce.Free())
}

// file mends one pack: blocks, then the head, then everything that was written
// is read back.
func (r *repairer) file(ctx context.Context, f int, head []byte, bad []badBlock) (err error) {
	m, d := r.v.manifests[r.drive], r.v.drives[r.drive]
	out, err := osDisk{}.open(filepath.Join(d.Path, filepath.FromSlash(m.Files[f].Name)))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	from := make([]string, len(bad)) // "" where nobody had the bytes
	for k, x := range bad {
		if err := ctx.Err(); err != nil {
			return err
		}
		e := &m.entries[x.entry]
		lo, hi, offset := e.block(x.block)
		want, _ := m.sum(r.starts[x.entry] + x.block)
		data, name, err := r.fetch(e, lo, hi, want)
		if err != nil {
			if x.problem >= 0 {
				r.check.Problems[x.problem].Err = fmt.Errorf("%w; not repaired: %w", r.check.Problems[x.problem].Err, err)
			}
			continue
		}
		if _, err := out.WriteAt(data, offset); err != nil {
			return err
		}
		from[k] = name
		r.v.meter.add("repairing", d.Name, int64(len(data)))
	}
	// A truncated pack gets its length back, a damaged head its content.
	if err := out.Truncate(m.Files[f].Size); err != nil {
		return err
	}
	if _, err := out.WriteAt(head, 0); err != nil {
		return err
	}
	if err := out.Sync(); err != nil {
		return err
	}
	return r.readBack(f, head, bad, from)
}

// readBack checks what was written and counts it.
func (r *repairer) readBack(f int, head []byte, bad []badBlock, from []string) error {
	m, d := r.v.manifests[r.drive], r.v.drives[r.drive]
	src := newSources(d.FS)
	defer src.close()
	name := m.Files[f].Name
	if sameHead(src, &m.Files[f], head) == nil {
		for k := range r.check.Problems {
			if p := &r.check.Problems[k]; p.Block < 0 && p.File == name {
				p.Repaired, p.From = true, "the manifest"
				r.check.Heads--
			}
		}
	}
	file, err := src.get(name)
	if err != nil {
		return err
	}
	for k, x := range bad {
		if from[k] == "" {
			continue
		}
		lo, hi, offset := m.entries[x.entry].block(x.block)
		want, _ := m.sum(r.starts[x.entry] + x.block)
		data, err := r.mem.Bytes(int(hi - lo))
		if err == nil {
			_, err = file.ReadInto(data, offset, &r.bounce)
		}
		if err == nil && ssdio.Sum(data) != want {
			err = ErrReadBack
		}
		if err == nil {
			r.check.Repaired++
		}
		if x.problem >= 0 {
			p := &r.check.Problems[x.problem]
			if p.Repaired, p.From = err == nil, from[k]; err != nil {
				p.Err = fmt.Errorf("%w; not repaired: %w", p.Err, err)
			}
		}
	}
	return nil
}

// errNobody: no other drive and no file has the right bytes.
var errNobody = errors.New("no other drive that was named holds a good copy; name more drives, or the model's folder with --model")

// fetch finds the bytes [lo,hi) of an entry's object whose sum is want.
func (r *repairer) fetch(e *entry, lo, hi int64, want uint32) (data []byte, name string, err error) {
	if data, err = r.mem.Bytes(int(hi - lo)); err != nil {
		return nil, "", err
	}
	if r.others == nil {
		r.others = make([]*sources, len(r.v.drives))
	}
	for i, d := range r.v.drives {
		if i == r.drive {
			continue
		}
		m := r.v.manifests[i]
		for _, n := range r.v.entriesOf(i, e.key) {
			h := &m.entries[n]
			if h.size != e.size || h.from() > lo || h.to() < hi {
				continue
			}
			if r.others[i] == nil {
				r.others[i] = newSources(d.FS)
			}
			file, err := r.others[i].get(m.Files[h.file].Name)
			if err == nil {
				_, err = file.ReadInto(data, h.offset+lo-h.from(), &r.bounce)
			}
			if err == nil && ssdio.Sum(data) == want {
				return data, "drive " + d.Name, nil
			}
		}
	}
	if s := r.v.o.Source; s != nil {
		if r.source == nil {
			r.source = newLoader(s)
			r.objects = make(map[ssdio.Key]*Object, len(s.Objects))
			for k := range s.Objects {
				r.objects[s.Objects[k].Key] = &s.Objects[k]
			}
		}
		if o := r.objects[e.key]; o != nil && o.Size == e.size {
			if err := r.source.read(o, lo, data, &r.bounce); err == nil && ssdio.Sum(data) == want {
				return data, "the model's own files", nil
			}
		}
	}
	return nil, "", errNobody
}

// entriesOf finds the entries of a manifest for one object.
func (v *verification) entriesOf(i int, key ssdio.Key) []int {
	if v.index == nil {
		v.index = make([]map[ssdio.Key][]int, len(v.manifests))
	}
	if v.index[i] == nil {
		v.index[i] = map[ssdio.Key][]int{}
		for n := range v.manifests[i].entries {
			k := v.manifests[i].entries[n].key
			v.index[i][k] = append(v.index[i][k], n)
		}
	}
	return v.index[i][key]
}

// Objects is the number of objects that the pack holds a part of.
func (p *Pack) Objects() int { return len(p.entries) }

// VerifyPack checks a pack alone, without a manifest: its head, its table, and
// every block against the table.
func VerifyPack(ctx context.Context, path string, progress func(Progress)) (*Pack, error) {
	src := newSources(ssdio.OS(filepath.Dir(path)))
	defer src.close()
	name := filepath.Base(path)
	p, err := readPack(src, name)
	if err != nil {
		return nil, err
	}
	var t meter
	t.report = progress
	total := int64(0)
	starts := make([]int, len(p.entries))
	for i, at := 0, 0; i < len(p.entries); i++ {
		starts[i] = at
		at += p.entries[i].blocks()
		total += p.entries[i].bytes()
	}
	t.begin(total)
	err = scan(ctx, []ManifestFile{{Name: name, Size: p.Size, Pack: true}}, p.entries, src, func(i, b int, data []byte, err error) error {
		e := &p.entries[i]
		from, to, offset := e.block(b)
		if err == nil && ssdio.Sum(data) != p.sums[starts[i]+b] {
			err = ssdio.ErrChecksum
		}
		if err != nil {
			return fmt.Errorf("%s is bad at %s, block %d (offset %d): %w", name, e.key, int(e.lo)+b, offset, err)
		}
		t.add("checking", name, to-from)
		return nil
	})
	return p, err
}

// readPack reads the head of a pack.
func readPack(src *sources, name string) (*Pack, error) {
	file, err := src.get(name)
	if err != nil {
		return nil, err
	}
	var mem, bounce ssdio.Scratch
	defer mem.Free()
	defer bounce.Free()
	b, err := mem.Bytes(page)
	if err != nil {
		return nil, err
	}
	if file.Size() < page {
		return nil, fmt.Errorf("%s has %d bytes, a pack has at least %d: %w", name, file.Size(), page, ErrDamaged)
	}
	if _, err := file.ReadInto(b, 0, &bounce); err != nil {
		return nil, err
	}
	p, err := parsePackHeader(name, b)
	if err != nil {
		return nil, err
	}
	if file.Size() != p.Size {
		return nil, fmt.Errorf("%s has %d bytes, its header says %d: it is truncated or was added to: %w; copy it again or repair it: deltafin verify --repair", name, file.Size(), p.Size, ErrDamaged)
	}
	if b, err = mem.Bytes(int(p.data - page)); err != nil {
		return nil, err
	}
	if _, err := file.ReadInto(b, page, &bounce); err != nil {
		return nil, err
	}
	return p, p.parseTable(name, b)
}

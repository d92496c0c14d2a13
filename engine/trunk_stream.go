package engine

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"deltafin/engine/checkpoint"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// The trunk is read by the same set of drives as the experts, so that one scheduler
// knows what must come first. Its objects lie in the model's own files, or in the one
// it was converted to: packs hold experts only, since every drive that helps with the
// many small reads of experts is worth more than one that helps with the few large
// ones of the trunk.

// addTrunk states the trunk's objects in a layout beside the experts. If their folder
// is on none of the drives, it becomes one more, for the trunk alone.
func (s *stream) addTrunk(ck *checkpoint.Checkpoint, o Options, drives []*ssdio.Drive, layout *ssdio.Layout) ([]*ssdio.Drive, *ssdio.Layout, error) {
	if o.TrunkMemory == 0 {
		return drives, layout, nil
	}
	var err error
	if s.trunkCat, err = o.trunkCatalog(ck); err != nil {
		return nil, nil, err
	}
	m := s.trunkCat.Model()
	if ck.Path() == "" {
		both := *m
		both.Objects = append(append([]place.Object(nil), s.cat.Model().Objects...), m.Objects...)
		layout, err = memoryLayout(&both, s.files, len(drives))
		return drives, layout, err
	}
	dir, err := filepath.Abs(m.Dir)
	if err != nil {
		return nil, nil, err
	}
	home, below := -1, ""
	for i, d := range drives {
		if b, err := place.Below(d.Path, dir); err == nil {
			home, below = i, b
			break
		}
	}
	if home < 0 {
		d, err := ssdio.OpenDrive(dir, &ssdio.DriveOptions{ReadOnly: o.DriveState != ""})
		if err != nil {
			return nil, nil, fmt.Errorf("the trunk is read from %s: %w", dir, err)
		}
		home, drives = len(drives), append(drives, profiled(d, o.DriveState))
		name(drives)
	}
	var b ssdio.Builder
	if err := copyLayout(&b, layout); err != nil {
		return nil, nil, err
	}
	var sums []uint32 // of all blocks, in the catalog's order; nil: not known
	switch {
	case o.int8 != nil:
		sums = o.int8.BlockSums()
	case o.DriveState != "":
		s.sumsPath = sumsPath(o.DriveState, ck.Fingerprint())
		if sums, err = readSums(s.sumsPath, ck.Fingerprint(), blocksOf(m)); err != nil && o.Notify != nil {
			o.Notify(Notice{Text: fmt.Sprintf("The checksums of the trunk cannot be used: %v. They are recorded anew.", err)})
		}
	}
	if err := holdInPlace(&b, m, dir, home, below, sums); err != nil {
		return nil, nil, err
	}
	layout = b.Layout()
	if s.placed != nil {
		s.placed.Layout = layout // where Record finds the sums
	}
	return drives, layout, nil
}

// copyLayout states what a layout knows to a builder.
func copyLayout(b *ssdio.Builder, l *ssdio.Layout) error {
	for i, f := range l.Files() {
		if n, err := b.File(f.Drive, f.Name, f.Size); err != nil {
			return err
		} else if n != i {
			return fmt.Errorf("file %s is named twice: %w", f.Name, ssdio.ErrConflict)
		}
	}
	for _, key := range l.Keys() {
		size, _ := l.Size(key)
		if err := b.Object(key, size, nil); err != nil {
			return err
		}
		for block := range ssdio.Blocks(size) {
			if sum, known := l.Sum(key, block); known {
				if err := b.BlockSum(key, block, sum); err != nil {
					return err
				}
			}
		}
		for _, h := range l.Holdings(key) {
			if err := b.Hold(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// holdInPlace states objects that lie in the model's own files, each in one piece.
func holdInPlace(b *ssdio.Builder, m *place.Model, dir string, drive int, below string, sums []uint32) error {
	files := map[string]int{}
	for i := range m.Objects {
		obj := &m.Objects[i]
		x := obj.Extents[0]
		n, known := files[x.File]
		if !known {
			info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(x.File)))
			if err != nil {
				return err
			}
			path := x.File
			if below != "" {
				path = below + "/" + path
			}
			if n, err = b.File(drive, path, info.Size()); err != nil {
				return err
			}
			files[x.File] = n
		}
		var own []uint32
		if blocks := ssdio.Blocks(obj.Size); len(sums) >= blocks {
			own, sums = sums[:blocks], sums[blocks:]
		}
		if err := b.Object(obj.Key, obj.Size, own); err != nil {
			return err
		}
		if err := b.Hold(ssdio.Holding{Key: obj.Key, To: obj.Size, File: n, Offset: x.Offset}); err != nil {
			return err
		}
	}
	return nil
}

// openTrunk makes the store of the trunk and reads what stays.
func (s *stream) openTrunk(ctx context.Context, o Options, layout *ssdio.Layout) (err error) {
	if s.trunkCat == nil {
		return nil
	}
	s.layout = layout
	if least := s.trunkCat.Least(); o.TrunkMemory < least {
		return &UsageError{Field: "trunk memory", Reason: fmt.Sprintf("%d bytes are too few: with every layer streamed the trunk needs %d", o.TrunkMemory, least)}
	}
	if s.trunk, err = trunk.New(s.trunkCat, s.set, layout, s.trunkCat.Plan(o.TrunkMemory)); err != nil {
		return err
	}
	return s.trunk.Load(ctx, o.Loading)
}

// closeTrunk gives its memory back and keeps the sums. The set must be closed.
func (s *stream) closeTrunk() error {
	if s.trunk == nil {
		return nil
	}
	err := s.trunk.Close()
	if s.sumsPath == "" {
		return err
	}
	if sums := sumsOf(s.layout, s.trunkCat.Model()); sums != nil {
		if kept := writeSums(s.sumsPath, s.trunkCat.Model().Fingerprint, sums); kept != nil && err == nil {
			err = fmt.Errorf("the checksums of the trunk could not be kept: %w", kept)
		}
	}
	return err
}

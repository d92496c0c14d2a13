package place

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/ssdio"
)

// someBlock is where a block of a drive's pack lies.
func someBlock(t *testing.T, d *ssdio.Drive, n int) (path string, offset int64, key ssdio.Key) {
	t.Helper()
	m, err := ReadManifest(d, "")
	if err != nil {
		t.Fatal(err)
	}
	e := &m.entries[n]
	_, _, offset = e.block(e.blocks() - 1)
	return filepath.Join(d.Path, m.Files[e.file].Name), offset, e.key
}

// TestVerifyFindsAndRepairs: bad blocks are found where they are and mended from
// another drive, or from the model's files, and not at all if nobody has them.
func TestVerifyFindsAndRepairs(t *testing.T) {
	w := makeWorld(t, 2, repeat(12, 3*ssdio.BlockSize+100)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{PackSize: 4 << 20}, 1)
	spoil := func() (key ssdio.Key) {
		for _, n := range []int{2, 7, 8} {
			path, at, k := someBlock(t, drives[0], n)
			flip(t, path, at+5)
			key = k
		}
		return key
	}
	last := spoil()
	checks, err := Verify(t.Context(), drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := checks[0]
	if c.Good() || c.Bad != 3 || c.Repaired != 0 || c.Heads != 0 || len(c.Problems) != 3 || !checks[1].Good() {
		t.Fatalf("check %+v, other %+v", c, checks[1])
	}
	if p := c.Problems; p[0].Length != 100 || p[0].Block != 3 || !errors.Is(p[0].Err, ssdio.ErrChecksum) || (p[0].Key != last && p[1].Key != last && p[2].Key != last) {
		t.Errorf("problems %+v", p)
	}
	for _, how := range []struct {
		name   string
		drives []*ssdio.Drive
		source *Model
		from   string
		mended int
	}{
		{"nobody", drives[:1], nil, "", 0},
		{"another drive", drives, nil, "drive d1", 3},
		{"the model's files", drives[:1], w.model, "the model's own files", 3},
	} {
		t.Run(how.name, func(t *testing.T) {
			checks, err := Verify(t.Context(), how.drives, &VerifyOptions{Repair: true, Source: how.source})
			if err != nil {
				t.Fatal(err)
			}
			c := checks[0]
			if c.Bad != 3 || c.Repaired != how.mended || c.Good() != (how.mended == 3) {
				t.Errorf("%+v", c)
			}
			for _, p := range c.Problems {
				if p.Repaired != (how.mended == 3) || p.From != how.from {
					t.Errorf("%+v", p)
				}
			}
			if how.mended == 0 {
				if !errors.Is(c.Problems[0].Err, errNobody) {
					t.Errorf("%v", c.Problems[0].Err)
				}
				return
			}
			if n := w.readAll(t, drives[:1]); n != 12 {
				t.Errorf("%d objects", n)
			}
			spoil()
		})
	}
}

// TestTruncatedPack: named by whoever meets it, mended from another holder.
func TestTruncatedPack(t *testing.T) {
	w := makeWorld(t, 2, repeat(12, 3*ssdio.BlockSize+100)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{PackSize: 4 << 20}, 1)
	pack := packsOf(t, w.folders[0])[1]
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"by one byte", func() error {
			info, err := os.Stat(pack)
			if err != nil {
				return err
			}
			return os.Truncate(pack, info.Size()-1)
		}},
		{"in the table", func() error { return os.Truncate(pack, page+20) }},
		{"to nothing", func() error { return os.Truncate(pack, 0) }},
		{"removed", func() error { return os.Remove(pack) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.do(); err != nil {
				t.Fatal(err)
			}
			p, err := Open(w.model, drives, "")
			if err != nil {
				t.Fatal(err)
			}
			if set, err := ssdio.Open(p.Drives, p.Layout, nil); err == nil {
				t.Error("a set was opened over a truncated pack")
				set.Close()
			} else if !errors.Is(err, ssdio.ErrShort) && !absent(err) {
				t.Errorf("open: %v", err)
			}
			if _, err := VerifyPack(t.Context(), pack, nil); !errors.Is(err, ErrDamaged) && !absent(err) {
				t.Errorf("pack alone: %v", err)
			}
			checks, err := Verify(t.Context(), drives, &VerifyOptions{Repair: true})
			if err != nil {
				t.Fatal(err)
			}
			if x := checks[0]; len(x.Problems) == 0 || !x.Good() {
				t.Errorf("%+v", x)
			}
			if _, err := VerifyPack(t.Context(), pack, nil); err != nil {
				t.Errorf("after repair: %v", err)
			}
			if n := w.readAll(t, drives[:1]); n != 12 {
				t.Errorf("%d objects", n)
			}
		})
	}
}

// TestDamagedHeads: head and table of a pack are part of what is verified, and
// are made again from the manifest.
func TestDamagedHeads(t *testing.T) {
	w := makeWorld(t, 1, repeat(4, 5000)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{}, 1)
	pack := packsOf(t, w.folders[0])[0]
	for _, at := range []int64{3, 100, page + 8} {
		flip(t, pack, at)
		if _, err := VerifyPack(t.Context(), pack, nil); !errors.Is(err, ErrDamaged) {
			t.Errorf("byte %d, pack alone: %v", at, err)
		}
		checks, err := Verify(t.Context(), drives, nil)
		if err != nil || checks[0].Heads != 1 || checks[0].Good() || checks[0].Bad != 0 {
			t.Errorf("byte %d: %+v, %v", at, checks[0], err)
		}
		checks, err = Verify(t.Context(), drives, &VerifyOptions{Repair: true})
		if err != nil || !checks[0].Good() || len(checks[0].Problems) != 1 || !checks[0].Problems[0].Repaired {
			t.Errorf("byte %d, repaired: %+v, %v", at, checks[0], err)
		}
	}
	// A newer version is not damage, and is said to be newer.
	f, err := os.OpenFile(pack, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{2}, 8); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := VerifyPack(t.Context(), pack, nil); !errors.Is(err, ErrNewer) {
		t.Errorf("pack from a newer version: %v", err)
	}
	checks, err := Verify(t.Context(), drives, nil)
	if err != nil || checks[0].Heads != 1 || !errors.Is(checks[0].Problems[0].Err, ErrNewer) {
		t.Errorf("%+v, %v", checks[0], err)
	}
}

// TestNewerManifest: refused by everyone who would use it.
func TestNewerManifest(t *testing.T) {
	w := makeWorld(t, 1, repeat(4, 5000)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{}, 1)
	name := filepath.Join(w.folders[0], ManifestName)
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	data[8] = 9
	if err := os.WriteFile(name, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(w.model, drives, ""); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "version 9") {
		t.Errorf("open: %v", err)
	}
	if _, err := Verify(t.Context(), drives, nil); !errors.Is(err, ErrNewer) {
		t.Errorf("verify: %v", err)
	}
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	if _, err := job.Found(); !errors.Is(err, ErrNewer) {
		t.Errorf("place: %v", err)
	}
}

// TestOriginalFilesAreNotRepaired: a bad block of the model's own files is
// reported and left as it is.
func TestOriginalFilesAreNotRepaired(t *testing.T) {
	w := makeWorld(t, 1, repeat(8, ssdio.BlockSize)...)
	w.folders = append(w.folders, w.model.Dir)
	drives := w.drives(t)
	c := candidates(drives, 1<<40, 1)
	c[1].InPlace = true
	p, err := NewPlan(w.model, c, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, drives, p, nil)
	shard := filepath.Join(w.model.Dir, w.model.Objects[1].Extents[0].File)
	if err := os.Chmod(shard, 0o644); err != nil {
		t.Fatal(err)
	}
	flip(t, shard, w.model.Objects[1].Extents[0].Offset)
	before, err := os.ReadFile(shard)
	if err != nil {
		t.Fatal(err)
	}
	checks, err := Verify(t.Context(), drives, &VerifyOptions{Repair: true, Source: w.model})
	if err != nil {
		t.Fatal(err)
	}
	if x := checks[1]; x.Bad != 1 || x.Repaired != 0 || x.Good() || x.Problems[0].Key != w.model.Objects[1].Key {
		t.Errorf("%+v", x)
	}
	after, err := os.ReadFile(shard)
	if err != nil || string(after) != string(before) {
		t.Errorf("the model's file was written to (%v)", err)
	}
	// A pack is not mended with the bad bytes either: the other drive is whole.
	if !checks[0].Good() {
		t.Errorf("%+v", checks[0])
	}
	if n := w.readAll(t, drives); n != 8 {
		t.Errorf("%d objects although the pack has the right bytes", n)
	}
}

package place

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deltafin/ssdio"
)

// TestInPlace: the model's own folder is a drive; nothing is copied for it, its
// sums come from the same pass, and it serves together with packs elsewhere.
func TestInPlace(t *testing.T) {
	w := makeWorld(t, 1, someSizes(20)...)
	w.folders = append(w.folders, filepath.Dir(w.model.Dir)) // holds the model one level down
	drives := w.drives(t)
	c := candidates(drives, 1<<40, 1, 3)
	c[1].InPlace, c[1].Room = true, 0
	p, err := NewPlan(w.model, c, PlanOptions{Overlap: -1})
	if err != nil {
		t.Fatal(err)
	}
	r := w.run(t, drives, p, nil)
	if r.Drives[1].Written != 0 || r.Drives[1].Objects != 20 || r.Drives[1].Sums != "computed while placing" || len(packsOf(t, w.folders[1])) != 0 {
		t.Errorf("in place: %+v", r.Drives[1])
	}
	if r.Drives[0].Written > w.model.bytes()*2/3 {
		t.Errorf("wrote %d bytes for a quarter of the speed", r.Drives[0].Written)
	}
	if n := w.readAll(t, drives); n != 20 {
		t.Errorf("%d objects", n)
	}
	if n := w.readAll(t, drives[1:]); n != 20 {
		t.Errorf("%d objects from the model's own files", n)
	}
}

// TestSumsOnFirstUse: without a pass over the model's files its sums are
// recorded while it is read, stored, and from then on checked.
func TestSumsOnFirstUse(t *testing.T) {
	w := makeWorld(t, 0, someSizes(9)...)
	w.folders = []string{w.model.Dir}
	drives := w.drives(t)
	p, err := Open(w.model, drives, "")
	if err != nil {
		t.Fatal(err)
	}
	if known, all := p.Sums(); known != 0 || all == 0 {
		t.Errorf("%d of %d sums known before anything was read", known, all)
	}
	w.readPlacement(t, p)
	known, all := p.Layout.Sums()
	n, err := p.Record()
	if err != nil || n != all || known != all {
		t.Errorf("recorded %d of %d (%d known to the layout), %v", n, all, known, err)
	}
	if n, err := p.Record(); n != 0 || err != nil {
		t.Errorf("recorded %d again, %v", n, err)
	}
	// A file that changes now is noticed.
	name := filepath.Join(w.model.Dir, w.model.Objects[0].Extents[0].File)
	if err := os.Chmod(name, 0o644); err != nil {
		t.Fatal(err)
	}
	flip(t, name, w.model.Objects[2].Extents[0].Offset+9)
	if p, err = Open(w.model, drives, ""); err != nil {
		t.Fatal(err)
	}
	set, err := ssdio.Open(p.Drives, p.Layout, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	o := &w.model.Objects[2]
	err = set.Read(t.Context(), ssdio.Demand, []ssdio.Request{{Key: o.Key, Into: ssdio.Fixed(make([]byte, o.Size))}}).Err()
	if !errors.Is(err, ssdio.ErrChecksum) {
		t.Errorf("a changed block of the model's files: %v", err)
	}
	// A job with lazy set publishes the same without reading.
	w = makeWorld(t, 0, someSizes(9)...)
	w.folders = []string{w.model.Dir}
	drives = w.drives(t)
	c := candidates(drives, 0, 1)
	c[0].InPlace = true
	plan, err := NewPlan(w.model, c, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	r, err := job.Run(t.Context(), plan, true)
	if err := errors.Join(err, job.Close()); err != nil {
		t.Fatal(err)
	}
	if r.Drives[0].Sums != "recorded on first use" || r.Drives[0].Objects != 9 {
		t.Errorf("%+v", r.Drives[0])
	}
	checks, err := Verify(t.Context(), drives, nil)
	if err != nil || checks[0].Noted != checks[0].Blocks || !checks[0].Good() {
		t.Errorf("%+v, %v", checks[0], err)
	}
	if m, err := ReadManifest(drives[0], ""); err != nil {
		t.Error(err)
	} else if known, all := m.Sums(); known != all {
		t.Errorf("%d of %d sums after verify", known, all)
	}
}

// TestReadOnlyDrive: a folder that cannot be written holds the model in place,
// with its records elsewhere, and takes no packs.
func TestReadOnlyDrive(t *testing.T) {
	w := makeWorld(t, 0, someSizes(6)...)
	d, err := ssdio.OpenDrive(w.model.Dir, &ssdio.DriveOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	drives := []*ssdio.Drive{d}
	if _, err := Begin(w.model, drives, nil); !errors.Is(err, ErrReadOnly) {
		t.Errorf("without a folder for records: %v", err)
	}
	before := hashDir(t, w.model.Dir)
	state := t.TempDir()
	c := candidates(drives, 0, 1)
	c[0].InPlace = true
	p, err := NewPlan(w.model, c, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.run(t, drives, p, &JobOptions{State: state})
	if hashDir(t, w.model.Dir) != before {
		t.Error("something was written to the folder")
	}
	got, err := Open(w.model, drives, state)
	if err != nil {
		t.Fatal(err)
	}
	if known, all := got.Sums(); known != all || w.readPlacement(t, got) != 6 {
		t.Errorf("%d of %d sums", known, all)
	}
	packs, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := Begin(w.model, drives, &JobOptions{State: state, Replace: true})
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	if room, err := job.Room(0, 0); room != 0 || err != nil {
		t.Errorf("room %d, %v", room, err)
	}
	if _, err := job.Run(t.Context(), packs, false); !errors.Is(err, ErrReadOnly) {
		t.Errorf("packs on a folder that cannot be written: %v", err)
	}
}

// TestBelow: how a model's folder lies on a drive's.
func TestBelow(t *testing.T) {
	base := t.TempDir()
	in := filepath.Join(base, "a", "b")
	if err := os.MkdirAll(in, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ root, dir, want string }{{base, in, "a/b"}, {in, in, ""}, {base, base + "/a/../a", "a"}} {
		if got, err := Below(c.root, c.dir); err != nil || got != c.want {
			t.Errorf("Below(%s, %s) = %q, %v", c.root, c.dir, got, err)
		}
	}
	if _, err := Below(in, base); err == nil {
		t.Error("a parent lies below its child")
	}
	if size(999) != "999 B" || size(1446496000000) != "1.4 TB" || size(20<<30) != "21 GB" {
		t.Errorf("sizes %q %q %q", size(999), size(1446496000000), size(20<<30))
	}
}

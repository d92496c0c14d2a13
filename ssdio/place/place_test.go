package place

import (
	"context"
	"crypto/sha256"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/ssdio"
)

// hashDir is a digest over names and contents of a folder.
func hashDir(t testing.TB, dir string) [32]byte {
	t.Helper()
	h := sha256.New()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		data, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		h.Write([]byte(f.Name()))
		h.Write(data)
	}
	return [32]byte(h.Sum(nil))
}

// TestPlaceThenRead: what was placed is read through ssdio as the original
// bytes, from every kind of placement; the original files stay as they were.
func TestPlaceThenRead(t *testing.T) {
	for _, c := range []struct {
		name    string
		folders int
		o       PlanOptions
		sizes   []int
		speeds  []float64
	}{
		{"one", 1, PlanOptions{}, someSizes(20), []float64{1}},
		{"full copies", 3, PlanOptions{}, someSizes(24), []float64{4, 2, 1}},
		{"exact shares", 3, PlanOptions{Overlap: -1}, someSizes(24), []float64{4, 2, 1}},
		{"overlap", 3, PlanOptions{Overlap: 0.3, PackSize: 1 << 20}, someSizes(24), []float64{4, 2, 1}},
		{"a few KB", 3, PlanOptions{Overlap: -1}, repeat(50, 3277), []float64{3, 1, 1}},
		{"expert", 2, PlanOptions{Overlap: 0.1}, []int{17547264}, []float64{2, 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := makeWorld(t, c.folders, c.sizes...)
			before := hashDir(t, w.model.Dir)
			drives := w.drives(t)
			r := w.place(t, drives, c.o, c.speeds...)
			if n := w.readAll(t, drives); n != len(c.sizes) {
				t.Errorf("%d of %d objects can be read", n, len(c.sizes))
			}
			if hashDir(t, w.model.Dir) != before {
				t.Error("the model's own files changed")
			}
			written := int64(0)
			for i, d := range r.Drives {
				written += d.Written
				if d.Resumed != 0 || d.Rewrites != 0 || d.Sums != "computed while placing" || d.Bytes != r.Plan.Drives[i].Bytes {
					t.Errorf("report %+v", d)
				}
				if _, err := os.Stat(filepath.Join(w.folders[i], JournalName)); !absent(err) {
					t.Errorf("journal of drive %d: %v", i, err)
				}
				for _, p := range packsOf(t, w.folders[i]) {
					if _, err := VerifyPack(t.Context(), p, nil); err != nil {
						t.Error(err)
					}
				}
			}
			if written < w.model.bytes() {
				t.Errorf("wrote %d bytes of a model of %d", written, w.model.bytes())
			}
			checks, err := Verify(t.Context(), drives, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range checks {
				if !c.Good() || c.Noted != 0 || c.Blocks == 0 {
					t.Errorf("check %+v", c)
				}
			}
			job, err := Begin(w.model, drives, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer job.Close()
			if f, err := job.Found(); err != nil || !f.Finished || f.Done != f.All || f.Plan.ID() != r.Plan.ID() {
				t.Errorf("found %+v, %v", f, err)
			}
		})
	}
}

// TestScatteredObjectsArePlaced: extents are joined on the way.
func TestScatteredObjectsArePlaced(t *testing.T) {
	w := makeWorld(t, 2, 1)
	w.model, w.truth = makeModel(t, filepath.Join(t.TempDir(), "m"), 9, true, someSizes(16)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{Overlap: 0.2}, 1, 2)
	if n := w.readAll(t, drives); n != 16 {
		t.Errorf("%d objects", n)
	}
	c := candidates(drives, 1<<40, 1)
	c[0].InPlace = true
	if _, err := NewPlan(w.model, c, PlanOptions{}); !errors.Is(err, ErrPlan) {
		t.Errorf("scattered objects in place: %v", err)
	}
}

// TestLosingADrive: what the others cover goes on, and what they do not is said.
func TestLosingADrive(t *testing.T) {
	w := makeWorld(t, 3, repeat(12, 6*ssdio.BlockSize)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{}, 4, 2, 1)
	p, err := Open(w.model, drives[1:], "")
	if err != nil {
		t.Fatal(err)
	}
	if p.Gaps != 0 || len(p.Missing) != 1 || p.Missing[0].ID != drives[0].ID || p.Missing[0].Name != "d0" {
		t.Errorf("gaps %d, missing %+v", p.Gaps, p.Missing)
	}
	if n := w.readPlacement(t, p); n != 12 {
		t.Errorf("%d objects from two of three full copies", n)
	}
	// Objects of one block with exact shares: each is on one drive only.
	w = makeWorld(t, 3, repeat(60, 5000)...)
	drives = w.drives(t)
	r := w.place(t, drives, PlanOptions{Overlap: -1}, 1, 1, 1)
	if p, err = Open(w.model, drives[:2], ""); err != nil {
		t.Fatal(err)
	}
	if n := w.readPlacement(t, p); n != 60-p.Gaps || p.Gaps != r.Drives[2].Objects || p.Gaps < 15 || p.Gaps > 25 {
		t.Errorf("%d read, %d gaps, the lost drive had %d", n, p.Gaps, r.Drives[2].Objects)
	}
}

// TestRefusesAnotherModel: manifests and unfinished work of another model are
// refused with both fingerprints, unless they are to be replaced.
func TestRefusesAnotherModel(t *testing.T) {
	w := makeWorld(t, 1, someSizes(8)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{}, 1)
	old := packsOf(t, w.folders[0])
	w.model, w.truth = makeModel(t, filepath.Join(t.TempDir(), "other"), 1234, false, someSizes(5)...)
	check := func(err error) {
		t.Helper()
		var foreign *ForeignModelError
		if !errors.As(err, &foreign) || foreign.Have != testPrint(7) || foreign.Want != testPrint(1234) {
			t.Fatalf("got %v", err)
		}
		for _, s := range []string{testPrint(7)[:12], testPrint(1234)[:12]} {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%v does not name %s", err, s)
			}
		}
	}
	_, err := Open(w.model, drives, "")
	check(err)
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = job.Found()
	check(err)
	plan, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = job.Run(t.Context(), plan, false)
	check(err)
	if err := job.Close(); err != nil {
		t.Fatal(err)
	}
	if n := packsOf(t, w.folders[0]); len(n) != len(old) {
		t.Errorf("packs %v, before %v", n, old)
	}
	w.run(t, drives, plan, &JobOptions{Replace: true})
	if n := w.readAll(t, drives); n != 5 {
		t.Errorf("%d objects after replacing", n)
	}
	for _, p := range old {
		if _, err := os.Stat(p); !absent(err) {
			t.Errorf("old pack %s: %v", p, err)
		}
	}
}

// TestRefusesOtherDrives: an existing placement is neither added to nor
// overwritten by a command that names other drives.
func TestRefusesOtherDrives(t *testing.T) {
	w := makeWorld(t, 3, someSizes(8)...)
	drives := w.drives(t)
	w.place(t, drives[:2], PlanOptions{}, 1)
	for _, some := range [][]*ssdio.Drive{drives, drives[:1], {drives[0], drives[2]}} {
		job, err := Begin(w.model, some, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := job.Found(); !errors.Is(err, ErrOccupied) {
			t.Errorf("%d drives: %v", len(some), err)
		}
		if err := job.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := Begin(w.model, []*ssdio.Drive{drives[0], drives[0]}, nil); !errors.Is(err, ErrPlan) {
		t.Errorf("one drive twice: %v", err)
	}
	if _, err := Open(w.model, drives, ""); !errors.Is(err, ErrNoManifest) {
		t.Errorf("a drive without a manifest: %v", err)
	}
	// Parts of two placements of one model do not mix on one command.
	w.place(t, drives[2:], PlanOptions{}, 1)
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	if _, err := job.Found(); !errors.Is(err, ErrOccupied) {
		t.Errorf("two placements: %v", err)
	}
	if n := w.readAll(t, drives); n != 8 { // but they can be read together
		t.Errorf("%d objects", n)
	}
}

// TestAnotherMountPoint: a drive is known by its identity, wherever it is; a
// manifest without its drive is refused.
func TestAnotherMountPoint(t *testing.T) {
	w := makeWorld(t, 2, someSizes(12)...)
	drives := w.drives(t)
	w.place(t, drives, PlanOptions{Overlap: -1}, 1)
	moved := filepath.Join(t.TempDir(), "elsewhere")
	if err := os.Rename(w.folders[1], moved); err != nil {
		t.Fatal(err)
	}
	w.folders[1] = moved
	again := w.drives(t)
	if again[1].ID != drives[1].ID {
		t.Errorf("drive %s became %s", drives[1].ID, again[1].ID)
	}
	if n := w.readAll(t, []*ssdio.Drive{again[1], again[0]}); n != 12 {
		t.Errorf("%d objects", n)
	}
	if err := os.Remove(filepath.Join(moved, ssdio.MarkerName)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(w.model, w.drives(t), ""); !errors.Is(err, ErrForeignDrive) {
		t.Errorf("a manifest on a drive with another identity: %v", err)
	}
}

// TestReserve: what is to stay free is not planned with, and a plan fills what
// is left and not more.
func TestReserve(t *testing.T) {
	w := makeWorld(t, 1, repeat(40, 3*ssdio.BlockSize)...)
	drives := w.drives(t)
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	free, _, err := drives[0].Space()
	if err != nil {
		t.Fatal(err)
	}
	for _, reserve := range []int64{0, 1 << 30, free + 1} {
		room, err := job.Room(0, reserve)
		// Others write to the same device while this runs.
		if want := max(0, free-reserve); err != nil || max(room-want, want-room) > 4<<30 || (reserve > free && room > 4<<30) {
			t.Errorf("room %d with a reserve of %d, %d are free: %v", room, reserve, free, err)
		}
	}
	full := w.model.bytes()
	c := candidates(drives, full*3/4, 1)
	c = append(c, Candidate{ID: strings.Repeat("a", 32), Name: "other", Speed: 1, Room: full * 3 / 4})
	p, err := NewPlan(w.model, c, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i, d := range p.Drives {
		if d.Written > c[i].Room || d.Written < c[i].Room*9/10 {
			t.Errorf("drive %d: %d bytes to write into %d", i, d.Written, c[i].Room)
		}
	}
}

// TestInterruptedAndResumed: a cancelled job loses nothing that it journalled,
// and the next one goes on from there with the plan that was begun.
func TestInterruptedAndResumed(t *testing.T) {
	w := makeWorld(t, 2, repeat(40, 2*ssdio.BlockSize)...)
	drives := w.drives(t)
	p, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{PackSize: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last Progress
	o := &JobOptions{SyncBytes: 1, Progress: func(x Progress) {
		if last = x; x.Done >= x.Total/3 {
			cancel()
		}
	}}
	job, err := Begin(w.model, drives, o)
	if err != nil {
		t.Fatal(err)
	}
	_, err = job.Run(ctx, p, false)
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("cancelled: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(w.model, drives, ""); !errors.Is(err, ErrUnfinished) {
		t.Errorf("open of an unfinished placement: %v", err)
	}
	if job, err = Begin(w.model, drives, nil); err != nil {
		t.Fatal(err)
	}
	f, err := job.Found()
	if err != nil || f.Finished || f.Plan == nil || f.Plan.ID() != p.ID() || f.Done == 0 || f.Done >= f.All {
		t.Fatalf("found %+v, %v", f, err)
	}
	// A pack that was lost meanwhile is written again.
	packs := packsOf(t, w.folders[0])
	if err := os.Truncate(packs[len(packs)-1], 10); err != nil {
		t.Fatal(err)
	}
	r, err := job.Run(t.Context(), f.Plan, false)
	if err := errors.Join(err, job.Close()); err != nil {
		t.Fatal(err)
	}
	resumed := r.Drives[0].Resumed + r.Drives[1].Resumed
	if resumed == 0 || resumed >= f.Done || resumed < f.Done-8 {
		t.Errorf("%d objects resumed, %d were done and one pack was lost", resumed, f.Done)
	}
	if n := w.readAll(t, drives); n != 40 {
		t.Errorf("%d objects", n)
	}
	if last.Total == 0 || last.Done > last.Total {
		t.Errorf("progress %+v", last)
	}
}

// TestTwoJobsAtOnce: the second is refused and says who is first.
func TestTwoJobsAtOnce(t *testing.T) {
	w := makeWorld(t, 2, 5000)
	drives := w.drives(t)
	job, err := Begin(w.model, drives[1:], nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Begin(w.model, drives, nil)
	if !errors.Is(err, ErrBusy) || !strings.Contains(err.Error(), "process ") || !strings.Contains(err.Error(), "d1") {
		t.Errorf("second job: %v", err)
	}
	if err := job.Close(); err != nil {
		t.Fatal(err)
	}
	// The refused job gave back what it had locked.
	if job, err = Begin(w.model, drives, nil); err != nil {
		t.Fatal(err)
	}
	if err := job.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestModelFilesMustHold: a shard that is too short is an error and not a pack
// of zeros.
func TestModelFilesMustHold(t *testing.T) {
	w := makeWorld(t, 1, someSizes(8)...)
	drives := w.drives(t)
	w.model.Objects[7].Extents[0].Offset += 10 // now it ends behind the file
	p, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	if _, err := job.Run(t.Context(), p, false); !errors.Is(err, ssdio.ErrShort) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.folders[0], ManifestName)); !absent(err) {
		t.Errorf("a manifest was published: %v", err)
	}
	m := *w.model
	m.Objects = append([]Object{}, m.Objects...)
	for _, spoil := range []func(){
		func() { m.Objects[1] = m.Objects[0] },
		func() { m.Objects[1].Key.Expert, m.Objects[1].Size = 77, 3 },
		func() {
			m.Objects[1].Size = m.Objects[0].Size
			m.Objects[1].Extents = []Extent{{"../f", 0, m.Objects[0].Size}}
		},
		func() { m.Objects = nil },
		func() { m.Fingerprint = "8f2c" },
	} {
		spoil()
		if _, err := Begin(&m, drives, nil); !errors.Is(err, ErrModel) {
			t.Errorf("a model that contradicts itself: %v", err)
		}
	}
}

// TestReadBack: what comes back changed is written again; if it comes back
// changed always, nothing is published.
func TestReadBack(t *testing.T) {
	w := makeWorld(t, 1, repeat(6, ssdio.BlockSize)...)
	drives := w.drives(t, "fault=flip/after=2/count=1")
	r := w.place(t, drives, PlanOptions{}, 1)
	if r.Drives[0].Rewrites != 1 {
		t.Errorf("%+v", r.Drives[0])
	}
	if n := w.readAll(t, w.drives(t)); n != 6 {
		t.Errorf("%d objects", n)
	}
	w = makeWorld(t, 1, repeat(6, ssdio.BlockSize)...)
	drives = w.drives(t, "fault=error/at=300KiB-301KiB")
	p, err := NewPlan(w.model, candidates(drives, 1<<40, 1), PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job, err := Begin(w.model, drives, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer job.Close()
	if _, err = job.Run(t.Context(), p, false); !errors.Is(err, ErrReadBack) || !strings.Contains(err.Error(), "layer 0 expert 1") {
		t.Errorf("a drive that does not keep what is written: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.folders[0], ManifestName)); !absent(err) {
		t.Errorf("a manifest was published: %v", err)
	}
}

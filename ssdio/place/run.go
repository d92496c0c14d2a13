package place

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deltafin/ssdio"
)

// A Report says what a job did.
type Report struct {
	Plan   *Plan
	Drives []DriveReport // in the order of the plan
	Took   time.Duration
}

// A DriveReport is one drive's part of a Report.
type DriveReport struct {
	Name     string
	InPlace  bool
	Objects  int   // that the drive holds a part of
	Bytes    int64 // of the model that it holds
	Written  int64 // bytes of stripes written by this run
	Resumed  int   // objects that were safe before
	Files    int
	Rewrites int // stripes that came back changed and were written again
	// Sums says where the block sums come from: "computed while placing" or
	// "recorded on first use".
	Sums string
	// Buffered: the drive refuses direct reads, so reading back may have been
	// answered from memory.
	Buffered bool
}

// Run carries out a plan: it writes what is missing, reads it back from the
// devices, and publishes the manifests last. The plan is the one that Found
// gave, or a new one. An interruption at any point, by ctx or by anything else,
// leaves work that a later job goes on with.
//
// lazy leaves out the reading of the model's own files where nothing has to be
// written: their sums are then recorded on first use.
func (j *Job) Run(ctx context.Context, p *Plan, lazy bool) (*Report, error) {
	begun := time.Now()
	writers, err := j.prepare(p, lazy)
	if err != nil {
		return nil, err
	}
	j.meter.begin(total(writers))
	resumed := make([]int, len(writers))
	for i, w := range writers {
		if w != nil {
			resumed[i] = w.drive.journal.state.done
		}
	}
	if err := j.transfer(ctx, writers); err != nil {
		return nil, err
	}
	r := &Report{Plan: p}
	for i := range p.Drives {
		d := DriveReport{Name: p.Drives[i].Name, InPlace: p.Drives[i].InPlace, Bytes: p.Drives[i].Bytes, Sums: "computed while placing"}
		w := writers[i]
		m := j.site(p.Drives[i].ID).manifest
		if w != nil {
			d.Resumed, d.Rewrites, d.Buffered = resumed[i], w.rewrites, w.drive.buffered
			for _, e := range w.packing.entries[resumed[i]:] {
				if !d.InPlace {
					d.Written += e.bytes()
				}
			}
			m = w.manifest
		}
		if err := j.publish(p.Drives[i].ID, m); err != nil {
			return nil, err
		}
		d.Objects, d.Files = m.Objects(), len(m.Files)
		if known, all := m.Sums(); known < all {
			d.Sums = "recorded on first use"
		}
		r.Drives = append(r.Drives, d)
	}
	r.Took = time.Since(begun)
	return r, nil
}

// site finds a drive of the job.
func (j *Job) site(id string) *worksite {
	for _, w := range j.drives {
		if w.ID == id {
			return w
		}
	}
	return nil
}

// prepare makes a writer for every drive of the plan that is not finished.
// Where nothing is to be read it leaves the finished manifest in the worksite.
func (j *Job) prepare(p *Plan, lazy bool) ([]*writer, error) {
	if p.Fingerprint != j.model.Fingerprint || len(p.Drives) != len(j.drives) {
		return nil, fmt.Errorf("the plan is for another model or other drives: %w", ErrPlan)
	}
	for i := range p.Drives {
		lazy = lazy && p.Drives[i].InPlace
	}
	writers := make([]*writer, len(p.Drives))
	for i := range p.Drives {
		w := j.site(p.Drives[i].ID)
		if w == nil {
			return nil, fmt.Errorf("drive %s of the plan is not there: %w", p.Drives[i].Name, ErrPlan)
		}
		if !p.Drives[i].InPlace && !w.Marked {
			return nil, fmt.Errorf("drive %s (%s): %w; it can only hold the model's own files", w.Name, w.Path, ErrReadOnly)
		}
		if err := j.clean(w, p); err != nil {
			return nil, err
		}
		if w.manifest != nil {
			continue
		}
		k := newPacking(j.model, p, i)
		files, err := j.files(w, p, k)
		if err != nil {
			return nil, err
		}
		if lazy {
			w.manifest = newManifest(p.Fingerprint, w.ID, p, files, k)
			continue
		}
		if err := j.ready(w, p, k, files); err != nil {
			return nil, err
		}
		writers[i] = newWriter(j, w, p, k, files)
		if err := writers[i].fits(); err != nil {
			return nil, err
		}
	}
	return writers, nil
}

// clean removes from a drive what does not belong to the plan. Without Replace
// there is nothing of that kind, or Found has said so.
func (j *Job) clean(w *worksite, p *Plan) error {
	id := p.ID()
	stale := w.trouble != nil || (w.manifest != nil && w.manifest.Plan.ID() != id) || (w.journal != nil && w.journal.plan.ID() != id)
	if !stale {
		return nil
	}
	if !j.opt.Replace {
		return errors.Join(fmt.Errorf("drive %s: %w", w.Name, ErrOccupied), w.trouble)
	}
	// The manifest first: from then on nothing refers to the packs.
	packs, err := w.packs()
	if err != nil {
		return err
	}
	names := []string{filepath.Join(w.home, ManifestName), filepath.Join(w.home, JournalName)}
	for _, n := range packs {
		names = append(names, filepath.Join(w.Path, n))
	}
	for i, n := range names {
		err := j.opt.disk.remove(n)
		if err == nil && i == 0 {
			err = j.opt.disk.syncDir(w.home)
		}
		if err != nil {
			return fmt.Errorf("drive %s: %w", w.Name, err)
		}
	}
	w.manifest, w.published, w.journal, w.trouble, w.old = nil, false, nil, nil, 0
	return nil
}

// files names the files that a drive will have.
func (j *Job) files(w *worksite, p *Plan, k *packing) ([]ManifestFile, error) {
	id := p.ID()
	files := make([]ManifestFile, len(k.files))
	below, err := "", error(nil)
	if p.Drives[p.index(w.ID)].InPlace {
		if below, err = Below(w.Path, j.model.Dir); err != nil {
			return nil, fmt.Errorf("drive %s: %w", w.Name, err)
		}
	}
	for i := range k.files {
		f := &k.files[i]
		if f.name == "" {
			files[i] = ManifestFile{packName(id, i), f.size, true}
			continue
		}
		n, err := j.loader.size(f.name)
		if err != nil {
			return nil, err
		}
		files[i] = ManifestFile{slash(below, f.name), n, false}
	}
	for i := range k.entries {
		e := &k.entries[i]
		if f := files[e.file]; e.offset > f.Size-e.bytes() {
			return nil, fmt.Errorf("%s: %d bytes at offset %d, %s has %d: %w", e.key, e.bytes(), e.offset, f.Name, f.Size, ErrModel)
		}
	}
	return files, nil
}

// ready opens the drive's journal, or begins one, and gives up what it promises
// of packs that are not there any more.
func (j *Job) ready(w *worksite, p *Plan, k *packing, files []ManifestFile) error {
	explain := func(err error) error {
		if err == nil {
			return nil
		}
		if isFull(err) {
			free, _, _ := w.Space() // 0 is near enough on a drive that is full
			return &SpaceError{Drive: w.Name, Left: k.padded(), Free: free, All: len(k.entries), Err: err}
		}
		return fmt.Errorf("drive %s: %w", w.Name, err)
	}
	if w.journal == nil {
		w.journal = &journal{path: filepath.Join(w.home, JournalName), print: p.Fingerprint, drive: w.ID, plan: p, digest: k.digest()}
		if err := w.journal.create(j.opt.disk); err != nil {
			w.journal = nil
			return explain(err)
		}
	}
	if err := w.journal.fits(k); err != nil {
		return err
	}
	if err := w.journal.open(j.opt.disk); err != nil {
		return explain(err)
	}
	st := &w.journal.state
	for i := range k.files {
		f := &k.files[i]
		if f.name != "" || st.done <= f.first {
			break
		}
		last := &k.entries[min(st.done, f.last)-1]
		info, err := os.Stat(filepath.Join(w.Path, files[i].Name))
		if err == nil && info.Size() >= last.offset+last.bytes() {
			continue
		}
		back := min(st.verified, i)
		if err := w.journal.append(appendRecord(nil, recordBack, f.first, le.AppendUint32(nil, uint32(back)))); err != nil {
			return explain(err)
		}
		st.sums, st.done, st.verified = st.sums[:k.sums0[f.first]], f.first, back
		break
	}
	return nil
}

// fits says before anything is written if a drive is too full by now.
func (w *writer) fits() error {
	left := w.left()
	if left == 0 {
		return nil
	}
	free, _, err := w.drive.Space()
	if err != nil {
		return err
	}
	if left <= free {
		return nil
	}
	st := &w.drive.journal.state
	return &SpaceError{Drive: w.drive.Name, Left: left, Free: free, Done: st.done, All: len(w.packing.entries), Err: errors.New("found before writing")}
}

// total is what the writers are going to write and read back, bytes.
func total(writers []*writer) int64 {
	n := int64(0)
	for _, w := range writers {
		if w == nil {
			continue
		}
		st := &w.drive.journal.state
		for i := range w.packing.entries {
			e := &w.packing.entries[i]
			if i >= st.done {
				n += e.bytes()
			}
			if !w.inPlace() && int(e.file) >= st.verified {
				n += e.bytes()
			}
		}
	}
	return n
}

const (
	// loadDepth is how many objects are read ahead of the slowest drive.
	loadDepth = 4
	// itemSlots is how many are in memory at most.
	itemSlots = 8
)

// transfer reads the model's objects once each, in their order, and hands them
// to the writers that need them. The first failure stops all; every writer makes
// safe what it has before it stops.
func (j *Job) transfer(ctx context.Context, writers []*writer) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	largest := int64(0)
	for i := range j.model.Objects {
		largest = max(largest, j.model.Objects[i].Size)
	}
	arena, err := ssdio.NewArena(int(largest), itemSlots, 0)
	if err != nil {
		return err
	}
	slots := make(chan *ssdio.Slot, itemSlots)
	all := make([]*ssdio.Slot, itemSlots)
	for i := range all {
		all[i] = arena.Get()
		slots <- all[i]
	}
	var wait sync.WaitGroup
	for _, w := range writers {
		if w == nil {
			continue
		}
		w.in = make(chan *item, itemSlots)
		wait.Go(func() {
			if err := w.run(ctx); err != nil {
				cancel(err)
			}
		})
	}
	j.feed(ctx, writers, slots, &wait)
	for _, w := range writers {
		if w != nil {
			close(w.in)
		}
	}
	wait.Wait()
	for _, s := range all {
		s.Free()
	}
	return errors.Join(context.Cause(ctx), arena.Close())
}

// feed loads objects and hands them out. wait counts the loads too.
func (j *Job) feed(ctx context.Context, writers []*writer, slots chan *ssdio.Slot, wait *sync.WaitGroup) {
	at := make([]int, len(writers)) // next entry of each writer
	for i, w := range writers {
		if w != nil {
			at[i] = w.drive.journal.state.done
		}
	}
	loads := make(chan struct{}, loadDepth)
	for n := range j.model.Objects {
		var users []*writer
		for i, w := range writers {
			if w != nil && at[i] < len(w.packing.objects) && int(w.packing.objects[at[i]]) == n {
				users = append(users, w)
				at[i]++
			}
		}
		if len(users) == 0 {
			continue
		}
		it := &item{object: n, ready: make(chan struct{}), done: func(it *item) { slots <- it.slot }}
		it.users.Store(int32(len(users)))
		select {
		case <-ctx.Done():
			return
		case it.slot = <-slots:
		}
		select {
		case <-ctx.Done():
			return
		case loads <- struct{}{}:
		}
		wait.Go(func() {
			j.load(it)
			<-loads
		})
		for _, w := range users {
			select {
			case <-ctx.Done():
				return
			case w.in <- it:
			}
		}
	}
}

// load reads one object and computes its sums.
func (j *Job) load(it *item) {
	defer close(it.ready)
	o := &j.model.Objects[it.object]
	it.data = it.slot.Buffer(int(o.Extents[0].Offset%page), int(o.Size)).Bytes()
	var bounce ssdio.Scratch
	defer bounce.Free()
	if it.err = j.loader.read(o, 0, it.data, &bounce); it.err == nil {
		it.sums = blockSums(it.data)
	}
}

// publish makes a manifest appear and ends the drive's journal.
func (j *Job) publish(id string, m *Manifest) error {
	w := j.site(id)
	if !w.published {
		data, err := m.encode()
		if err == nil {
			err = publish(j.opt.disk, filepath.Join(w.home, ManifestName), data)
		}
		if err != nil {
			return fmt.Errorf("drive %s: publish the manifest: %w", w.Name, err)
		}
	}
	w.manifest, w.published = m, true
	if w.journal == nil {
		return nil
	}
	err := w.journal.close()
	path := w.journal.path
	w.journal = nil
	return errors.Join(err, j.opt.disk.remove(path), j.opt.disk.syncDir(w.home))
}

func (j *Job) tell(phase, drive string, bytes int64) { j.meter.add(phase, drive, bytes) }

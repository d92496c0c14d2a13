package place

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"

	"deltafin/ssdio"
)

// An item is one object on its way from the model's files to the drives.
type item struct {
	object int
	slot   *ssdio.Slot
	data   []byte
	sums   []uint32
	err    error
	ready  chan struct{} // closed when data, sums or err are there
	users  atomic.Int32  // writers that have not let go of it
	done   func(*item)   // called by the last
}

func (it *item) release() {
	if it.users.Add(-1) == 0 {
		it.done(it)
	}
}

// A writer brings one drive to what the plan says. One goroutine runs it. For a
// drive that holds the model in place it writes sums only.
type writer struct {
	drive   *worksite
	disk    disk
	loader  *loader
	plan    *Plan
	packing *packing
	sync    int64 // bytes between two syncs
	in      chan *item
	tell    func(phase, drive string, bytes int64)

	manifest *Manifest // grows as entries are done
	pack     diskFile  // open pack, nil if none
	open     int       // its number
	records  []byte    // of entries that are written but not synced
	pending  int       // number of these
	dirty    int64     // bytes of these
	scratch  ssdio.Scratch
	rewrites int // stripes that were written again after reading back
}

// newWriter takes up where the journal ends.
func newWriter(job *Job, d *worksite, p *Plan, k *packing, files []ManifestFile) *writer {
	w := &writer{drive: d, disk: job.opt.disk, loader: job.loader, plan: p, packing: k, sync: job.opt.SyncBytes, tell: job.tell}
	w.manifest = newManifest(p.Fingerprint, d.ID, p, files, k)
	for i, s := range d.journal.state.sums {
		w.manifest.setSum(i, s)
	}
	return w
}

// inPlace says that nothing is written but sums.
func (w *writer) inPlace() bool { return w.plan.Drives[w.plan.index(w.drive.ID)].InPlace }

// next is the entry that comes next, and its object in the model; false at the
// end.
func (w *writer) next() (entry, object int, ok bool) {
	n := w.drive.journal.state.done + w.pending
	if n >= len(w.packing.entries) {
		return n, 0, false
	}
	return n, int(w.packing.objects[n]), true
}

// run takes objects until the channel is closed. Whatever ends it, what was
// written is made safe first.
func (w *writer) run(ctx context.Context) (err error) {
	defer func() {
		if w.pack != nil {
			err = errors.Join(err, w.pack.Close())
			w.pack = nil
		}
		err = errors.Join(err, w.scratch.Free())
	}()
	if err := w.catchUp(ctx); err != nil {
		return err
	}
	for {
		var it *item
		var more bool
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), w.flush())
		case it, more = <-w.in:
		}
		if !more {
			return w.flush()
		}
		err := w.put(ctx, it)
		it.release()
		if err != nil {
			return errors.Join(err, w.flush())
		}
	}
}

// catchUp does what an interruption left between the last entry of a pack and
// its reading back.
func (w *writer) catchUp(ctx context.Context) error {
	st := &w.drive.journal.state
	for !w.inPlace() && st.verified < len(w.packing.files) && w.packing.files[st.verified].last <= st.done {
		if err := w.finish(ctx, st.verified); err != nil {
			return err
		}
	}
	return nil
}

// put writes the drive's part of an object.
func (w *writer) put(ctx context.Context, it *item) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-it.ready:
	}
	if it.err != nil {
		return it.err
	}
	n, object, ok := w.next()
	if !ok || object != it.object {
		return fmt.Errorf("drive %s: object %d came where %d was due: %w", w.drive.Name, it.object, object, ErrPlan)
	}
	e := &w.packing.entries[n]
	if !w.inPlace() {
		if err := w.write(e, it.data[e.from():e.to()]); err != nil {
			return err
		}
	}
	var payload []byte
	for b := range e.blocks() {
		sum := it.sums[int(e.lo)+b]
		w.manifest.setSum(w.packing.sums0[n]+b, sum)
		payload = le.AppendUint32(payload, sum)
	}
	w.records = appendRecord(w.records, recordDone, n, payload)
	w.pending++
	w.dirty += e.bytes()
	w.tell("writing", w.drive.Name, e.bytes())
	if !w.inPlace() && w.packing.files[e.file].last == n+1 {
		if err := w.flush(); err != nil {
			return err
		}
		return w.finish(ctx, int(e.file))
	}
	if w.dirty >= w.sync {
		return w.flush()
	}
	return nil
}

// write writes a stripe into its pack.
func (w *writer) write(e *entry, data []byte) error {
	if w.pack == nil || w.open != int(e.file) {
		if err := w.openPack(int(e.file)); err != nil {
			return err
		}
	}
	if _, err := w.pack.WriteAt(data, e.offset); err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *writer) openPack(n int) (err error) {
	if w.pack != nil {
		if err := w.pack.Close(); err != nil {
			return w.failed(err)
		}
		w.pack = nil
	}
	w.pack, err = w.disk.open(w.path(n))
	if err != nil {
		return w.failed(err)
	}
	w.open = n
	// What an interruption left behind the last safe stripe is cut off.
	safe := int64(0)
	if next := w.drive.journal.state.done; next > w.packing.files[n].first {
		last := &w.packing.entries[next-1]
		safe = last.offset + last.bytes()
	}
	if err := w.pack.Truncate(safe); err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *writer) path(pack int) string {
	return filepath.Join(w.drive.Path, w.manifest.Files[pack].Name)
}

// flush makes what was written durable and then says so in the journal.
func (w *writer) flush() error {
	if w.pending == 0 {
		return nil
	}
	if w.pack != nil {
		if err := w.pack.Sync(); err != nil {
			return w.failed(err)
		}
	}
	j := w.drive.journal
	if err := j.append(w.records); err != nil {
		return w.failed(err)
	}
	j.state.done += w.pending
	w.records, w.pending, w.dirty = w.records[:0], 0, 0
	return nil
}

// finish completes a pack whose stripes are all safe: header and table, then
// everything is read back from the device.
func (w *writer) finish(ctx context.Context, n int) error {
	head, err := w.manifest.packHead(n)
	if err != nil {
		return err
	}
	if w.pack == nil || w.open != n {
		if err := w.openPack(n); err != nil {
			return err
		}
	}
	err = w.pack.Truncate(w.packing.files[n].size)
	if err == nil {
		_, err = w.pack.WriteAt(head[page:], page)
	}
	// The header stands for everything behind it, so it comes last.
	if err == nil {
		err = w.pack.Sync()
	}
	if err == nil {
		_, err = w.pack.WriteAt(head[:page], 0)
	}
	if err == nil {
		err = w.pack.Sync()
	}
	if err == nil {
		err = w.disk.syncDir(w.drive.Path)
	}
	if err != nil {
		return w.failed(err)
	}
	if err := w.readBack(ctx, n, head); err != nil {
		return err
	}
	j := w.drive.journal
	if err := j.append(appendRecord(nil, recordVerified, n, nil)); err != nil {
		return w.failed(err)
	}
	j.state.verified++
	err = w.pack.Close()
	w.pack = nil
	return err
}

// readBack compares a pack on the device with what was written. Stripes that
// differ are written once more from the model's files.
func (w *writer) readBack(ctx context.Context, n int, head []byte) error {
	bad, err := w.compare(ctx, n, head)
	if err != nil || len(bad) == 0 {
		return err
	}
	for _, i := range bad {
		e := &w.packing.entries[i]
		data, err := w.scratch.Bytes(int(e.bytes()))
		if err != nil {
			return err
		}
		var bounce ssdio.Scratch
		err = w.loader.read(&w.loader.model.Objects[w.packing.objects[i]], e.from(), data, &bounce)
		if err = errors.Join(err, bounce.Free()); err != nil {
			return err
		}
		for b, sum := range blockSums(data) {
			if want, _ := w.manifest.sum(w.packing.sums0[i] + b); want != sum {
				return fmt.Errorf("%s: block %d of the model's file read as %08x first and %08x now: %w; check the model's files", e.key, int(e.lo)+b, want, sum, ErrModel)
			}
		}
		if _, err := w.pack.WriteAt(data, e.offset); err != nil {
			return w.failed(err)
		}
		w.rewrites++
	}
	if _, err := w.pack.WriteAt(head, 0); err != nil {
		return w.failed(err)
	}
	if err := w.pack.Sync(); err != nil {
		return w.failed(err)
	}
	bad, err = w.compare(ctx, n, head)
	if err == nil && len(bad) > 0 {
		e := &w.packing.entries[max(bad[0], 0)]
		err = fmt.Errorf("drive %s: %d objects of %s, first %s at offset %d, came back changed twice: %w; the drive may be failing, nothing was published on it",
			w.drive.Name, len(bad), w.manifest.Files[n].Name, e.key, e.offset, ErrReadBack)
	}
	return err
}

// compare reads a pack and lists the entries that are not as they were written.
// A head that is not counts as none of them but makes the list non-empty: it is
// listed as the first entry.
func (w *writer) compare(ctx context.Context, n int, head []byte) ([]int, error) {
	f := &w.packing.files[n]
	src := newSources(w.drive.FS)
	defer src.close()
	bad := make([]atomic.Bool, f.last-f.first)
	if err := sameHead(src, &w.manifest.Files[n], head); err != nil {
		bad[0].Store(true)
	}
	err := scan(ctx, w.manifest.Files, w.packing.entries[f.first:f.last], src, func(i, b int, data []byte, err error) error {
		want, _ := w.manifest.sum(w.packing.sums0[f.first+i] + b)
		if err != nil || ssdio.Sum(data) != want {
			bad[i].Store(true)
		}
		w.tell("reading back", w.drive.Name, int64(len(data)))
		return nil
	})
	if err != nil {
		return nil, err
	}
	w.drive.buffered = w.drive.buffered || src.buffered()
	var out []int
	for i := range bad {
		if bad[i].Load() {
			out = append(out, f.first+i)
		}
	}
	return out, nil
}

// sameHead compares a pack's size, and the part of it before its stripes, with
// what they must be.
func sameHead(src *sources, f *ManifestFile, head []byte) error {
	file, err := src.get(f.Name)
	if err != nil {
		return err
	}
	if n := file.Size(); n != f.Size {
		return fmt.Errorf("%s has %d bytes, the manifest says %d: %w", f.Name, n, f.Size, ErrDamaged)
	}
	var mem, bounce ssdio.Scratch
	defer mem.Free()
	defer bounce.Free()
	have, err := mem.Bytes(len(head))
	if err != nil {
		return err
	}
	if _, err := file.ReadInto(have, 0, &bounce); err != nil {
		return err
	}
	if err := checkPrefix(f.Name, have, packMagic, packVersion); err != nil {
		return err
	}
	if !bytes.Equal(have, head) {
		return fmt.Errorf("%s: header or table is not what the manifest says: %w", f.Name, ErrDamaged)
	}
	return nil
}

// failed explains an error of writing.
func (w *writer) failed(err error) error {
	if !isFull(err) {
		return fmt.Errorf("drive %s: %w", w.drive.Name, err)
	}
	free, _, _ := w.drive.Space() // 0 is near enough on a drive that is full
	st := &w.drive.journal.state
	return &SpaceError{Drive: w.drive.Name, Left: w.left(), Free: free, Done: st.done, All: len(w.packing.entries), Err: err}
}

// left is what is still to be written to the drive, bytes.
func (w *writer) left() int64 {
	n := int64(0)
	if w.inPlace() {
		return n
	}
	for _, e := range w.packing.entries[w.drive.journal.state.done:] {
		n += pages(e.bytes())
	}
	return n
}

package place

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deltafin/ssdio"
)

// JobOptions are the options of Begin. Zero means the default.
type JobOptions struct {
	// State is a folder for the records of drives whose own folder cannot be
	// written (such drives can only hold the model in place).
	State string
	// Replace: placements and unfinished work that do not fit are not an error
	// but are removed when Run begins. Their room counts as free.
	Replace bool
	// SyncBytes is how much is written to a drive before it is synced and
	// journalled: what an interruption costs at most. Default 64 MiB.
	SyncBytes int64
	// Progress is told how far a job is, by one goroutine at a time. It must
	// not block.
	Progress func(Progress)

	disk disk // replaced by tests
}

// Progress says how far a job or a check is. Done and Total are bytes that pass
// through drives: written, read back, or checked.
type Progress struct {
	Phase string // "writing", "reading back", "checking", "repairing"
	Drive string // that was worked on just now
	Done  int64
	Total int64
}

// A Job is the right to place a model on some drives: they are locked while it
// exists.
type Job struct {
	model  *Model
	opt    JobOptions
	drives []*worksite
	loader *loader
	meter  meter
}

// A worksite is a drive that a job works on.
type worksite struct {
	*ssdio.Drive
	home      string // folder of its records
	lock      *os.File
	manifest  *Manifest // nil if none
	published bool      // the manifest stands in its file
	journal   *journal  // nil if none
	trouble   error     // why what is there cannot be used
	old       int64     // bytes that Replace would free
	buffered  bool
}

// home is the folder that keeps a drive's records: its own, or, if that cannot
// be written, one below the state folder.
func home(d *ssdio.Drive, state string) (string, error) {
	if d.Marked {
		return d.Path, nil
	}
	if state == "" {
		return "", fmt.Errorf("drive %s: %s cannot be written, and no other folder for its records was named: %w", d.Name, d.Path, ErrReadOnly)
	}
	return filepath.Join(state, "drive-"+d.ID), nil
}

// Begin locks the drives and looks at what is on them. A drive on which another
// process works is an error that wraps ErrBusy.
func Begin(m *Model, drives []*ssdio.Drive, o *JobOptions) (j *Job, err error) {
	if err := m.check(); err != nil {
		return nil, err
	}
	j = &Job{model: m, loader: newLoader(m)}
	if o != nil {
		j.opt = *o
	}
	if j.opt.SyncBytes <= 0 {
		j.opt.SyncBytes = 64 << 20
	}
	if j.opt.disk == nil {
		j.opt.disk = osDisk{}
	}
	j.meter.report = j.opt.Progress
	defer func() {
		if err != nil {
			err = errors.Join(err, j.Close())
			j = nil
		}
	}()
	for _, d := range drives {
		w := &worksite{Drive: d}
		if slices.ContainsFunc(j.drives, func(o *worksite) bool { return o.ID == d.ID }) {
			return j, fmt.Errorf("drive %s (%s) was named twice: %w", d.Name, d.Path, ErrPlan)
		}
		if w.home, err = home(d, j.opt.State); err != nil {
			return j, err
		}
		if err := makeDir(w.home); err != nil {
			return j, fmt.Errorf("drive %s: %w", d.Name, err)
		}
		if w.lock, err = lockDrive(w.home, d.Name); err != nil {
			return j, err
		}
		j.drives = append(j.drives, w)
		if err := w.look(m.Fingerprint); err != nil {
			return j, err
		}
	}
	return j, nil
}

// look reads the drive's records. What is wrong with them is remembered, not
// returned: it may be about to be replaced.
func (w *worksite) look(print string) error {
	path := filepath.Join(w.home, ManifestName)
	m, err := readManifest(path, w.Drive)
	switch {
	case absent(err):
	case err != nil:
		w.trouble = err
	case m.Fingerprint != print:
		w.trouble = &ForeignModelError{path, m.Fingerprint, print}
	default:
		w.manifest, w.published = m, true
	}
	path = filepath.Join(w.home, JournalName)
	k, err := readJournal(path)
	switch {
	case absent(err):
	case err != nil:
		w.trouble = errors.Join(w.trouble, err)
	case k.print != print:
		w.trouble = errors.Join(w.trouble, &ForeignModelError{path, k.print, print})
	case k.drive != w.ID:
		w.trouble = errors.Join(w.trouble, fmt.Errorf("%s is of drive %s, this is %s: %w", path, k.drive, w.ID, ErrForeignDrive))
	case k.plan.index(w.ID) < 0:
		w.trouble = errors.Join(w.trouble, fmt.Errorf("%s has no part for its own drive: %w", path, ErrDamaged))
	default:
		w.journal = k
	}
	packs, err := w.packs()
	if err != nil {
		return err
	}
	for _, name := range packs {
		if info, err := os.Stat(filepath.Join(w.Path, name)); err == nil {
			w.old += info.Size()
		}
	}
	return nil
}

// packs lists the files in the drive's folder that have the name of a pack.
func (w *worksite) packs() ([]string, error) {
	list, err := os.ReadDir(w.Path)
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", w.Name, err)
	}
	var out []string
	for _, f := range list {
		if n := f.Name(); f.Type().IsRegular() && strings.HasPrefix(n, "deltafin-") && strings.HasSuffix(n, ".pack") {
			out = append(out, n)
		}
	}
	return out, nil
}

// Found is what Begin found on the drives.
type Found struct {
	// Plan is the plan that the drives follow already, nil if there is nothing
	// on them.
	Plan *Plan
	// Finished: everything of the plan is there.
	Finished bool
	// Objects of the plan that are safe, and all, over all drives.
	Done, All int
}

// Found says what is on the drives. The error says that there is something that
// neither is finished nor can be gone on with; with Replace there is none.
func (j *Job) Found() (*Found, error) {
	f, err := j.found()
	if err != nil && j.opt.Replace {
		return &Found{}, nil
	}
	return f, err
}

func (j *Job) found() (*Found, error) {
	f := &Found{Finished: true}
	var id [16]byte
	var first string
	for _, w := range j.drives {
		if w.trouble != nil {
			return nil, w.trouble
		}
		var p *Plan
		switch {
		case w.manifest != nil:
			p = w.manifest.Plan
		case w.journal != nil:
			p = w.journal.plan
			f.Finished = false
		default:
			f.Finished = false
			continue
		}
		if f.Plan == nil {
			f.Plan, id, first = p, p.ID(), w.Name
		}
		if p.ID() != id {
			return nil, fmt.Errorf("drives %s and %s hold parts of different placements of this model: %w; use --replace to place it anew", first, w.Name, ErrOccupied)
		}
	}
	if f.Plan == nil {
		return &Found{}, nil
	}
	named := make([]string, len(j.drives))
	same := len(j.drives) == len(f.Plan.Drives)
	for i, w := range j.drives {
		named[i] = w.Name
		same = same && f.Plan.index(w.ID) >= 0
	}
	if !same {
		var have []string
		for i := range f.Plan.Drives {
			have = append(have, f.Plan.Drives[i].Name)
		}
		return nil, fmt.Errorf("a placement of this model over drives %s exists, named are %s: %w; name the same drives to go on with it, or use --replace to place the model anew",
			strings.Join(have, ", "), strings.Join(named, ", "), ErrOccupied)
	}
	for _, w := range j.drives {
		k := newPacking(j.model, f.Plan, f.Plan.index(w.ID))
		f.All += len(k.entries)
		switch {
		case w.manifest != nil:
			f.Done += len(k.entries)
		case w.journal != nil:
			if err := w.journal.fits(k); err != nil {
				return nil, err
			}
			f.Done += w.journal.state.done
		}
	}
	return f, nil
}

// Room is how many bytes may be written to the i-th drive if reserve bytes are
// to stay free. What Replace would remove counts as free.
func (j *Job) Room(i int, reserve int64) (int64, error) {
	w := j.drives[i]
	if !w.Marked {
		return 0, nil
	}
	free, _, err := w.Space()
	if err != nil {
		return 0, err
	}
	if j.opt.Replace {
		free += w.old
	}
	return max(0, free-reserve), nil
}

// Close gives the drives free. A job that was not finished can be gone on with
// later.
func (j *Job) Close() error {
	errs := []error{j.loader.close()}
	for _, w := range j.drives {
		if w.journal != nil {
			errs = append(errs, w.journal.close())
		}
		if w.lock != nil {
			errs = append(errs, w.lock.Close())
		}
	}
	j.drives = nil
	return errors.Join(errs...)
}

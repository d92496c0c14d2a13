package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"deltafin/engine"
	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/nano"
	"deltafin/engine/simulate"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
	"deltafin/ssdio/place"
)

// A home is a model and where its experts lie: the demonstration model, which is on
// every drive, or a folder whose experts are placed on folders that stand for drives.
type home struct {
	name    string // of the model
	dir     string // "" for the demonstration model
	scratch string
	ck      *checkpoint.Checkpoint
	cat     *expert.Catalog
	model   *simulate.Model
	placed  map[string][]string // folders, by the speeds of the drives
}

// mostExperts is the largest model that is placed on drives, in bytes of experts. There
// are up to three copies at a time, where the drives are usually in memory.
const mostExperts = 2 << 30

// A SizeError is a model that is too large to be placed on drives for a check.
type SizeError struct{ Bytes int64 }

// Error says so.
func (e *SizeError) Error() string {
	return fmt.Sprintf("its experts are %d bytes, and a check copies up to %d to drives that it emulates: make a smaller one with deltafin synth", e.Bytes, int64(mostExperts))
}

func openHome(name, dir, scratch string) (_ *home, err error) {
	h := &home{name: name, dir: dir, scratch: scratch, placed: map[string][]string{}}
	if dir == "" {
		h.ck, err = nano.Open()
	} else {
		h.ck, err = checkpoint.Open(dir)
	}
	if err != nil {
		return nil, err
	}
	if h.cat, err = expert.NewCatalog(h.ck); err == nil {
		h.model, err = simulate.NewModel(name, h.ck.Config())
	}
	if err == nil && dir != "" && h.cat.Bytes() > mostExperts {
		err = &SizeError{h.cat.Bytes()}
	}
	if err != nil {
		return nil, errors.Join(err, h.ck.Close())
	}
	return h, nil
}

// overlap of what is placed: each drive holds so much more than its share.
const overlap = 0.5

// folders gives each of n drives the folder it reads from.
func (h *home) folders(ctx context.Context, drives []Drive) ([]string, error) {
	key := fmt.Sprint(drives)
	if f := h.placed[key]; f != nil {
		return f, nil
	}
	var out []string
	for i := range drives {
		out = append(out, filepath.Join(h.scratch, fmt.Sprintf("%s-%d-drive%d", h.name, len(h.placed)+1, i+1)))
		if err := os.MkdirAll(out[i], 0o755); err != nil {
			return nil, err
		}
	}
	if h.dir != "" {
		if err := h.place(ctx, out, drives); err != nil {
			return nil, err
		}
	}
	h.placed[key] = out
	return out, nil
}

// place writes the experts to folders, by the speeds of the drives.
func (h *home) place(ctx context.Context, folders []string, speeds []Drive) (err error) {
	drives, err := openFolders(folders)
	if err != nil {
		return err
	}
	var cands []place.Candidate
	for i, d := range drives {
		cands = append(cands, place.Candidate{ID: d.ID, Name: d.Name, Speed: float64(max(speeds[i].bytes(h.expert()), 1)), Room: 1 << 40})
	}
	m, err := h.placeable()
	if err != nil {
		return err
	}
	plan, err := place.NewPlan(m, cands, place.PlanOptions{Overlap: overlap})
	if err != nil {
		return err
	}
	job, err := place.Begin(m, drives, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	_, err = job.Run(ctx, plan, false)
	return err
}

// placeable is the experts with a folder that can be found from anywhere.
func (h *home) placeable() (*place.Model, error) {
	m := *h.cat.Model()
	dir, err := filepath.Abs(h.dir)
	m.Dir = dir
	return &m, err
}

func openFolders(folders []string) ([]*ssdio.Drive, error) {
	var out []*ssdio.Drive
	for _, f := range folders {
		d, err := ssdio.OpenDrive(f, nil)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	return out, nil
}

// layout is where the experts lie on the drives: nil for copies of all on each.
func (h *home) layout(ctx context.Context, c *Config) (*ssdio.Layout, error) {
	if h.dir == "" || c.Streamed {
		return nil, nil
	}
	folders, err := h.folders(ctx, c.Drives)
	if err != nil {
		return nil, err
	}
	opened, err := openFolders(folders)
	if err != nil {
		return nil, err
	}
	m, err := h.placeable()
	if err != nil {
		return nil, err
	}
	p, err := place.Open(m, opened, "")
	if err != nil {
		return nil, err
	}
	return p.Layout, nil
}

// specs are the emulated drives as the engine takes them.
func (h *home) specs(ctx context.Context, c *Config) ([]string, error) {
	folders := []string{h.dir} // where the trunk is streamed it lies in the model's own folder
	if !c.Streamed {
		var err error
		if folders, err = h.folders(ctx, c.Drives); err != nil {
			return nil, err
		}
	}
	var out []string
	for i, d := range c.Drives {
		s := emulate.Spec{Path: folders[i], Name: fmt.Sprintf("drive%d", i+1), Limit: d.bytes(h.expert()), Latency: d.Latency, Cached: h.dir != ""}
		out = append(out, s.String())
	}
	return out, nil
}

// cache is the budget of a cache with room for a share of all experts.
func (h *home) cache(c *Config) int64 {
	n := max(int(c.Cache*float64(h.cat.Experts())), h.ck.Config().TopK)
	return int64(n+expert.Spares(len(c.Drives))) * h.cat.SlotBytes()
}

// options are those of the engine for a configuration.
func (h *home) options(ctx context.Context, c *Config) (engine.Options, error) {
	specs, err := h.specs(ctx, c)
	if err != nil {
		return engine.Options{}, err
	}
	o := engine.Options{
		Model: h.dir, Threads: c.Threads, Kernel: c.Kernel, PrefillRows: c.Rows, ExpertCache: h.cache(c), NoLookahead: c.NoAhead, Drives: specs,
	}
	if c.Streamed {
		o.DriveState = filepath.Join(h.scratch, "state") // nothing is written to the model's folder
		o.TrunkMemory, err = h.leastTrunk()
	}
	return o, err
}

// leastTrunk is the memory with which every layer of the trunk is streamed.
func (h *home) leastTrunk() (int64, error) {
	c, err := trunk.NewCatalog(h.ck)
	if err != nil {
		return 0, err
	}
	return c.Least(), nil
}

// expert is the bytes of one.
func (h *home) expert() int64 { return h.cat.Largest() }

// machine is the machine that the configuration stands for, with reads that lag so
// much behind what its drives promise. Its memory and arithmetic are not asked: both are given.
func (h *home) machine(c *Config, lag time.Duration) *simulate.Machine {
	m := &simulate.Machine{
		Name: strings.TrimSpace(c.Name), RAM: 1 << 40, Bandwidth: 1e12, Gflops: 1e6,
		Overlap: float64(2 * len(c.Drives)), // copies of all on each drive
	}
	for i, d := range c.Drives {
		m.Drives = append(m.Drives, simulate.Drive{Name: fmt.Sprintf("drive%d", i+1), Rate: float64(d.bytes(h.expert())), Latency: (d.Latency + lag).Seconds()})
	}
	return m
}

// clear removes what was placed: every configuration has other drives.
func (h *home) clear() error {
	var errs []error
	for _, folders := range h.placed {
		for _, f := range folders {
			errs = append(errs, os.RemoveAll(f))
		}
	}
	clear(h.placed)
	return errors.Join(errs...)
}

func (h *home) close() error { return h.ck.Close() }

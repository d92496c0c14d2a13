package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// placeModel describes the routed experts of a checkpoint to package place, in
// the order in which a token meets them. An object is the tensors of one expert
// in the order of their places in the files, without gaps.
func placeModel(ck *checkpoint.Checkpoint) (*place.Model, error) {
	dir := ck.Path()
	m := &place.Model{Fingerprint: ck.Fingerprint(), Dir: dir}
	c := ck.Config()
	for l := range c.Layers {
		if !c.MoE(l) {
			continue
		}
		for e := range c.Experts {
			o, err := expertObject(ck, dir, l, e)
			if err != nil {
				return nil, err
			}
			m.Objects = append(m.Objects, o)
		}
	}
	if len(m.Objects) == 0 {
		return nil, usage("%s has no routed experts: there is nothing to place", dir)
	}
	return m, nil
}

func expertObject(ck *checkpoint.Checkpoint, dir string, layer, e int) (place.Object, error) {
	o := place.Object{Key: ssdio.Key{Layer: int32(layer), Expert: int32(e)}}
	add := func(file string, off, n int64) error {
		rel, err := filepath.Rel(dir, file)
		if err != nil {
			return fmt.Errorf("%s of %s: %w", file, o.Key, err)
		}
		o.Extents = append(o.Extents, place.Extent{File: filepath.ToSlash(rel), Offset: off, Length: n})
		o.Size += n
		return nil
	}
	if file, off, n, ok := ck.ExpertSpan(layer, e); ok {
		return o, add(file, off, n)
	}
	x, err := ck.Expert(layer, e)
	if err != nil {
		return o, err
	}
	for _, m := range []checkpoint.ExpertMatrix{x.W1, x.W3, x.W2} {
		for _, t := range []checkpoint.Tensor{m.Weight, m.Scale} {
			if t.Length == 0 {
				continue
			}
			if err := add(t.File, t.Offset, t.Length); err != nil {
				return o, err
			}
		}
	}
	slices.SortFunc(o.Extents, func(a, b place.Extent) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	return o, nil
}

// openPlaceModel opens the checkpoint of a folder and describes its experts.
func openPlaceModel(flag string) (*place.Model, error) {
	dir := modelDir(flag)
	if dir == "" {
		return nil, usage("the demonstration model lies in the program and is not placed on drives; name a model with --model DIR or $%s", envModel)
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	ck, err := checkpoint.Open(dir)
	if err != nil {
		return nil, err
	}
	m, err := placeModel(ck)
	return m, errors.Join(err, ck.Close())
}

// A remembered is what the program knows of a placement between two runs: which
// drives it is on and where they were. It is a convenience: everything that
// counts stands on the drives.
type remembered struct {
	Version     int      `json:"version"` // 1
	Fingerprint string   `json:"fingerprint"`
	Model       string   `json:"model"`  // folder of the model's own files
	Drives      []string `json:"drives"` // specifications
	IDs         []string `json:"ids"`    // of the drives, in their order
}

func rememberedPath(state, fingerprint string) string {
	return filepath.Join(state, "placement-"+fingerprint[:16]+".json")
}

// remember stores where a placement is.
func remember(set *driveSet, m *place.Model) error {
	r := remembered{Version: 1, Fingerprint: m.Fingerprint, Model: m.Dir, Drives: set.specs}
	for _, d := range set.drives {
		r.IDs = append(r.IDs, d.ID)
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(set.state, 0o755); err != nil {
		return err
	}
	path := rememberedPath(set.state, m.Fingerprint)
	if err := os.WriteFile(path+".new", append(text, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// recall finds the placement of a model, or the last one that was made.
func recall(state, fingerprint string) (*remembered, error) {
	pattern := filepath.Join(state, "placement-*.json")
	if fingerprint != "" {
		pattern = rememberedPath(state, fingerprint)
	}
	names, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, usage("no placement is known; name its drives: deltafin verify --drive DIR --drive DIR")
	}
	slices.SortFunc(names, func(a, b string) int { return modified(b).Compare(modified(a)) })
	text, err := os.ReadFile(names[0])
	if err != nil {
		return nil, err
	}
	var r remembered
	if err := json.Unmarshal(text, &r); err != nil || r.Version != 1 || len(r.Drives) != len(r.IDs) {
		return nil, fmt.Errorf("%s cannot be understood (%v); remove it and name the drives with --drive", names[0], err)
	}
	return &r, nil
}

// modified is when a file was written, long ago if that is not known.
func modified(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// open opens the drives where they were last.
func (r *remembered) open() (*driveSet, error) {
	set, err := openDrives(r.Drives)
	if err != nil {
		return nil, fmt.Errorf("the drives of this placement are not where they were: %w; name them with --drive", err)
	}
	for i, d := range set.drives {
		if d.ID != r.IDs[i] {
			return nil, ofDrive(fmt.Errorf("drive %s (%s) is not the one that was placed on; name the drives with --drive: %w", d.Name, d.Path, place.ErrForeignDrive))
		}
	}
	return set, nil
}

// exists says whether the model's own files are still there.
func (r *remembered) exists() bool {
	_, err := os.Stat(filepath.Join(r.Model, checkpoint.ConfigFile))
	return !errors.Is(err, fs.ErrNotExist)
}

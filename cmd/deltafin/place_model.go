package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/ssdio/place"
)

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
	// The engine's own list: what is placed is what it will ask for.
	cat, err := expert.NewCatalog(ck)
	if err = errors.Join(err, ck.Close()); err != nil {
		return nil, err
	}
	return cat.Model(), nil
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

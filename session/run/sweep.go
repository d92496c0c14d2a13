package run

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deltafin/session"
)

// A Stray is a file in the folder of snapshots that no book knows: a process was
// killed while it wrote it, or before it entered it.
type Stray struct {
	Path  string
	Bytes int64
}

// Sweep removes the strays of a folder of snapshots and returns them; with
// dryRun it only looks. A file of a thread that someone writes at this moment is
// left alone, and so is everything that is not named like a snapshot. A folder
// that does not exist has none.
func Sweep(ctx context.Context, store *session.Store, dir string, dryRun bool) ([]Stray, error) {
	// The order matters: a file that is listed here and entered in the books
	// afterwards is found there, or its thread is held.
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("looking for strays: %w", err)
	}
	books, err := store.Snapshots(ctx, 0)
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, b := range books {
		known[b.Path] = true
	}
	var out []Stray
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		thread, ok := threadOf(e.Name())
		if !ok || known[path] || !e.Type().IsRegular() {
			continue
		}
		_, held, err := store.Holder(ctx, thread)
		if held || err != nil && !errors.Is(err, session.ErrNotFound) {
			if err != nil {
				return out, err
			}
			continue
		}
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil && !dryRun {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return out, fmt.Errorf("removing a stray: %w", err)
		}
		out = append(out, Stray{path, info.Size()})
	}
	return out, nil
}

// threadOf reads the thread from a snapshot's name, whole or half-written (see
// fileName and engine.SaveSnapshot).
func threadOf(name string) (id session.ID, ok bool) {
	temporary := strings.HasPrefix(name, ".")
	name = strings.TrimPrefix(name, ".")
	head, rest, ok := strings.Cut(name, "-")
	if !ok || id.UnmarshalText([]byte(head)) != nil || id == 0 {
		return 0, false
	}
	if temporary {
		return id, strings.Contains(rest, suffix+".")
	}
	return id, strings.HasSuffix(rest, suffix)
}

package engine

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// writeAside writes a file aside, syncs and renames it, so that it is either the
// old one or the whole new one, whatever happens.
func writeAside(path string, fill func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), asidePrefix(path)+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if err := fill(f); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// staleAside is how long nobody writes to the file aside before it is a leftover. A
// writer at work is silent while its file is synced, which takes minutes at most.
const staleAside = time.Hour

// sweepAside removes what killed runs of writeAside have left beside a large file.
func sweepAside(path string, now time.Time) error {
	dir, prefix := filepath.Dir(path), asidePrefix(path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), prefix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err == nil && now.Sub(info.ModTime()) > staleAside {
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("an unfinished file of an earlier run: %w", err)
		}
	}
	return nil
}

// asidePrefix begins the names of files that become path.
func asidePrefix(path string) string { return "." + filepath.Base(path) + "." }

// writeWhole is writeAside for what is in memory. It makes the folder.
func writeWhole(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return writeAside(path, func(w io.Writer) error {
		_, err := w.Write(data)
		return err
	})
}

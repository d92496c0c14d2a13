package engine

import (
	"io"
	"os"
	"path/filepath"
)

// writeAside writes a file aside, syncs and renames it, so that it is either the
// old one or the whole new one, whatever happens.
func writeAside(path string, fill func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
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

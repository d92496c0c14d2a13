package place

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// A disk is all that this package asks of a file system when it writes: small
// enough that tests can fill it up, fail it, or take its power away.
type disk interface {
	// open opens a file for writing and makes it if need be.
	open(path string) (diskFile, error)
	rename(from, to string) error
	// remove removes a file; one that is not there is no error.
	remove(path string) error
	// syncDir makes the names in a folder durable.
	syncDir(dir string) error
}

type diskFile interface {
	io.WriterAt
	io.Closer
	Truncate(size int64) error
	Sync() error
}

// osDisk is the real one.
type osDisk struct{}

func (osDisk) open(path string) (diskFile, error) {
	return os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
}

func (osDisk) rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

func (osDisk) syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil // folders cannot be synced there, names are journalled by NTFS
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// publish makes a file appear under its name whole or not at all.
func publish(d disk, path string, data []byte) error {
	aside := path + ".new"
	f, err := d.open(aside)
	if err != nil {
		return err
	}
	err = f.Truncate(0)
	if err == nil {
		_, err = f.WriteAt(data, 0)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.remove(aside))
	}
	if err := d.rename(aside, path); err != nil {
		return err
	}
	return d.syncDir(filepath.Dir(path))
}

func makeDir(dir string) error { return os.MkdirAll(dir, 0o755) }

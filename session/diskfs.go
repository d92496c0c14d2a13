package session

import (
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// diskFS is the driver's own access to files with one thing set right: the
// driver looks for "no space left" in a way that never finds it (os.File wraps
// the number in a PathError), so that a full disk would come out as an I/O
// error, which must not be told from a failing drive by guessing.
type diskFS struct{ vfs.VFSFilename }

// diskFSName is its name in the driver's table.
const diskFSName = "deltafin"

// registerDiskFS enters it there, once per process: the table is the driver's
// and is shared by all stores.
var registerDiskFS = sync.OnceFunc(func() { vfs.Register(diskFSName, newDiskFS()) })

func newDiskFS() diskFS { return diskFS{vfs.Find("os").(vfs.VFSFilename)} }

// OpenFilename opens a file whose writes report a full disk as such.
func (d diskFS) OpenFilename(name *vfs.Filename, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	f, flags, err := d.VFSFilename.OpenFilename(name, flags)
	if err != nil {
		return nil, flags, full(err)
	}
	if whole, ok := f.(driverFile); ok {
		return diskFile{whole}, flags, nil
	}
	return f, flags, nil
}

// driverFile is everything that the database asks of the driver's files; a
// wrapper that left one out would silently lose it.
type driverFile interface {
	vfs.FileLockState
	vfs.FileHasMoved
	vfs.FileSizeHint
	vfs.FilePersistWAL
	vfs.FilePowersafeOverwrite
	vfs.FileSharedMemory
}

type diskFile struct{ driverFile }

func (f diskFile) WriteAt(p []byte, off int64) (int, error) {
	n, err := f.driverFile.WriteAt(p, off)
	return n, full(err)
}

// Sync may be the first to hear: some file systems choose places only then.
func (f diskFile) Sync(flags vfs.SyncFlag) error { return full(f.driverFile.Sync(flags)) }

func (f diskFile) Truncate(size int64) error { return full(f.driverFile.Truncate(size)) }

func (f diskFile) SizeHint(size int64) error { return full(f.driverFile.SizeHint(size)) }

// full gives err the database's code for a full disk if it is one.
func full(err error) error {
	if err != nil && isDiskFull(err) {
		return vfs.SystemError(err, sqlite3.FULL)
	}
	return err
}

package ssdio

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// deviceOf asks for the device below a folder.
func deviceOf(path string) (Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Device{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Device{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	from := unix.ByteSliceToString(fs.Mntfromname[:])
	return Device{
		// The device number part of the fsid depends on the order of plugging
		// in, so the volume's size and type stand beside it; the marker file is
		// what really identifies a drive.
		ID:     fmt.Sprintf("fsid:%08x:%s:%d", uint32(fs.Fsid.Val[1]), unix.ByteSliceToString(fs.Fstypename[:]), fs.Blocks),
		Name:   filepath.Base(from),
		Number: uint64(uint32(st.Dev)),
	}, nil
}

func spaceOf(path string) (free, total int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0, err
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize), nil
}

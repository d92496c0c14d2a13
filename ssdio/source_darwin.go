package ssdio

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openRaw opens and, if direct is set, turns the cache and read-ahead off for
// this descriptor. macOS takes any offset, but only page-aligned parts of a
// read go past the cache.
func openRaw(path string, direct bool) (osFile, error) {
	fd, err := openFD(path, 0)
	if err != nil || !direct {
		return osFile{fd: fd}, err
	}
	_, err = unix.FcntlInt(uintptr(fd), unix.F_NOCACHE, 1)
	if err != nil {
		return osFile{}, errors.Join(errRefused, unix.Close(fd))
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_RDAHEAD, 0); err != nil {
		return osFile{}, errors.Join(err, unix.Close(fd))
	}
	return osFile{fd: fd, al: Align{Offset: maxAlign, Length: maxAlign, Memory: maxAlign}}, nil
}

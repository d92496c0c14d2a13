//go:build linux || darwin

package session

import (
	"errors"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// Locks of an open file description, not of a process: closing some other
// descriptor of the same file does not drop them, and two stores in one
// process exclude each other.

func byteRange(typ int16, key int64) *unix.Flock_t {
	return &unix.Flock_t{Type: typ, Whence: io.SeekStart, Start: key, Len: 1}
}

func lockByte(f *os.File, key int64) (bool, error) {
	err := unix.FcntlFlock(f.Fd(), ofdSetLock, byteRange(unix.F_WRLCK, key))
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return false, nil
	}
	return err == nil, err
}

func unlockByte(f *os.File, key int64) error {
	return unix.FcntlFlock(f.Fd(), ofdSetLock, byteRange(unix.F_UNLCK, key))
}

func byteLocked(f *os.File, key int64) (bool, error) {
	r := byteRange(unix.F_WRLCK, key)
	if err := unix.FcntlFlock(f.Fd(), ofdGetLock, r); err != nil {
		return false, err
	}
	return r.Type != unix.F_UNLCK, nil
}

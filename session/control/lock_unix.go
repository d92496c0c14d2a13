//go:build !windows

package control

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// lock takes the whole file; it ends when the file is closed.
func lock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

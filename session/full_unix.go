//go:build linux || darwin

package session

import (
	"errors"

	"golang.org/x/sys/unix"
)

// isDiskFull reports whether the operating system said there is no room. The
// database reports some of these as plain I/O errors.
func isDiskFull(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT)
}

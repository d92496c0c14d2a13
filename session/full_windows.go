package session

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isDiskFull reports whether the operating system said there is no room. The
// database reports some of these as plain I/O errors.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL)
}

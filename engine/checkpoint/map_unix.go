//go:build unix

package checkpoint

import (
	"os"

	"golang.org/x/sys/unix"
)

// mapFile maps size bytes of an open file read-only.
func mapFile(f *os.File, size int) ([]byte, func() error, error) {
	data, err := unix.Mmap(int(f.Fd()), 0, size, unix.PROT_READ, unix.MAP_SHARED)
	if err != nil {
		return nil, nil, err
	}
	return data, func() error { return unix.Munmap(data) }, nil
}

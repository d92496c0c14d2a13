//go:build linux || darwin

package ssdio

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// osFile is a file descriptor. Package os is left out: its files would be
// registered with the poller, which cannot wait for disks anyway.
type osFile struct {
	fd int
	al Align
}

func (f *osFile) readv(parts [][]byte, off int64) (int, error) {
	for {
		n, err := preadv(f.fd, parts, off)
		switch {
		case err == nil:
			return n, nil
		case errors.Is(err, unix.EINTR):
			continue
		case isGone(err):
			return 0, fmt.Errorf("%w: %w", ErrGone, err)
		default:
			return 0, err
		}
	}
}

// preadv uses the plain call for one part, which every version of every system
// has.
func preadv(fd int, parts [][]byte, off int64) (int, error) {
	if len(parts) == 1 {
		return unix.Pread(fd, parts[0], off)
	}
	return unix.Preadv(fd, parts, off)
}

// isGone sorts out the errors by which systems say that a device is not there
// any more. A plain EIO is not among them: it may be one bad sector.
func isGone(err error) bool {
	return errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ESTALE) ||
		errors.Is(err, unix.ENOTCONN)
}

func (f *osFile) size() (int64, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return 0, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return 0, errors.New("not a regular file")
	}
	return st.Size, nil
}

func (f *osFile) align() Align { return f.al }

func (f *osFile) close() error { return unix.Close(f.fd) }

func openFD(path string, flags int) (int, error) {
	for {
		fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|flags, 0)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

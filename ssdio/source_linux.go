package ssdio

import (
	"errors"

	"golang.org/x/sys/unix"
)

// openRaw opens with O_DIRECT if direct is set. errRefused says that this file
// system has none.
func openRaw(path string, direct bool) (osFile, error) {
	if !direct {
		fd, err := openFD(path, 0)
		return osFile{fd: fd}, err
	}
	fd, err := openFD(path, unix.O_DIRECT)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return osFile{}, errRefused
	}
	if err != nil {
		return osFile{}, err
	}
	f := osFile{fd: fd, al: Align{Offset: maxAlign, Length: maxAlign, Memory: maxAlign}}
	// The kernel knows how loose the demand on addresses is (512 bytes or less
	// on most drives), since 6.1. Offsets stay on whole pages: a drive reads
	// pages of its own anyway, and blocks larger than 4 KiB do not occur.
	var st unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_DIOALIGN, &st)
	if err == nil && st.Mask&unix.STATX_DIOALIGN != 0 {
		if st.Dio_offset_align == 0 || st.Dio_offset_align > maxAlign {
			return osFile{}, errors.Join(errRefused, unix.Close(fd))
		}
		if st.Dio_mem_align > 0 && st.Dio_mem_align <= maxAlign {
			f.al.Memory = int(st.Dio_mem_align)
		}
	}
	// Some file systems take the flag and refuse the read.
	var probe Scratch
	defer probe.Free()
	p, err := probe.Bytes(maxAlign)
	if err != nil {
		return osFile{}, errors.Join(err, unix.Close(fd))
	}
	if _, err := unix.Pread(fd, p, 0); errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EOPNOTSUPP) {
		return osFile{}, errors.Join(errRefused, unix.Close(fd))
	}
	return f, nil
}

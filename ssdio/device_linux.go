package ssdio

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// deviceOf asks for the device below a folder. Its identity is, in this order,
// the file system's UUID as udev links it, the hardware's name for itself, and
// the number the file system reports: the first is what survives everything.
func deviceOf(path string) (Device, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return Device{}, &os.PathError{Op: "stat", Path: path, Err: err}
	}
	major, minor := unix.Major(st.Dev), unix.Minor(st.Dev)
	d := Device{Number: st.Dev}
	sys := fmt.Sprintf("/sys/dev/block/%d:%d", major, minor)
	if link, err := os.Readlink(sys); err == nil {
		d.Name = filepath.Base(link)
	}
	if id := uuidOf(st.Dev); id != "" {
		d.ID = "uuid:" + id
		return d, nil
	}
	for _, name := range []string{"dm/uuid", "wwid", "device/wwid", "device/serial", "serial"} {
		text, err := os.ReadFile(filepath.Join(sys, name))
		if s := strings.TrimSpace(string(text)); err == nil && s != "" {
			d.ID = name + ":" + s
			return d, nil
		}
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return Device{}, &os.PathError{Op: "statfs", Path: path, Err: err}
	}
	d.ID = fmt.Sprintf("fsid:%x:%08x%08x", fs.Type, uint32(fs.Fsid.Val[0]), uint32(fs.Fsid.Val[1]))
	return d, nil
}

// uuidOf looks for the device among the links that udev makes by UUID.
func uuidOf(dev uint64) string {
	const dir = "/dev/disk/by-uuid"
	links, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	for _, l := range links {
		var st unix.Stat_t
		if unix.Stat(filepath.Join(dir, l.Name()), &st) == nil && st.Rdev == dev {
			return l.Name()
		}
	}
	return ""
}

func spaceOf(path string) (free, total int64, err error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0, err
	}
	return int64(fs.Bavail) * fs.Bsize, int64(fs.Blocks) * fs.Bsize, nil
}

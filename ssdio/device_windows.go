package ssdio

import (
	"fmt"
	"path/filepath"

	"golang.org/x/sys/windows"
)

// deviceOf asks for the volume below a folder; its serial number is written at
// formatting and moves with the disk.
func deviceOf(path string) (Device, error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return Device{}, fmt.Errorf("folder %q: %w", path, err)
	}
	root := make([]uint16, windows.MAX_PATH+1)
	if err := windows.GetVolumePathName(p, &root[0], uint32(len(root))); err != nil {
		return Device{}, fmt.Errorf("volume of %s: %w", path, err)
	}
	var serial uint32
	if err := windows.GetVolumeInformation(&root[0], nil, 0, &serial, nil, nil, nil, 0); err != nil {
		return Device{}, fmt.Errorf("volume of %s: %w", path, err)
	}
	return Device{
		ID:     fmt.Sprintf("serial:%08x", serial),
		Name:   filepath.VolumeName(path),
		Number: uint64(serial),
	}, nil
}

func spaceOf(path string) (free, total int64, err error) {
	p, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, 0, err
	}
	var avail, size uint64
	if err := windows.GetDiskFreeSpaceEx(p, &avail, &size, nil); err != nil {
		return 0, 0, err
	}
	return int64(avail), int64(size), nil
}

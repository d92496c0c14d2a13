package ssdio

import (
	"fmt"
	"os"
	"path/filepath"
)

// A Drive is a folder on one device. It does not change after OpenDrive.
type Drive struct {
	// ID is the drive's identity: 32 hexadecimal digits, the same after a
	// reboot and on another mount point. See [Marker].
	ID string
	// Name is what reports call the drive.
	Name string
	// Path is the folder.
	Path string
	// Device is what the system says about the device below.
	Device Device
	// Marked says that the identity stands in a marker file in the folder. It
	// is false for folders that cannot be written; then the identity is made
	// from the device and the folder's place on it.
	Marked bool
	// FS opens its files.
	FS FS
	// Emulated is the specification of the limits and faults that stand
	// between us and the device, "" for a plain drive. Reports must show it.
	Emulated string
	// Profile is what was measured of it, nil if nothing was.
	Profile *Profile
}

// DriveOptions are the options of OpenDrive.
type DriveOptions struct {
	// Name in reports; default: the device's name, or the folder's.
	Name string
	// ReadOnly: do not write a marker even if the folder could take one.
	ReadOnly bool
	// FS replaces the system's files, for package emulate.
	FS FS
	// Emulated is stored in the drive.
	Emulated string
}

// A Device is what the operating system says about the device below a folder.
// Two folders with the same Number are on the same device and share its speed.
type Device struct {
	ID     string // stable over reboots: file system or hardware identity
	Name   string // nvme0n1, disk4s1, D:
	Number uint64 // of the running system, not stable
}

// OpenDrive looks at the folder and identifies the drive. A folder that has no
// marker yet gets one, unless it cannot be written or o.ReadOnly is set.
func OpenDrive(path string, o *DriveOptions) (*Drive, error) {
	if o == nil {
		o = &DriveOptions{}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", path, err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", path, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("drive %s: not a folder; name the folder that holds the files", path)
	}
	dev, err := deviceOf(path)
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", path, err)
	}
	id, marked, err := identify(path, dev, o.ReadOnly)
	if err != nil {
		return nil, err
	}
	d := &Drive{ID: id, Name: o.Name, Path: path, Device: dev, Marked: marked, FS: o.FS, Emulated: o.Emulated}
	if d.Name == "" {
		d.Name = dev.Name
	}
	if d.Name == "" {
		d.Name = filepath.Base(path)
	}
	if d.FS == nil {
		d.FS = OS(path)
	}
	return d, nil
}

// Space says how many bytes the drive has and how many this user may still
// write.
func (d *Drive) Space() (free, total int64, err error) {
	free, total, err = spaceOf(d.Path)
	if err != nil {
		err = fmt.Errorf("drive %s: free space of %s: %w", d.Name, d.Path, err)
	}
	return free, total, err
}

// present is the cheapest question to which a drive that is gone cannot answer
// yes: is the marker still the one we know?
func (d *Drive) present() error {
	if !d.Marked {
		_, err := os.Stat(d.Path)
		return err
	}
	m, err := readMarker(d.Path)
	if err != nil {
		return err
	}
	if m.ID != d.ID {
		return fmt.Errorf("folder %s now belongs to drive %s, not %s: %w", d.Path, m.ID, d.ID, ErrGone)
	}
	return nil
}

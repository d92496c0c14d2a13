package ssdio

import (
	"errors"
	"fmt"
)

// Errors of a drive.
var (
	// ErrGone: the device or folder does not answer any more (unplugged,
	// unmounted). A Source wraps it around what the system said.
	ErrGone = errors.New("drive is gone")
	// ErrDriveLost: the drive was given up after errors or a stall and no probe
	// has brought it back yet.
	ErrDriveLost = errors.New("drive is lost")
	// ErrStalled: the drive answered nothing for [Options.StallAfter].
	ErrStalled = errors.New("drive stalled")
	// ErrMarker: the marker file of a drive cannot be understood.
	ErrMarker = errors.New("drive marker is damaged")
)

// Errors of a layout.
var (
	// ErrUnknownKey: the layout has no such object.
	ErrUnknownKey = errors.New("no such object in the layout")
	// ErrNoHolder: no drive that could be asked holds these bytes.
	ErrNoHolder = errors.New("no drive holds these bytes")
	// ErrConflict: two statements about one object contradict each other.
	ErrConflict = errors.New("contradicting statements about an object")
	// ErrRange: a byte range lies outside its object, file or buffer.
	ErrRange = errors.New("byte range out of bounds")
)

// Errors of a read.
var (
	// ErrChecksum: the bytes that arrived are not the bytes that were recorded.
	ErrChecksum = errors.New("checksum does not match")
	// ErrShort: the file ended before the range did.
	ErrShort = errors.New("file is shorter than the layout says")
	// ErrStuck: a read has not come back from the kernel within the stated
	// bound; its memory must not be touched.
	ErrStuck = errors.New("read is stuck in the operating system")
	// ErrClosed: the set was closed.
	ErrClosed = errors.New("set is closed")
)

// Errors of a stored profile.
var (
	// ErrProfileDamaged: the file does not parse or its checksum is wrong.
	ErrProfileDamaged = errors.New("drive profile is damaged")
	// ErrProfileForeign: the profile describes another drive or device, or was
	// written by a newer version.
	ErrProfileForeign = errors.New("drive profile is of another drive")
	// ErrProfileStale: the profile is older than the caller allows.
	ErrProfileStale = errors.New("drive profile is too old")
)

// A ReadError says which read failed for good and what was tried. Err is the
// last cause; errors.Is finds ErrChecksum, ErrGone, ErrNoHolder and so on in it.
type ReadError struct {
	Key    Key
	Drive  string // name of the drive that was asked last
	File   string // relative to the drive's folder
	Offset int64  // in the file, bytes
	Length int64  // bytes
	Tries  int    // reads of this range, over all drives
	Err    error
}

// Error implements error.
func (e *ReadError) Error() string {
	where := ""
	if e.File != "" {
		where = fmt.Sprintf(" at offset %d of %s", e.Offset, e.File)
	}
	on := ""
	if e.Drive != "" {
		on = " on drive " + e.Drive
	}
	tries := fmt.Sprintf("%d tries", e.Tries)
	if e.Tries == 1 {
		tries = "1 try"
	}
	return fmt.Sprintf("%s: cannot read %d bytes%s%s after %s: %v", e.Key, e.Length, where, on, tries, e.Err)
}

// Unwrap gives the cause.
func (e *ReadError) Unwrap() error { return e.Err }

package place

import (
	"errors"
	"fmt"
)

// Errors that a caller may decide on; all are wrapped with what, where and what
// to do.
var (
	// ErrModel: the description of the model contradicts itself or its files.
	ErrModel = errors.New("model description does not hold")
	// ErrDamaged: a manifest, pack or journal does not parse or its checksum is
	// wrong.
	ErrDamaged = errors.New("file is damaged")
	// ErrNewer: a manifest, pack or journal was written by a newer version of
	// this program.
	ErrNewer = errors.New("file was written by a newer version of this program")
	// ErrForeignDrive: a manifest or pack belongs to another drive than the one
	// it was found on.
	ErrForeignDrive = errors.New("file belongs to another drive")
	// ErrNoManifest: nothing was placed on the drive yet.
	ErrNoManifest = errors.New("nothing is placed on this drive")
	// ErrUnfinished: a placement was begun on the drive and not finished.
	ErrUnfinished = errors.New("the placement on this drive is not finished")
	// ErrBusy: another process is placing or repairing on the drive.
	ErrBusy = errors.New("another process is working on this drive")
	// ErrOccupied: the drive holds a placement that was not asked for.
	ErrOccupied = errors.New("the drive holds another placement")
	// ErrReadBack: the drive gave back other bytes than were written to it.
	ErrReadBack = errors.New("drive did not keep what was written")
	// ErrReadOnly: packs were to be written to a folder that cannot be written.
	ErrReadOnly = errors.New("the drive's folder cannot be written")
	// ErrPlan: a plan does not fit the model, the drives or the limits.
	ErrPlan = errors.New("plan does not hold")
)

// A ForeignModelError says that a file on a drive is of another model than the
// one asked for. Both are fingerprints in hexadecimal.
type ForeignModelError struct {
	File       string
	Have, Want string
}

// Error implements error.
func (e *ForeignModelError) Error() string {
	return fmt.Sprintf("%s belongs to the model with fingerprint %s…, asked for is %s…; name the drives that hold this model, or place it on these with --replace",
		e.File, short(e.Have), short(e.Want))
}

// short is enough of a fingerprint for people.
func short(hex string) string { return hex[:min(12, len(hex))] }

// A RoomError says that drives are too small for a model. All sizes are bytes.
type RoomError struct {
	Need   int64 // the model, with padding
	Have   int64 // what the drives could take
	Drives []RoomOf
}

// RoomOf is what one drive could take.
type RoomOf struct {
	Name string
	Room int64
}

// Error implements error.
func (e *RoomError) Error() string {
	text := fmt.Sprintf("the drives are too small: the model needs %s, they can take %s, %s are missing (", size(e.Need), size(e.Have), size(e.Need-e.Have))
	for i, d := range e.Drives {
		if i > 0 {
			text += ", "
		}
		text += d.Name + " " + size(d.Room)
	}
	return text + "); free some space, lower the reserve, or add a drive, for instance the model's own folder"
}

// A SpaceError says that a drive filled up while it was written to.
type SpaceError struct {
	Drive      string
	Left, Free int64 // bytes still to be written to it and free on it
	Done, All  int   // objects that are safe there, and all
	Err        error
}

// Error implements error.
func (e *SpaceError) Error() string {
	return fmt.Sprintf("drive %s is full: %s are still to be written, %s are free (%v). %d of its %d objects are safe and the original files untouched; free %s there and give the same command again, it goes on from here",
		e.Drive, size(e.Left), size(e.Free), e.Err, e.Done, e.All, size(max(e.Left-e.Free, 0)))
}

// Unwrap gives the system's error.
func (e *SpaceError) Unwrap() error { return e.Err }

// size prints bytes for people, in decimal units as drives are sold in.
func size(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), 0
	for v >= 999.5 && unit < 5 {
		v /= 1000
		unit++
	}
	if v < 9.95 {
		return fmt.Sprintf("%.1f %s", v, [...]string{"B", "kB", "MB", "GB", "TB", "PB"}[unit])
	}
	return fmt.Sprintf("%.0f %s", v, [...]string{"B", "kB", "MB", "GB", "TB", "PB"}[unit])
}

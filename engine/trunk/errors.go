package trunk

import (
	"errors"
	"fmt"

	"deltafin/ssdio"
)

// An Error is a layer that could not be had. Nothing of it was used. Err wraps an
// *ssdio.ReadError, ssdio.ErrStuck or ssdio.ErrClosed. The next pass asks again.
type Error struct {
	Layer int    // -1: the head
	Drive string // the drive that was asked last, "" if none was
	Err   error
}

// Error says which layer, on which drive, and what happened.
func (e *Error) Error() string {
	what := fmt.Sprintf("weights of layer %d", e.Layer)
	if e.Layer < 0 {
		what = "output weights"
	}
	return fmt.Sprintf("%s: %v", what, e.Err) // a *ssdio.ReadError names drive, file and offset
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func (c *Catalog) newError(unit int, err error) *Error {
	e := &Error{Layer: unit, Err: err}
	if unit == c.Head() {
		e.Layer = -1
	}
	var read *ssdio.ReadError
	if errors.As(err, &read) {
		e.Drive = read.Drive
	}
	return e
}

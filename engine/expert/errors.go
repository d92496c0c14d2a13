package expert

import (
	"errors"
	"fmt"

	"deltafin/ssdio"
)

// Errors of a caller; test with errors.Is.
var (
	// ErrOpen: a layer is open already; End comes first.
	ErrOpen = errors.New("a layer's experts are in use")
	// ErrUnknown: the model has no such expert.
	ErrUnknown = errors.New("no such expert")
	errEnded   = errors.New("the layer was ended")
)

// An Error is an expert that could not be had. Nothing of it was used. Err wraps
// an *ssdio.ReadError, the cause of a cancelled context, or ssdio.ErrClosed.
type Error struct {
	Layer, Expert int
	Drive         string // the drive that was asked last, "" if none was
	Err           error
}

// Error says which expert, on which drive, and what happened.
func (e *Error) Error() string {
	var read *ssdio.ReadError
	if errors.As(e.Err, &read) {
		return e.Err.Error() // names layer, expert, drive, file and offset
	}
	return fmt.Sprintf("layer %d expert %d: %v", e.Layer, e.Expert, e.Err)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Err }

func newError(key ssdio.Key, err error) *Error {
	e := &Error{Layer: int(key.Layer), Expert: int(key.Expert), Err: err}
	var read *ssdio.ReadError
	if errors.As(err, &read) {
		e.Drive = read.Drive
	}
	return e
}

// A BudgetError is a budget too small to run at all. Sizes are bytes.
type BudgetError struct {
	Budget int64
	Need   int64 // the least that works
	Slot   int64 // one expert with its slack
	TopK   int   // experts of one layer of one token
	Spare  int   // slots for reads that have to be repeated elsewhere
}

// Error names the numbers.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("an expert cache of %d bytes is too small: one layer of one token needs %d experts of %d bytes, and reads in flight %d more: give at least %d bytes",
		e.Budget, e.TopK, e.Slot, e.Spare, e.Need)
}

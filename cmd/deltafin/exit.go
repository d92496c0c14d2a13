package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"

	"deltafin/engine"
	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/memory"
	"deltafin/session"
	threads "deltafin/session/run"
	"deltafin/ssdio"
)

// The exit codes. Scripts may rely on them.
const (
	exitDone        = 0
	exitError       = 1   // something failed; the line on standard error says what
	exitUsage       = 2   // the command line asks for what cannot be
	exitPaused      = 3   // stopped on purpose and resumable
	exitNoModel     = 4   // no model there, or not all of its files
	exitDrive       = 5   // a drive failed or is lost
	exitMemory      = 6   // the memory does not suffice
	exitInterrupted = 130 // Ctrl+C
)

// errReported is the error of a command that has already said everything.
var errReported = errors.New("reported")

// A usageError is a command line that asks for what cannot be.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

func usage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// exitCode maps an error to the program's exit code.
func exitCode(ctx context.Context, err error) int {
	var use *usageError
	var eng *engine.UsageError
	var long *engine.ContextError
	var id *engine.IDError
	switch {
	case err == nil:
		return exitDone
	case errors.Is(err, errPaused):
		return exitPaused // even after Ctrl+C: the answer can go on
	case ctx.Err() != nil:
		return exitInterrupted
	case errors.As(err, &use), errors.As(err, &eng), errors.As(err, &long), errors.As(err, &id), errors.Is(err, engine.ErrEmptyPrompt),
		errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrAmbiguous), errors.Is(err, session.ErrInvalid), errors.Is(err, threads.ErrNothing),
		strings.HasPrefix(err.Error(), "unknown command"):
		return exitUsage
	case errors.As(err, new(*driveError)), errors.As(err, new(*ssdio.ReadError)), errors.As(err, new(*expert.Error)):
		return exitDrive
	case errors.Is(err, session.ErrFull), errors.Is(err, session.ErrReadOnly):
		return exitError // before fs.ErrNotExist: a folder of threads is no model
	case errors.Is(err, checkpoint.ErrNotCheckpoint), errors.Is(err, checkpoint.ErrMissingShard), errors.Is(err, fs.ErrNotExist):
		return exitNoModel
	case errors.Is(err, syscall.ENOMEM), errors.As(err, new(*expert.BudgetError)), errors.As(err, new(*memory.Error)), errors.Is(err, memory.ErrUnknown):
		return exitMemory
	}
	return exitError
}

// oneLine keeps an error to the one line that a terminal and a log expect.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

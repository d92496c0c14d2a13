package session

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Opening.
var (
	// ErrNewerSchema: the file was written by a later version of the program.
	ErrNewerSchema = errors.New("the thread database is newer than this program")
	// ErrForeign: the file is a database of some other program.
	ErrForeign = errors.New("not a thread database")
	// ErrReadOnly: the folder or file cannot be written, or the store was
	// opened for reading.
	ErrReadOnly = errors.New("threads cannot be written")
	// ErrClosed: the store, writer or answer was closed before the call.
	ErrClosed = errors.New("already closed")
)

// Looking things up and changing them.
var (
	// ErrNotFound: no thread, turn, branch or item of that name.
	ErrNotFound = errors.New("not found")
	// ErrAmbiguous: a short id fits several things; see AmbiguousError.
	ErrAmbiguous = errors.New("ambiguous id")
	// ErrExists: a branch or id of that name is already there.
	ErrExists = errors.New("already there")
	// ErrInvalid: an argument makes no sense; the text says which.
	ErrInvalid = errors.New("invalid argument")
	// ErrLocked: another writer holds the thread; see LockedError.
	ErrLocked = errors.New("thread is being written elsewhere")
	// ErrNoData: nothing was measured yet that an estimate could rest on.
	ErrNoData = errors.New("nothing measured yet")
)

// The machine.
var (
	// ErrFull: the disk (or a quota) is full. Nothing was lost; the same call
	// succeeds when there is room.
	ErrFull = errors.New("the disk with the threads is full")
	// ErrBusy: another process kept the database locked for too long.
	ErrBusy = errors.New("the thread database is busy")
	// ErrCorrupt: bytes on the disk are not what was written.
	ErrCorrupt = errors.New("the thread database is damaged")
	// ErrIO: the operating system failed to read, write or sync.
	ErrIO = errors.New("the thread database could not be read or written")
)

// A Candidate is one of several things that a short id may mean.
type Candidate struct {
	ID    ID
	Label string // title of a thread, first words of a turn
}

// AmbiguousError lists what a short id may mean. It is an ErrAmbiguous.
type AmbiguousError struct {
	Prefix     string
	Candidates []Candidate // at most 10
}

// Error names every candidate, one a line.
func (e *AmbiguousError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q fits %d or more:", e.Prefix, len(e.Candidates))
	for _, c := range e.Candidates {
		fmt.Fprintf(&b, "\n  %s  %s", c.ID, c.Label)
	}
	return b.String()
}

// Is reports that e is an ErrAmbiguous.
func (e *AmbiguousError) Is(target error) bool { return target == ErrAmbiguous }

// An Owner says who writes a thread.
type Owner struct {
	PID     int
	TTY     string // terminal, "" when unknown
	Host    string
	Started time.Time
}

// String gives the owner as a message names it.
func (o Owner) String() string {
	if o.PID == 0 {
		return "another process"
	}
	s := fmt.Sprintf("pid %d, started %s", o.PID, o.Started.Format("15:04"))
	if o.TTY != "" {
		s += " on " + o.TTY
	}
	return s
}

// LockedError names the writer that holds a thread. It is an ErrLocked.
type LockedError struct {
	Thread ID
	Owner  Owner
}

// Error names the owner.
func (e *LockedError) Error() string {
	return fmt.Sprintf("another deltafin (%s) writes thread %s: watch it there, or wait until it has finished", e.Owner, e.Thread.Short())
}

// Is reports that e is an ErrLocked.
func (e *LockedError) Is(target error) bool { return target == ErrLocked }

// wrap turns a database error into one of ours, saying what was being done.
func (s *Store) wrap(doing string, err error) error {
	if err == nil {
		return nil
	}
	var code sqlite3.ErrorCode
	if !errors.As(err, &code) {
		return fmt.Errorf("%s: %w", doing, err)
	}
	var ext sqlite3.ExtendedErrorCode
	errors.As(err, &ext)
	kind, hint := ErrIO, ""
	switch {
	case code == sqlite3.FULL || ext == sqlite3.IOERR_SHMSIZE || isDiskFull(err):
		// SHMSIZE: the log's index could not grow by its 32 KB.
		kind, hint = ErrFull, "nothing is lost; free some space and go on"
	case ext == sqlite3.IOERR_DATA || ext == sqlite3.IOERR_CORRUPTFS || code == sqlite3.CORRUPT:
		kind, hint = ErrCorrupt, "other threads may still open; `deltafin doctor` says which parts are whole"
	case code == sqlite3.NOTADB:
		kind, hint = ErrForeign, "it is damaged at its start or belongs to another program; move it away to begin anew"
	case code == sqlite3.BUSY || code == sqlite3.LOCKED:
		kind, hint = ErrBusy, "another process holds it; try again"
	case code == sqlite3.READONLY || code == sqlite3.PERM || errors.Is(err, fs.ErrPermission):
		kind, hint = ErrReadOnly, "make its folder writable or name another one with DELTAFIN_HOME"
	case code == sqlite3.ERROR || code == sqlite3.CONSTRAINT:
		// The statements are always the same: what they speak of is not as they
		// left it.
		kind, hint = ErrCorrupt, "its structure is not what this program made; `deltafin doctor` says more"
	}
	return &storeError{kind: kind, path: s.path, doing: doing, hint: hint, err: err}
}

// storeError is a failure of the database file itself.
type storeError struct {
	kind              error
	path, doing, hint string
	err               error
}

func (e *storeError) Error() string {
	s := fmt.Sprintf("%s: %v (%s: %v)", e.doing, e.kind, e.path, e.err)
	if e.hint != "" {
		s += "; " + e.hint
	}
	return s
}

func (e *storeError) Unwrap() []error { return []error{e.kind, e.err} }

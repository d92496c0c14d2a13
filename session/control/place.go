package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"deltafin/session"
)

// Names of the files in the folder.
const (
	socketName = "socket"
	lockName   = "owner.lock"
)

// ErrNotRunning: no process owns the folder, so there is nothing to talk to.
var ErrNotRunning = errors.New("no deltafin is running here")

// A HeldError is a folder that another process owns.
type HeldError struct {
	Owner session.Owner // zero when it has not yet said who it is
}

// Error names the owner.
func (e *HeldError) Error() string {
	if e.Owner.PID == 0 {
		return "another deltafin holds this engine"
	}
	return fmt.Sprintf("another deltafin (%s) holds this engine", e.Owner)
}

// A PathError is a folder whose name is too long for a socket in it.
type PathError struct {
	Path  string
	Limit int // bytes that the system takes
}

// Error says what to do.
func (e *PathError) Error() string {
	return fmt.Sprintf("the path of the control socket has %d bytes, this system takes %d: %s; set DELTAFIN_HOME to a folder with a shorter name",
		len(e.Path), e.Limit, e.Path)
}

// pathLimit is the room for a socket's path, its final zero taken off.
func pathLimit(goos string) int {
	if goos == "linux" || goos == "windows" {
		return 107
	}
	return 103 // darwin and the BSDs
}

func socketPath(dir string) (string, error) {
	path := filepath.Join(dir, socketName)
	if limit := pathLimit(runtime.GOOS); len(path) > limit {
		return "", &PathError{path, limit}
	}
	return path, nil
}

// An Ownership is the right to run the engine for a folder. It ends with Close or
// with the process.
type Ownership struct {
	dir   string
	owner session.Owner
	lock  *os.File
	srv   *Server
}

// Acquire takes the ownership of a folder, which is made as needed. A leftover of
// a dead owner is in nobody's way. If another process owns it, the error is a
// *HeldError.
func Acquire(dir string, who session.Owner) (*Ownership, error) {
	if _, err := socketPath(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder of the control socket: %w", err)
	}
	// A folder from elsewhere may be open to others; between the making of a socket
	// and its chmod that would let them in.
	if err := os.Chmod(dir, 0o700); err != nil {
		return nil, fmt.Errorf("closing the folder of the control socket to others: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the engine: %w", err)
	}
	ok, err := lock(f)
	if err != nil {
		err = fmt.Errorf("locking %s: %w", f.Name(), err)
	} else if !ok {
		err = &HeldError{readOwner(f)}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	o := &Ownership{dir: dir, owner: who, lock: f}
	if err := o.sign(); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return o, nil
}

// sign writes who the owner is, for messages of others.
func (o *Ownership) sign() error {
	text, err := json.Marshal(o.owner)
	if err != nil {
		return err
	}
	if err := o.lock.Truncate(0); err != nil {
		return fmt.Errorf("signing %s: %w", o.lock.Name(), err)
	}
	if _, err := o.lock.WriteAt(text, 0); err != nil {
		return fmt.Errorf("signing %s: %w", o.lock.Name(), err)
	}
	return nil
}

// readOwner reads the signature. One that is half written is nobody's.
func readOwner(f *os.File) session.Owner {
	buf := make([]byte, 4096)
	n, _ := f.ReadAt(buf, 0) // io.EOF is the rule
	var who session.Owner
	if json.Unmarshal(buf[:n], &who) != nil {
		return session.Owner{}
	}
	return who
}

// Serve begins to answer on the socket.
func (o *Ownership) Serve(job Job) (*Server, error) {
	path, err := socketPath(o.dir)
	if err != nil {
		return nil, err
	}
	// The lock is ours: whatever lies here belongs to nobody who lives.
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the control socket of a dead owner: %w", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("opening the control socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("closing the control socket to others: %w", err), l.Close())
	}
	o.srv = newServer(l, job, o.owner)
	return o.srv, nil
}

// Close ends the server, removes the socket and gives the ownership back.
func (o *Ownership) Close() error {
	var err error
	if o.srv != nil {
		err = o.srv.Close()
	}
	return errors.Join(err, o.lock.Close()) // the lock goes with its file
}

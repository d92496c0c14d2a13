package place

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// LockName is the file whose lock means that someone works on a drive. The
// lock is the system's: it ends with the process, however that ended. The file
// stays, because removing it would let two processes lock two different files.
const LockName = "deltafin-place.lock"

// lockDrive takes the lock of a folder or says who has it.
func lockDrive(dir, name string) (*os.File, error) {
	path := filepath.Join(dir, LockName)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", name, err)
	}
	ok, err := lockFile(f)
	if err != nil || !ok {
		who := holder(f)
		_ = f.Close() // nothing was written
		if err != nil {
			return nil, fmt.Errorf("drive %s: lock %s: %w", name, path, err)
		}
		return nil, fmt.Errorf("drive %s (%s): %w%s; wait for it to end, or stop it", name, dir, ErrBusy, who)
	}
	// Who holds it is for messages only: the lock decides.
	text := fmt.Sprintf("%-20d\n", os.Getpid())
	if _, err := f.WriteAt([]byte(text), pidAt); err != nil {
		return nil, errors.Join(fmt.Errorf("drive %s: %s: %w", name, path, err), f.Close())
	}
	return f, nil
}

// pidAt is where the process number stands: behind the byte that is locked,
// which on Windows nobody else can read.
const pidAt = 1

func holder(f *os.File) string {
	text, err := io.ReadAll(io.NewSectionReader(f, pidAt, 20))
	if pid := strings.TrimSpace(string(text)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

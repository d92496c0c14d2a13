package session

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"
)

// A lockFile gives out one exclusive lock per thread, between processes and
// within one. The lock on thread k is the operating system's lock on byte k of
// a file that stays empty: it ends with the process that held it, however that
// process ended, so no clock or heartbeat has to decide who is still alive.
type lockFile struct {
	f *os.File

	mu   sync.Mutex // guards below
	held map[int64]bool
}

// openLockFile opens or creates the file.
func openLockFile(path string) (*lockFile, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	return &lockFile{f: f, held: map[int64]bool{}}, nil
}

// acquire takes the lock of a thread and reports whether it was free.
func (l *lockFile) acquire(key int64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] {
		return false, nil
	}
	ok, err := lockByte(l.f, key)
	if ok {
		l.held[key] = true
	}
	return ok, err
}

// openingKey is the lock of those who open the store. No thread has it: keys
// begin with 1.
const openingKey = 0

// wait takes a lock, trying until it is free.
func (l *lockFile) wait(ctx context.Context, key int64) error {
	retry := time.NewTicker(5 * time.Millisecond)
	defer retry.Stop()
	late := time.NewTimer(busyTimeout)
	defer late.Stop()
	for {
		if ok, err := l.acquire(key); ok || err != nil {
			return err
		}
		select {
		case <-retry.C:
		case <-late.C:
			return fmt.Errorf("%w: another process has been opening it for %v", ErrBusy, busyTimeout)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// release gives the lock of a thread back.
func (l *lockFile) release(key int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, key)
	return unlockByte(l.f, key)
}

// taken reports whether anyone holds the lock of a thread.
func (l *lockFile) taken(key int64) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held[key] {
		return true, nil
	}
	return byteLocked(l.f, key)
}

func (l *lockFile) close() error { return l.f.Close() }

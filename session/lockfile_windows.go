package session

import (
	"errors"
	"os"
	"runtime"

	"golang.org/x/sys/windows"
)

func overlapped(key int64) *windows.Overlapped {
	return &windows.Overlapped{Offset: uint32(key), OffsetHigh: uint32(key >> 32)}
}

func tryLock(f *os.File, key int64, flags uint32) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), flags|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, overlapped(key))
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) || errors.Is(err, windows.ERROR_IO_PENDING) {
		return false, nil
	}
	return err == nil, err
}

// lockByte tries a few times: someone who only looks (byteLocked) holds a
// shared lock for an instant.
func lockByte(f *os.File, key int64) (ok bool, err error) {
	for range 8 {
		if ok, err = tryLock(f, key, windows.LOCKFILE_EXCLUSIVE_LOCK); ok || err != nil {
			break
		}
		runtime.Gosched()
	}
	return ok, err
}

func unlockByte(f *os.File, key int64) error {
	return windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, overlapped(key))
}

func byteLocked(f *os.File, key int64) (bool, error) {
	ok, err := tryLock(f, key, 0)
	if ok {
		err = unlockByte(f, key)
	}
	return !ok, err
}

package ssdio

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// giveBack marks the pages of mem as free for others. Unlike MADV_DONTNEED, which
// macOS takes as a hint about order, this lowers the footprint at once.
func giveBack(mem []byte) error {
	if err := unix.Madvise(mem, unix.MADV_FREE_REUSABLE); err != nil {
		return fmt.Errorf("give %d bytes of memory back: %w", len(mem), err)
	}
	return nil
}

// takeAgain counts the pages of mem as this program's again.
func takeAgain(mem []byte) error {
	if err := unix.Madvise(mem, unix.MADV_FREE_REUSE); err != nil {
		return fmt.Errorf("take %d bytes of memory: %w", len(mem), err)
	}
	return nil
}

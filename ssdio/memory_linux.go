package ssdio

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// adviseHuge asks for large pages. A refusal (no support in this kernel) costs
// speed only, so it is not an error. Weights are also left out of core dumps.
func adviseHuge(mem []byte) {
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP)
}

// giveBack returns the pages of mem to the system at once; they are zero when
// touched again. A large page that is only in part in mem is split.
func giveBack(mem []byte) error {
	if err := unix.Madvise(mem, unix.MADV_DONTNEED); err != nil {
		return fmt.Errorf("give %d bytes of memory back: %w", len(mem), err)
	}
	return nil
}

// takeAgain needs nothing: pages come when first written.
func takeAgain([]byte) error { return nil }

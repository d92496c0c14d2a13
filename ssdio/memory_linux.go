package ssdio

import "golang.org/x/sys/unix"

// adviseHuge asks for large pages. A refusal (no support in this kernel) costs
// speed only, so it is not an error. Weights are also left out of core dumps.
func adviseHuge(mem []byte) {
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	_ = unix.Madvise(mem, unix.MADV_DONTDUMP)
}

package main

import "golang.org/x/sys/unix"

// peakResident is the most memory that was resident, in bytes.
func peakResident() (int64, bool) {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return u.Maxrss * 1024, true // the kernel counts in KiB
}

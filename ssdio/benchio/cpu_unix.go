//go:build unix

package benchio

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time that this process has used, user and system.
func cpuTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

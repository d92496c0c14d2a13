package memory

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// Read asks the system. macOS has no number of free bytes that could be had without
// its Mach interfaces; kern.memorystatus_level is the percentage that the system
// itself acts on, and kern.memorystatus_vm_pressure_level its verdict: 1 is normal.
func Read() (Reading, error) {
	total, err := unix.SysctlUint64("hw.memsize")
	if err != nil {
		return Reading{}, fmt.Errorf("%w (hw.memsize: %v)", ErrUnknown, err)
	}
	level, err := unix.SysctlUint32("kern.memorystatus_level")
	if err != nil || level > 100 {
		return Reading{}, fmt.Errorf("%w (kern.memorystatus_level is %d: %v)", ErrUnknown, level, err)
	}
	r := Reading{Total: int64(total), Available: int64(total) / 100 * int64(level), How: "kern.memorystatus_level"}
	// What the process holds now is what the Go runtime has taken: no weights are
	// loaded yet when it matters, and later it only explains a notice.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	r.Own = int64(m.Sys - m.HeapReleased)
	r.Resident = r.Own
	if p, err := unix.SysctlUint32("kern.memorystatus_vm_pressure_level"); err == nil && p > 1 {
		r.Pressure = 100
	}
	return r, nil
}

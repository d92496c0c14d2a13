package memory

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// memoryStatus is MEMORYSTATUSEX.
type memoryStatus struct {
	length                                                              uint32
	load                                                                uint32
	totalPhys, availPhys, totalPage, availPage, totalVirt, availVirt, _ uint64
}

// processMemory is PROCESS_MEMORY_COUNTERS.
type processMemory struct {
	size, faults                                                 uint32
	peakResident, resident                                       uintptr
	quotaPeakPaged, quotaPaged, quotaPeakNonPaged, quotaNonPaged uintptr
	committed, peakCommitted                                     uintptr
}

// Read asks the system. Windows names no pressure; what is available says it.
func Read() (Reading, error) {
	kernel := windows.NewLazySystemDLL("kernel32.dll")
	m := memoryStatus{}
	m.length = uint32(unsafe.Sizeof(m))
	if ok, _, err := kernel.NewProc("GlobalMemoryStatusEx").Call(uintptr(unsafe.Pointer(&m))); ok == 0 {
		return Reading{}, fmt.Errorf("%w (GlobalMemoryStatusEx: %v)", ErrUnknown, err)
	}
	r := Reading{Total: int64(m.totalPhys), Available: int64(m.availPhys), How: "GlobalMemoryStatusEx"}
	p := processMemory{}
	p.size = uint32(unsafe.Sizeof(p))
	if ok, _, _ := kernel.NewProc("K32GetProcessMemoryInfo").Call(uintptr(windows.CurrentProcess()), uintptr(unsafe.Pointer(&p)), uintptr(p.size)); ok != 0 {
		r.Resident, r.Own = int64(p.resident), int64(min(p.resident, p.committed))
	}
	return r, nil
}

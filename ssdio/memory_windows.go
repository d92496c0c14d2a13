package ssdio

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/windows"
)

// mapMemory gives n bytes of zeroed memory on a page boundary outside the heap.
func mapMemory(n int) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE|windows.MEM_COMMIT, windows.PAGE_READWRITE)
	if err != nil {
		return nil, fmt.Errorf("allocate %d bytes of memory: %w", n, err)
	}
	// The address comes from outside the heap, so the collector never moves or
	// frees it; the detour through a pointer to at is what vet accepts.
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n), nil
}

func unmapMemory(mem []byte) error {
	return windows.VirtualFree(addressOf(mem), 0, windows.MEM_RELEASE)
}

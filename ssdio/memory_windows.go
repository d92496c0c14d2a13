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

// reserveMemory sets addresses aside that have no memory behind them.
func reserveMemory(n int) ([]byte, error) {
	at, err := windows.VirtualAlloc(0, uintptr(n), windows.MEM_RESERVE, windows.PAGE_NOACCESS)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of addresses: %w", n, err)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n), nil
}

func unmapMemory(mem []byte) error {
	return windows.VirtualFree(addressOf(mem), 0, windows.MEM_RELEASE)
}

// giveBack returns the pages of mem to the system; the addresses stay reserved and
// must not be touched until takeAgain.
func giveBack(mem []byte) error {
	if err := windows.VirtualFree(addressOf(mem), uintptr(len(mem)), windows.MEM_DECOMMIT); err != nil {
		return fmt.Errorf("give %d bytes of memory back: %w", len(mem), err)
	}
	return nil
}

// takeAgain asks for pages anew, zeroed.
func takeAgain(mem []byte) error {
	if _, err := windows.VirtualAlloc(addressOf(mem), uintptr(len(mem)), windows.MEM_COMMIT, windows.PAGE_READWRITE); err != nil {
		return fmt.Errorf("allocate %d bytes of memory: %w", len(mem), err)
	}
	return nil
}

//go:build unix

package ssdio

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// mapMemory gives n bytes of zeroed memory on a page boundary outside the heap.
func mapMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of memory: %w", n, err)
	}
	return mem, nil
}

// reserveMemory sets addresses aside that have no memory behind them.
func reserveMemory(n int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, n, unix.PROT_NONE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("reserve %d bytes of addresses: %w", n, err)
	}
	return mem, nil
}

func unmapMemory(mem []byte) error { return unix.Munmap(mem) }

package ssdio

import "unsafe"

// addressOf is the address of the first byte, 0 for no bytes.
func addressOf(p []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(p))) }

//go:build !linux

package ssdio

// adviseHuge does nothing: macOS chooses page sizes itself, Windows gives large
// pages only to accounts with a special right.
func adviseHuge([]byte) {}

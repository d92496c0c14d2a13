//go:build !noasm

package kernel

// pauseTurn waits for about a tenth of a microsecond in a way that leaves the
// core to its other thread. Plain Go: nothing.
func pauseTurn()

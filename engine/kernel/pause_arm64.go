//go:build !noasm

package kernel

// pauseTurn waits for some ten nanoseconds (isb drains the pipeline; yield is a
// no-op on most cores). Plain Go: nothing.
func pauseTurn()

//go:build noasm || !(amd64 || arm64)

package kernel

import "runtime"

// pauseTurn lets another goroutine run. Without the instruction for it a watch
// is as long as the scheduler makes it.
func pauseTurn() { runtime.Gosched() }

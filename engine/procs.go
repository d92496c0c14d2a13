package engine

import (
	"runtime"
	"sync"
)

// A goroutine that comes back from a read needs a processor of the Go scheduler
// before it can send the next one. With as many as there are cores, and the
// arithmetic on all of them, it would wait for up to ten milliseconds, and the
// drive with it: a tenth to a fifth of the throughput. So while a model is read
// from drives the scheduler has some more than the arithmetic uses, and the system
// shares out the cores.

// readProcs is how many more: about as many reads come back at once.
const readProcs = 8

// procs counts the engines that read. The setting belongs to the process, so the
// count does too.
var procs struct {
	mu      sync.Mutex // guards below
	readers int
	cores   int // setting without readers
}

// cores is how many cores the process is to use.
func cores() int {
	procs.mu.Lock()
	defer procs.mu.Unlock()
	if procs.readers > 0 {
		return procs.cores
	}
	return runtime.GOMAXPROCS(0)
}

// readersCome makes room for reads, readersGo takes it back.
func readersCome() {
	procs.mu.Lock()
	defer procs.mu.Unlock()
	if procs.readers++; procs.readers == 1 {
		procs.cores = runtime.GOMAXPROCS(0)
		runtime.GOMAXPROCS(procs.cores + readProcs)
	}
}

func readersGo() {
	procs.mu.Lock()
	defer procs.mu.Unlock()
	if procs.readers--; procs.readers == 0 {
		runtime.GOMAXPROCS(procs.cores)
	}
}

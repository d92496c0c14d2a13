//go:build race

package kernel

import (
	"runtime"
	"unsafe"
)

// raceProduct tells the race detector what the assembly of a product reads and
// writes, which it cannot see by itself.
func raceProduct(y []float32, ldy, lo, hi int, x []float32, ldx, cols, n int) {
	for i := range n {
		raceWrite(y[i*ldy+lo : i*ldy+hi])
		raceRead(x[i*ldx : i*ldx+cols])
	}
}

func raceWrite(y []float32) {
	if len(y) > 0 {
		runtime.RaceWriteRange(unsafe.Pointer(&y[0]), 4*len(y))
	}
}

func raceRead(x []float32) {
	if len(x) > 0 {
		runtime.RaceReadRange(unsafe.Pointer(&x[0]), 4*len(x))
	}
}

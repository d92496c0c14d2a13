package kernel

import (
	"testing"
	"unsafe"
)

// What the kernels read most begins on a cache line, whatever the allocator gives.
func TestFloatsBeginOnALine(t *testing.T) {
	var s Scratch
	for n := range 300 {
		for _, f := range [][]float32{Floats(n), s.floats(n)} {
			if len(f) != n {
				t.Fatalf("%d floats wanted, %d got", n, len(f))
			}
			if p := uintptr(unsafe.Pointer(unsafe.SliceData(f))); n > 0 && p%lineBytes != 0 {
				t.Errorf("%d floats begin %d bytes behind a line", n, p%lineBytes)
			}
		}
	}
	for name, table := range map[string][]byte{"bytes": mxBytes(), "floats": mxFloats()} {
		if p := uintptr(unsafe.Pointer(&table[0])); p%lineBytes != 0 {
			t.Errorf("the table of %s begins %d bytes behind a line", name, p%lineBytes)
		}
	}
}

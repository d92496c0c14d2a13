package ssdio

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestParkingGivesMemoryBack asks the system which pages are there.
func TestParkingGivesMemoryBack(t *testing.T) {
	const slots = 16
	a, err := NewArena(1<<20, slots, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	a.Populate()
	resident := func() (n int64) {
		t.Helper()
		pages := make([]byte, len(a.mem)/4096)
		_, _, errno := unix.Syscall(unix.SYS_MINCORE, addressOf(a.mem), uintptr(len(a.mem)), addressOf(pages))
		if errno != 0 {
			t.Skipf("the system does not say what is in memory: %v", errno)
		}
		for _, p := range pages {
			n += int64(p&1) * 4096
		}
		return n
	}
	if got := resident(); got != a.Bytes() {
		t.Fatalf("%d of %d bytes are in memory after all were written to", got, a.Bytes())
	}
	if n, err := a.Park(10); n != 10 || err != nil {
		t.Fatalf("parked %d slots of 10: %v", n, err)
	}
	if got, want := resident(), a.Bytes()-10*a.Stride(); got != want {
		t.Errorf("%d bytes are in memory with 10 of 16 slots parked, want %d", got, want)
	}
	if n, err := a.Unpark(10); n != 10 || err != nil {
		t.Fatalf("took back %d slots of 10: %v", n, err)
	}
	for range slots {
		s := a.Get()
		clear(s.Buffer(0, 1<<20).Bytes())
		defer s.Free()
	}
}

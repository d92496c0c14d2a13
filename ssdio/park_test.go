package ssdio

import (
	"math/rand/v2"
	"testing"
)

// TestParkedSlotsComeBack parks and takes back at random: no slot is handed out
// while it is parked, none is lost, and one that comes back can be written to.
func TestParkedSlotsComeBack(t *testing.T) {
	const slots = 24
	a, err := NewArena(100_000, slots, 2)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var held []*Slot
	parked := 0
	for range 2000 {
		switch rng.IntN(4) {
		case 0:
			n := rng.IntN(5)
			got, err := a.Park(n)
			if want := min(n, slots-parked-len(held)); err != nil || got != want {
				t.Fatalf("parked %d of %d slots, want %d: %v", got, n, want, err)
			}
			parked += got
		case 1:
			n := rng.IntN(5)
			got, err := a.Unpark(n)
			if err != nil || got != min(n, parked) {
				t.Fatalf("took back %d of %d slots, %d were parked: %v", got, n, parked, err)
			}
			parked -= got
		case 2:
			s := a.Get()
			if (s == nil) != (len(held)+parked == slots) {
				t.Fatalf("got slot %v with %d held and %d parked of %d", s, len(held), parked, slots)
			}
			if s != nil {
				mem := s.Buffer(0, 100_000).Bytes()
				for i := range mem {
					mem[i] = byte(s.Index())
				}
				held = append(held, s)
			}
		default:
			if len(held) == 0 {
				continue
			}
			i := rng.IntN(len(held))
			for k, b := range held[i].Buffer(0, 100_000).Bytes() {
				if b != byte(held[i].Index()) {
					t.Fatalf("byte %d of slot %d changed while others were parked", k, held[i].Index())
				}
			}
			held[i].Free()
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
		}
		if used, out := a.Used(); used != len(held) || out != 0 || a.Parked() != parked {
			t.Fatalf("%d used, %d astray, %d parked; want %d, 0, %d", used, out, a.Parked(), len(held), parked)
		}
	}
	for _, s := range held {
		s.Free()
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Park(1); n != 0 || err != nil {
		t.Errorf("a closed arena parked %d slots: %v", n, err)
	}
	if n, err := a.Unpark(1); n != 0 || err != nil {
		t.Errorf("a closed arena took back %d slots: %v", n, err)
	}
}

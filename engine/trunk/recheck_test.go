package trunk

import (
	"errors"
	"slices"
	"testing"

	"deltafin/ssdio"
)

// TestRecheck: what changed in memory is found, named by its unit once, and is what
// the file has afterwards. What is streamed is not looked at: it is checked as it comes.
func TestRecheck(t *testing.T) {
	for name, memory := range map[string]func(*Catalog) int64{
		"all stays": func(c *Catalog) int64 { return c.Total() }, "streamed": func(c *Catalog) int64 { return (c.Least() + c.Total()) / 2 },
	} {
		s, ck := newStore(t, "tiny-a", "", memory)
		if err := s.Load(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if changed, err := s.Recheck(t.Context()); len(changed) > 0 || err != nil {
			t.Fatalf("%s: nothing changed: %v, %v", name, changed, err)
		}
		head := s.cat.Head()
		want := []int{0, head}
		for _, unit := range want {
			for _, mem := range s.stays[unit] {
				mem[0] ^= 1
				mem[len(mem)-1] ^= 0x80
			}
		}
		changed, err := s.Recheck(t.Context())
		if err != nil || !slices.Equal(changed, want) {
			t.Errorf("%s: %v changed, want %v: %v", name, changed, want, err)
		}
		for _, unit := range want {
			s.matrices(t, ck, unit)
		}
		if changed, err := s.Recheck(t.Context()); len(changed) > 0 || err != nil {
			t.Errorf("%s: again %v, %v", name, changed, err)
		}
	}
}

// TestRecheckWithoutItsDrive names what cannot be read again.
func TestRecheckWithoutItsDrive(t *testing.T) {
	s, _ := newStore(t, "tiny-a", "", func(c *Catalog) int64 { return c.Total() })
	if err := s.Load(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.set.Close(); err != nil {
		t.Fatal(err)
	}
	s.stays[2][0][0] ^= 1
	changed, err := s.Recheck(t.Context())
	var lost *Error
	if !slices.Equal(changed, []int{2}) || !errors.As(err, &lost) || lost.Layer != 2 || !errors.Is(err, ssdio.ErrClosed) {
		t.Errorf("%v, %v", changed, err)
	}
}

package ssdio

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
)

// strict is a raw file that refuses what a device would refuse, and may return
// less than asked.
type strict struct {
	t     *testing.T
	data  []byte
	align Align
	short func(n int) int
}

func (s *strict) readv(parts [][]byte, off int64) (int, error) {
	if off%int64(s.align.Offset) != 0 {
		s.t.Fatalf("read at offset %d", off)
	}
	want := 0
	for _, p := range parts {
		if len(p)%s.align.Length != 0 && len(p)%s.align.Offset != 0 {
			s.t.Fatalf("part of %d bytes", len(p))
		}
		if addressOf(p)%uintptr(s.align.Memory) != 0 {
			s.t.Fatalf("part at address %x", addressOf(p))
		}
		want += len(p)
	}
	want = min(want, max(len(s.data)-int(off), 0))
	if s.short != nil {
		want = s.short(want)
	}
	n := 0
	for _, p := range parts {
		if n < want {
			n += copy(p[:min(len(p), want-n)], s.data[off+int64(n):])
		}
	}
	return n, nil
}

// TestSpanReadsAnyRange: every range, at every residue, of a device that takes
// only aligned reads; in place where it can be.
func TestSpanReadsAnyRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	data := make([]byte, 300_001)
	for i := range data {
		data[i] = byte(rng.Uint32())
	}
	mem, err := mapMemory(1 << 19)
	if err != nil {
		t.Fatal(err)
	}
	defer unmapMemory(mem)
	var w Scratch
	defer w.Free()
	aligns := []Align{{1, 1, 1}, {4096, 4096, 512}, {4096, 65536, 4096}, {512, 512, 4}}
	for i := range 4000 {
		a := aligns[i%len(aligns)]
		f := &strict{t: t, data: data, align: a}
		if i%3 == 0 {
			f.short = func(n int) int { return min(n, max(4096, n/2+rng.IntN(9000))) }
		}
		off := rng.IntN(len(data))
		n := rng.IntN(len(data)-off) + 1
		residue := rng.IntN(4096)
		if i%2 == 0 {
			residue = off % 4096
		}
		p := mem[residue : residue+n]
		clear(mem)
		copied, err := readSpan(f, p, int64(off), a, &w)
		if err != nil {
			t.Fatalf("[%d,+%d): %v", off, n, err)
		}
		if !bytes.Equal(p, data[off:off+n]) {
			t.Fatalf("[%d,+%d) at residue %d, align %v: wrong bytes", off, n, residue, a)
		}
		if mem[residue+n] != 0 || (residue > 0 && mem[residue-1] != 0) {
			t.Fatalf("[%d,+%d): wrote beside the destination", off, n)
		}
		if most := a.Offset + max(a.Length, a.Offset); residue == off%4096 && copied > most {
			t.Fatalf("[%d,+%d): copied %d bytes, at most %d were due", off, n, copied, most)
		}
	}
}

func TestSpanReportsTheEndOfTheFile(t *testing.T) {
	f := &strict{t: t, data: make([]byte, 10_000), align: Align{4096, 4096, 512}}
	var w Scratch
	defer w.Free()
	for _, r := range [][2]int{{0, 10_001}, {9_999, 2}, {10_000, 1}, {50_000, 5}} {
		_, err := readSpan(f, make([]byte, r[1]), int64(r[0]), f.align, &w)
		if !errors.Is(err, ErrShort) {
			t.Errorf("[%d,+%d): %v", r[0], r[1], err)
		}
	}
}

// TestFilesAreReadDirectly: the real files of this system, at odd places, and
// the last bytes of a file whose length is no multiple of anything.
func TestFilesAreReadDirectly(t *testing.T) {
	dir := t.TempDir()
	data := make([]byte, 200_003)
	for i := range data {
		data[i] = byte(i * 7 / 3)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	src, err := OS(dir).Open("f")
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	t.Logf("direct %v, alignment %+v", src.Direct(), src.Align())
	var w Scratch
	defer w.Free()
	for _, r := range [][2]int{{0, 200_003}, {1, 5}, {4096, 8192}, {4095, 4098}, {200_002, 1}, {65_536, 131_072}} {
		p := make([]byte, r[1])
		if _, err := src.ReadInto(p, int64(r[0]), &w); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(p, data[r[0]:r[0]+r[1]]) {
			t.Errorf("[%d,+%d): wrong bytes", r[0], r[1])
		}
	}
	for _, name := range []string{"../f", "", "/f", "nothing"} {
		if s, err := OS(dir).Open(name); err == nil {
			t.Errorf("opened %q", name)
			s.Close()
		}
	}
	if s, err := OS(filepath.Dir(dir)).Open(filepath.Base(dir)); err == nil {
		t.Error("opened a folder")
		s.Close()
	}
}

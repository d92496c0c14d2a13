package expert

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestHeatComesBack: what was used stays preferred after a restart, from the first
// token on.
func TestHeatComesBack(t *testing.T) {
	hot := []Want{{Expert: 1, Rows: 1}, {Expert: 4, Rows: 1}}
	first := newBench(t, "tiny-a", "", 6)
	for range 20 {
		first.run(t, first.layers[0], hot)
	}
	file := AppendHeat(nil, "f00d", first.Heat())
	heat, err := ReadHeat(bytes.NewReader(file), "f00d")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(heat, first.Heat()) {
		t.Fatal("the heat that was read is not the heat that was written")
	}
	again := newBench(t, "tiny-a", "", 6)
	if err := again.SetHeat(heat); err != nil {
		t.Fatal(err)
	}
	again.run(t, again.layers[0], hot)
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10 { // nothing of this was used as often
		again.run(t, again.layers[1], again.want(rng, 3))
	}
	again.run(t, again.layers[0], hot)
	var st Stats
	again.Stats(&st)
	if got := st.Layers[again.layers[0]].Hit; got != 2 {
		t.Errorf("%d hits of 2 for what an earlier run used most", got)
	}
	if err := again.SetHeat(heat); !errors.Is(err, ErrOpen) {
		t.Errorf("heat was set over a cache in use: %v", err)
	}
	if err := newBench(t, "tiny-a", "", 6).SetHeat(heat[1:]); !errors.Is(err, ErrHeatForeign) {
		t.Errorf("heat with one expert less: %v", err)
	}
}

// TestBadHeat: any damage is found, whatever byte it hits, and another model's heat
// is told apart.
func TestBadHeat(t *testing.T) {
	good := AppendHeat(nil, "abcdef", Heat{0, 1.5, 2e9})
	if _, err := ReadHeat(bytes.NewReader(good), "abcdef"); err != nil {
		t.Fatal(err)
	}
	for i := range good {
		bad := slices.Clone(good)
		bad[i] ^= 0x40
		if _, err := ReadHeat(bytes.NewReader(bad), "abcdef"); !errors.Is(err, ErrHeatDamaged) {
			t.Errorf("byte %d damaged: %v", i, err)
		}
		if _, err := ReadHeat(bytes.NewReader(good[:i]), "abcdef"); !errors.Is(err, ErrHeatDamaged) {
			t.Errorf("cut to %d bytes: %v", i, err)
		}
	}
	if _, err := ReadHeat(bytes.NewReader(good), "abcdee"); !errors.Is(err, ErrHeatForeign) {
		t.Errorf("heat of another model: %v", err)
	}
	for _, v := range []float32{-1, float32(math.NaN()), float32(math.Inf(1))} {
		if _, err := ReadHeat(bytes.NewReader(AppendHeat(nil, "x", Heat{v})), "x"); !errors.Is(err, ErrHeatDamaged) {
			t.Errorf("heat %v: %v", v, err)
		}
	}
}

// FuzzReadHeat: no file panics or costs more memory than it has bytes, and what is
// accepted is what would be written.
func FuzzReadHeat(f *testing.F) {
	f.Add(AppendHeat(nil, "abcdef", Heat{0, 1.5, 2e9}), false)
	f.Add(AppendHeat(nil, "", nil), false)
	f.Add(append(binary.LittleEndian.AppendUint32([]byte(heatMagic+"\x00\x00"), maxHeat), 1, 2, 3), true)
	f.Fuzz(func(t *testing.T, data []byte, seal bool) {
		if seal { // let damage get past the checksum
			data = binary.LittleEndian.AppendUint32(slices.Clip(data), crc32.Checksum(data, castagnoli))
		}
		h, err := ReadHeat(bytes.NewReader(data), "abcdef")
		if err != nil {
			if !errors.Is(err, ErrHeatDamaged) && !errors.Is(err, ErrHeatForeign) {
				t.Fatal(err)
			}
			return
		}
		if again := AppendHeat(nil, "abcdef", h); !bytes.HasPrefix(data, again) {
			t.Fatalf("%x was read, it would be written as %x", data, again)
		}
	})
}

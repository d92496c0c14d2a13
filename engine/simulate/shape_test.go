package simulate

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deltafin/engine/checkpoint"
)

// TestK3IsThePublishedModel: K3 has the sizes that the official config gives.
func TestK3IsThePublishedModel(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "checkpoint", "testdata", "official-config.json"))
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.ParseConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	m, err := NewModel("official", c)
	if err != nil {
		t.Fatal(err)
	}
	k := K3()
	if k.Experts != m.Experts || k.Head != m.Head || k.Embed != m.Embed || k.ExpertOps != m.ExpertOps || k.AttendOps != m.AttendOps {
		t.Errorf("K3 is %+v, the official config gives %+v", k.Experts, m.Experts)
	}
	for i := range m.Layers {
		if k.Layers[i] != m.Layers[i] {
			t.Errorf("layer %d is %+v, the official config gives %+v", i, k.Layers[i], m.Layers[i])
		}
	}
	// Specification, sections 2.3 and 2.4.
	if k.Experts.Bytes != 17_547_264 || k.Head != 2_348_810_240 {
		t.Errorf("an expert of %d bytes and a head of %d", k.Experts.Bytes, k.Head)
	}
	a := c.Account()
	if got, want := float64(k.Trunk()+k.Embed), float64(a.Trunk().Bytes); got > want || got < 0.999*want {
		t.Errorf("the trunk's matrices are %.0f bytes, all of it is %.0f", got, want)
	}
}

// TestDivisionAddsUp: memory is divided by the engine's rules, and never more than there is.
func TestDivisionAddsUp(t *testing.T) {
	m, err := Example("pc192")
	if err != nil {
		t.Fatal(err)
	}
	model := K3()
	for _, ram := range []int64{24 << 30, 64 << 30, 128 << 30, 192 << 30, 1 << 40, 4 << 40} {
		for _, int8 := range []bool{false, true} {
			m.RAM, m.Int8 = ram, int8
			s, err := Divide(m, model, 4096)
			if err != nil {
				t.Fatalf("%d GiB: %v", ram>>30, err)
			}
			if sum := s.Trunk + s.Conversation + s.Buffers + s.Cache; sum > ram-m.Reserve {
				t.Errorf("%d GiB are divided into %d GiB", ram>>30, sum>>30)
			}
			layers, whole := model.held(int8)
			for _, n := range layers {
				whole += n
			}
			if got := s.Trunk + s.Streamed; got < whole {
				t.Errorf("%d GiB: %d bytes of trunk in memory and %d streamed are less than its %d", ram>>30, s.Trunk, s.Streamed, whole)
			}
			if s.Streamed > 0 && s.Cache > 64*model.Experts.Bytes {
				t.Errorf("%d GiB: the trunk is streamed beside %d bytes of experts", ram>>30, s.Cache)
			}
		}
	}
	m.RAM = 9 << 30
	if _, err := Divide(m, model, 4096); !errors.Is(err, ErrMemory) {
		t.Errorf("1 GiB for K3: %v", err)
	}
}

package trunk

import (
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/nano"
	"deltafin/ssdio"
)

func open(t *testing.T, dir string) *checkpoint.Checkpoint {
	t.Helper()
	ck, err := checkpoint.Open(dir)
	if dir == "" {
		ck, err = nano.Open()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	return ck
}

var models = []string{"", "../testdata/golden/tiny-a", "../testdata/golden/tiny-b", "../testdata/golden/tiny-c"}

// TestCatalogIsTheTrunk: every matrix is in a unit once, with its own bytes, and the
// units with the rest are what the account of the model says.
func TestCatalogIsTheTrunk(t *testing.T) {
	for _, dir := range models {
		ck := open(t, dir)
		c, err := NewCatalog(ck)
		if err != nil {
			t.Fatal(err)
		}
		seen, tight := map[string]bool{}, int64(0)
		for i := range c.units {
			for name, w := range c.units[i].weights {
				x, err := ck.Tensor(name)
				if err != nil || seen[name] {
					t.Fatalf("%s: twice %v, %v", name, seen[name], err)
				}
				seen[name] = true
				tight += w.length
				p := c.units[i].parts[w.part]
				obj := -1
				for k := range c.model.Objects {
					if c.model.Objects[k].Key == p.key {
						obj = k
					}
				}
				if obj < 0 || w.at+w.length > p.size || c.model.Objects[obj].Extents[0].Offset+w.at != x.Offset || w.length != x.Length {
					t.Errorf("%s: %+v in part %+v does not lie where the file has it", name, w, p)
				}
			}
		}
		ck.Config().Each(func(s checkpoint.Spec) bool {
			if IsMatrix(&s) != seen[s.Name] {
				t.Errorf("%s: in the catalog %v", s.Name, seen[s.Name])
			}
			return true
		})
		size, err := Sizes(ck)
		if err != nil {
			t.Fatal(err)
		}
		account := ck.Account()
		if tight+size.Embed > account.Trunk().Bytes || c.Total() < tight || len(size.Layers) != ck.Config().Layers {
			t.Errorf("%s: matrices of %d, embedding %d, trunk %d, read %d", dir, tight, size.Embed, account.Trunk().Bytes, c.Total())
		}
	}
}

// TestPlanKeepsToMemory: more memory never reads more, nothing exceeds what was given
// above the least, and every byte either stays or is read per token.
func TestPlanKeepsToMemory(t *testing.T) {
	k3 := NewSizes(sizesOfK3())
	catalogs := []*Catalog{k3}
	for _, dir := range models {
		c, err := NewCatalog(open(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		catalogs = append(catalogs, c)
	}
	for _, c := range catalogs {
		step := max(c.Total()/500, 1)
		for at := int64(0); at < c.Total()+c.Total()/2+64*ssdio.BlockSize; at += step {
			p := c.Plan(at)
			if p.Memory > max(at, c.Least()) || p.Stays+p.PerToken != c.Total() {
				t.Fatalf("%d bytes of %d: %+v", at, c.Total(), p)
			}
			if streamed := c.Head() - p.Resident; streamed > 0 && (p.Buffers < leastBuffers || p.Buffers >= streamed) || streamed == 0 && (p.Buffers != 0 || p.PerToken != 0) {
				t.Fatalf("%d bytes: %+v for %d streamed layers", at, p, streamed)
			}
		}
		if p := c.Plan(1 << 50); p.Resident != c.Head() || p.PerToken != 0 {
			t.Errorf("with room for all: %+v", p)
		}
	}
	// A 64 GB machine with K3: about half of the trunk is read for every token.
	if p := k3.Plan(56e9); p.PerToken < 50e9 || p.PerToken > 62e9 || p.Buffers < leastBuffers {
		t.Errorf("K3 in 56 GB: %+v", p)
	}
}

// sizesOfK3 is about what the official trunk has: 111 GB in layers and head.
func sizesOfK3() (layers []int64, head int64) {
	for range 93 {
		layers = append(layers, 1170e6)
	}
	return layers, 2349e6
}

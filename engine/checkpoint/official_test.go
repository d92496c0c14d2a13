package checkpoint_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
)

// The totals of the official checkpoint. Spec sections 2.1 and 2.2.
const (
	officialTensors = 497_220
	officialBytes   = 1_560_860_324_864
)

func officialText(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/official-config.json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func official(t testing.TB) *checkpoint.Config {
	t.Helper()
	c, err := checkpoint.ParseConfig(officialText(t))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A pattern is one line of official-tensors.tsv.
type pattern struct {
	name  string
	count int
	dtype string
	shape []int
	bytes int64
}

func patterns(t testing.TB) []pattern {
	t.Helper()
	text, err := os.ReadFile("testdata/official-tensors.tsv")
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	var out []pattern
	for line := range strings.Lines(string(text)) {
		if line[0] == '#' {
			continue
		}
		f := strings.Split(strings.TrimSpace(line), "\t")
		p := pattern{name: f[0], count: number(f[1]), dtype: f[2], bytes: int64(number(f[4]))}
		for d := range strings.SplitSeq(f[3], "x") {
			p.shape = append(p.shape, number(d))
		}
		out = append(out, p)
	}
	return out
}

// names expands a pattern, for the given number of experts in each layer.
func (p pattern) names(c *checkpoint.Config, experts int, visit func(name string, shard int)) {
	layers := []int{-1}
	if strings.Contains(p.name, "{L}") {
		layers = nil
		for l := range c.Layers {
			if p.inLayer(c, l) {
				layers = append(layers, l)
			}
		}
	}
	if !strings.Contains(p.name, "{E}") {
		experts = 1
	}
	blocks := 1
	if strings.Contains(p.name, "{B}") {
		blocks = c.Vision.Layers
	}
	fill := func(name, mark string, i int) string { return strings.Replace(name, mark, strconv.Itoa(i), 1) }
	for _, l := range layers {
		inLayer := fill(p.name, "{L}", l)
		for e := range experts {
			inExpert := fill(inLayer, "{E}", e)
			for b := range blocks {
				visit(fill(inExpert, "{B}", b), p.shard(c, l))
			}
		}
	}
}

// inLayer says by name which layers of the full model have a tensor, without
// asking the code under test.
func (p pattern) inLayer(c *checkpoint.Config, l int) bool {
	mla := l == 92 || l%4 == 3
	switch {
	case strings.Contains(p.name, ".mlp."):
		return l == 0
	case strings.Contains(p.name, ".block_sparse_moe."):
		return l > 0
	case strings.Contains(p.name, "g_proj"), strings.Contains(p.name, "o_proj"):
		return true
	case strings.Contains(p.name, "q_a_"), strings.Contains(p.name, "q_b_"), strings.Contains(p.name, "kv_"):
		return mla
	case strings.Contains(p.name, ".self_attn."):
		return !mla
	}
	return true
}

func (p pattern) shard(c *checkpoint.Config, layer int) int {
	switch {
	case layer >= 0:
		return layer + 1
	case strings.HasPrefix(p.name, "mm_projector."):
		return c.Layers + 2
	case strings.HasPrefix(p.name, "vision_tower."):
		return c.Layers + 3
	}
	return c.Layers + 1
}

// officialIndex builds the text of an index of the full model.
func officialIndex(t testing.TB, c *checkpoint.Config) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "{\n  \"metadata\": {\n    \"total_size\": %d\n  },\n  \"weight_map\": {", officialBytes)
	comma := ""
	for _, p := range patterns(t) {
		p.names(c, c.Experts, func(name string, shard int) {
			fmt.Fprintf(&b, "%s\n    %q: \"model-%05d-of-000096.safetensors\"", comma, name, shard)
			comma = ","
		})
	}
	b.WriteString("\n  }\n}\n")
	return b.Bytes()
}

// TestInventoryIsTheOfficialOne compares names, dtypes, shapes and bytes that
// the config leads to with the list of the official checkpoint.
func TestInventoryIsTheOfficialOne(t *testing.T) {
	c := official(t)
	want := map[string]string{}
	tensors, total := 0, int64(0)
	for _, p := range patterns(t) {
		n, each := 0, 1
		if strings.Contains(p.name, "{E}") {
			each = c.Experts // one name stands for all experts of its layer
		}
		p.names(c, 1, func(name string, _ int) {
			n += each
			if short, text := strings.CutPrefix(name, "language_model."); text && each == 1 {
				want[short] = fmt.Sprintf("%s %v", p.dtype, p.shape)
			}
		})
		if n != p.count {
			t.Errorf("%s: %d names, want %d", p.name, n, p.count)
		}
		tensors += n
		total += int64(n) * p.bytes
	}
	if tensors != officialTensors || total != officialBytes {
		t.Fatalf("list has %d tensors of %d bytes", tensors, total)
	}
	c.Each(func(s checkpoint.Spec) bool {
		if got := fmt.Sprintf("%v %v", s.DType, s.Shape); want[s.Name] != got {
			t.Errorf("%s: %s, want %s", s.Name, got, want[s.Name])
		}
		delete(want, s.Name)
		return true
	})
	for name := range want {
		t.Errorf("%s is missing from the inventory", name)
	}
}

// TestIndexOfTheFullModelLoads opens config and index of all 497,220 names.
func TestIndexOfTheFullModelLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("builds an index of 50 MB")
	}
	c := official(t)
	fsys := inPlace{checkpoint.ConfigFile: officialText(t), checkpoint.IndexFile: officialIndex(t, c)}
	m, err := checkpoint.OpenFS(fsys, checkpoint.IndexOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	s := m.Summary()
	if s.Tensors != officialTensors || s.Ignored != 168 || s.Shards != 96 || s.Total != officialBytes || s.Prefix != "language_model." {
		t.Errorf("summary %+v", s)
	}
	if m.ExpertFormat() != checkpoint.MXFP4 {
		t.Errorf("experts are %v", m.ExpertFormat())
	}
	a := m.Account()
	if sum := a.Total(); sum.Bytes != s.Total || sum.Tensors != int64(s.Tensors) {
		t.Errorf("recomputed %+v, index says %d tensors of %d bytes", sum, s.Tensors, s.Total)
	}
}

// inPlace is a file system in memory that gives out its bytes.
type inPlace map[string][]byte

func (m inPlace) Bytes(name string) ([]byte, error) {
	if b, ok := m[name]; ok {
		return b, nil
	}
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}

// Open is never needed: Bytes serves everything that a checkpoint reads.
func (m inPlace) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
}

func BenchmarkIndexOfTheFullModel(b *testing.B) {
	c := official(b)
	text := officialIndex(b, c)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		names, _, err := checkpoint.ParseIndex(text, c)
		if err != nil || names != officialTensors {
			b.Fatal(names, err)
		}
	}
}

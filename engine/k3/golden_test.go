package k3

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// golden is one file of vectors, see engine/testdata/README.md.
type golden struct {
	IDs    []int `json:"ids"`
	File   string
	Arrays map[string]struct {
		Offset int
		Shape  []int
		DType  string
	}
	Noise map[string]json.RawMessage `json:"noise_floor"`
	Greed *struct {
		IDs []int `json:"ids"`
	} `json:"greedy"`

	raw []byte
}

func readGolden(t *testing.T, path string) *golden {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	g := &golden{}
	if err := json.Unmarshal(text, g); err != nil {
		t.Fatal(err)
	}
	if g.raw, err = os.ReadFile(filepath.Join(filepath.Dir(path), g.File)); err != nil {
		t.Fatal(err)
	}
	return g
}

func (g *golden) words(t *testing.T, name string) []uint32 {
	t.Helper()
	a, ok := g.Arrays[name]
	if !ok {
		t.Fatalf("no array %q in the golden file", name)
	}
	n := 1
	for _, d := range a.Shape {
		n *= d
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(g.raw[a.Offset+4*i:])
	}
	return out
}

func (g *golden) floats(t *testing.T, name string) []float32 {
	w := g.words(t, name)
	out := make([]float32, len(w))
	for i := range w {
		out[i] = math.Float32frombits(w[i])
	}
	return out
}

func (g *golden) ints(t *testing.T, name string) []int32 {
	w := g.words(t, name)
	out := make([]int32, len(w))
	for i := range w {
		out[i] = int32(w[i])
	}
	return out
}

// noise is the difference between two float32 forms of the reference itself. The
// tolerance is a small multiple of it: another order of the same sums may differ
// by as much.
func (g *golden) noise(t *testing.T, name string) (maxAbs, relL2 float64) {
	t.Helper()
	var d struct {
		MaxAbs float64 `json:"max_abs"`
		RelL2  float64 `json:"rel_l2"`
	}
	if err := json.Unmarshal(g.Noise[name], &d); err != nil {
		t.Fatalf("noise floor %s: %v", name, err)
	}
	return d.MaxAbs, d.RelL2
}

// noiseFactor is the small multiple of the noise floor that is allowed.
const noiseFactor = 4

// near compares with the golden values and reports the largest deviations.
func near(t *testing.T, what string, got, want []float32, maxAbs, relL2 float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d values, want %d", what, len(got), len(want))
	}
	var worst, num, den float64
	at := 0
	for i := range got {
		d := float64(got[i]) - float64(want[i])
		if math.IsNaN(d) {
			t.Fatalf("%s: value %d is %v, want %v", what, i, got[i], want[i])
		}
		if math.Abs(d) > worst {
			worst, at = math.Abs(d), i
		}
		num += d * d
		den += float64(want[i]) * float64(want[i])
	}
	rel := math.Sqrt(num / max(den, 1e-30))
	if worst > noiseFactor*maxAbs || rel > noiseFactor*relL2 {
		t.Errorf("%s: max %.3g at %d (allowed %.3g), relative L2 %.3g (allowed %.3g)",
			what, worst, at, noiseFactor*maxAbs, rel, noiseFactor*relL2)
	}
}

func openModel(t testing.TB, dir string) *Model {
	t.Helper()
	ck, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ck.Close() })
	m, err := Load(ck)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// newPool returns workers of the level that this machine would choose.
func newPool(t testing.TB, workers int) *kernel.Pool {
	t.Helper()
	table, err := kernel.Select("")
	if err != nil {
		t.Fatal(err)
	}
	p := kernel.NewPool(table, workers)
	t.Cleanup(p.Close)
	return p
}

// record collects everything an Observer sees, position by position.
type record struct {
	streams  map[int][]float32 // layer -> [position][Hidden]
	logits   map[int][]float32 // layer -> [position][Experts]
	experts  map[int][]int32
	weights  map[int][]float32
	position []float32 // logits [position][Vocab]
}

func newRecord() *record {
	return &record{map[int][]float32{}, map[int][]float32{}, map[int][]int32{}, map[int][]float32{}, nil}
}

func (r *record) observer() *Observer {
	return &Observer{
		Stream: func(l, n int, p []float32) { r.streams[l] = append(r.streams[l], p...) },
		Routes: func(l, n int, lg []float32, e []int32, w []float32) {
			r.logits[l] = append(r.logits[l], lg...)
			r.experts[l] = append(r.experts[l], e...)
			r.weights[l] = append(r.weights[l], w...)
		},
	}
}

// runIn runs the ids in passes of the given size and records it all.
func runIn(t *testing.T, m *Model, pool *kernel.Pool, ids []int, size int) (*record, *State) {
	t.Helper()
	rec, st, r := newRecord(), m.NewState(), m.NewRunner(pool)
	r.Observe = rec.observer()
	for chunk := range slices.Chunk(ids, size) {
		lg, err := r.Forward(context.Background(), st, chunk, AllLogits)
		if err != nil {
			t.Fatal(err)
		}
		rec.position = append(rec.position, lg...)
	}
	if st.Pos() != len(ids) {
		t.Fatalf("state at %d after %d tokens", st.Pos(), len(ids))
	}
	return rec, st
}

func TestTinyGoldens(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c"} {
		dir := filepath.Join("..", "testdata", "golden", name)
		g := readGolden(t, filepath.Join(dir, "vectors.json"))
		m := openModel(t, dir)
		pool := newPool(t, 2)
		for _, form := range []struct {
			name string
			size int
		}{{"prefill", len(g.IDs)}, {"step", 1}} {
			t.Run(name+"/"+form.name, func(t *testing.T) {
				rec, st := runIn(t, m, pool, g.IDs, form.size)
				checkTiny(t, g, m, rec, st)
			})
		}
	}
}

func checkTiny(t *testing.T, g *golden, m *Model, rec *record, st *State) {
	c := m.cfg
	abs, rel := g.noise(t, "logits_recurrent_vs_chunked")
	near(t, "logits", rec.position, g.floats(t, "logits"), abs, rel)
	if got, want := rec.streams[-1], g.floats(t, "embedding"); !slices.Equal(got, want) {
		t.Error("embedding differs from the golden one")
	}
	sAbs, sRel := g.noise(t, "streams_recurrent_vs_chunked")
	streams, size := g.floats(t, "streams"), len(g.IDs)*c.Hidden
	for l := range c.Layers {
		near(t, fmt.Sprintf("stream after layer %d", l), rec.streams[l], streams[l*size:(l+1)*size], sAbs, sRel)
	}
	rAbs, rRel := g.noise(t, "router_logits_vs_float64")
	logits, experts, weights := g.floats(t, "router_logits"), g.ints(t, "router_experts"), g.floats(t, "router_weights")
	for l := c.FirstDense; l < c.Layers; l++ {
		j, ne, nk := l-c.FirstDense, len(g.IDs)*c.Experts, len(g.IDs)*c.TopK
		// Router logits grow from the streams' noise: allow theirs or the streams'.
		near(t, fmt.Sprintf("router logits of layer %d", l), rec.logits[l], logits[j*ne:(j+1)*ne], max(rAbs, sAbs), max(rRel, sRel))
		if !slices.Equal(rec.experts[l], experts[j*nk:(j+1)*nk]) {
			t.Errorf("layer %d chose other experts than the reference", l)
		}
		near(t, fmt.Sprintf("router weights of layer %d", l), rec.weights[l], weights[j*nk:(j+1)*nk], max(rAbs, sAbs), max(rRel, sRel))
	}
	kdaLayers, mlaLayer := []int{}, -1
	for l := range c.Layers {
		if !c.MLALayer[l] {
			kdaLayers = append(kdaLayers, l)
		} else if mlaLayer < 0 {
			mlaLayer = l
		}
	}
	k := kdaLayers[len(kdaLayers)/2]
	near(t, "KDA state", st.layers[k].s, g.floats(t, "kda_state"), sAbs, sRel)
	near(t, "convolution rows", st.layers[k].conv, g.floats(t, "kda_conv"), sAbs, sRel)
	latent, rope := g.floats(t, "mla_latent"), g.floats(t, "mla_rope")
	var want []float32
	for p := range g.IDs {
		want = append(want, latent[p*c.KVLoRA:(p+1)*c.KVLoRA]...)
		want = append(want, rope[p*c.QKRope:(p+1)*c.QKRope]...)
	}
	near(t, "latent rows", st.layers[mlaLayer].latent, want, sAbs, sRel)
}

// benchLevels runs a benchmark of the demonstration model with two workers at
// every kernel level of the machine.
func benchLevels(b *testing.B, run func(*testing.B, *Model, *Runner)) {
	m := openNano(b)
	for _, level := range kernel.Levels() {
		b.Run(level.Name, func(b *testing.B) {
			pool := kernel.NewPool(level, 2)
			defer pool.Close()
			run(b, m, m.NewRunner(pool))
		})
	}
}

package k3

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"deltafin/engine/nano"
)

func openNano(t testing.TB) *Model {
	t.Helper()
	ck, err := nano.Open()
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

// TestNanoGoldens holds the trained demonstration model against the reference: its
// sums are larger and its routers closer to ties than those of the random models.
func TestNanoGoldens(t *testing.T) {
	m := openNano(t)
	pool := newPool(t, 2)
	paths, err := filepath.Glob(filepath.Join("..", "testdata", "golden", "k3-nano", "*.json"))
	if err != nil || len(paths) < 10 {
		t.Fatalf("golden files: %v, %v", paths, err)
	}
	for _, path := range paths {
		name := filepath.Base(path)
		if name == "index.json" || name == "tokenizer.json" {
			continue
		}
		g := readGolden(t, path)
		sizes := map[string]int{"prefill": len(g.IDs), "step": 1}
		for form, size := range sizes {
			t.Run(name+"/"+form, func(t *testing.T) {
				rec, _ := runIn(t, m, pool, g.IDs, size)
				checkNano(t, g, m, rec)
			})
		}
	}
}

func checkNano(t *testing.T, g *golden, m *Model, rec *record) {
	c, n := m.cfg, len(g.IDs)
	abs, rel := g.noise(t, "logits_recurrent_vs_chunked")
	near(t, "logits of the last position", rec.position[(n-1)*c.Vocab:], g.floats(t, "logits_last"), abs, rel)

	ids, top := g.ints(t, "top10_ids"), g.floats(t, "top10_logits")
	var got []float32
	for i, id := range ids {
		got = append(got, rec.position[i/10*c.Vocab+int(id)])
	}
	near(t, "top ten logits of every position", got, top, abs, rel)

	experts, weights, margin := g.ints(t, "router_experts"), g.floats(t, "router_weights"), g.floats(t, "router_margin")
	for l := c.FirstDense; l < c.Layers; l++ {
		j := l - c.FirstDense
		for p := range n {
			at := (j*n + p) * c.TopK
			want := experts[at : at+c.TopK]
			chosen := rec.experts[l][p*c.TopK : (p+1)*c.TopK]
			if !sameSet(chosen, want) {
				// Every choice of the reference is clear by more than its noise, so
				// another choice is a fault, not a rounding.
				t.Fatalf("layer %d, position %d: experts %v, want %v (margin %.2g)", l, p, chosen, want, margin[j*n+p])
			}
			for k, e := range chosen {
				for i, w := range want {
					if w == e && math.Abs(float64(rec.weights[l][p*c.TopK+k]-weights[at+i])) > 1e-4 {
						t.Errorf("layer %d, position %d, expert %d: weight %v, want %v", l, p, e, rec.weights[l][p*c.TopK+k], weights[at+i])
					}
				}
			}
		}
	}

	sAbs, sRel := g.noise(t, "streams_recurrent_vs_chunked")
	last := g.floats(t, "stream_last")
	for l := -1; l < c.Layers; l++ {
		near(t, fmt.Sprintf("stream after layer %d, last position", l), rec.streams[l][(n-1)*c.Hidden:],
			last[(l+1)*c.Hidden:(l+2)*c.Hidden], max(sAbs, 1e-9), max(sRel, 1e-9))
	}
}

func sameSet(a, b []int32) bool {
	for _, x := range a {
		found := false
		for _, y := range b {
			found = found || x == y
		}
		if !found {
			return false
		}
	}
	return len(a) == len(b)
}

// BenchmarkNanoDecode is the speed of single steps of the demonstration model, by
// level; BenchmarkNanoPrefill that of a prompt of 256 tokens.
func BenchmarkNanoDecode(b *testing.B) {
	benchLevels(b, func(b *testing.B, m *Model, r *Runner) {
		st := m.NewState()
		if _, err := r.Forward(context.Background(), st, make([]int, 64), LastLogits); err != nil {
			b.Fatal(err)
		}
		n := 0
		for ; b.Loop(); n++ {
			if n%256 == 255 { // keep the attention as short as an answer's
				b.StopTimer()
				st = m.NewState()
				b.StartTimer()
			}
			if _, err := r.Forward(context.Background(), st, []int{n % 3000}, LastLogits); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tok/s")
	})
}

func BenchmarkNanoPrefill256(b *testing.B) {
	benchLevels(b, func(b *testing.B, m *Model, r *Runner) {
		ids := make([]int, 256)
		for i := range ids {
			ids[i] = i * 11
		}
		n := 0
		for ; b.Loop(); n += len(ids) {
			if _, err := r.Forward(context.Background(), m.NewState(), ids, LastLogits); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "tok/s")
	})
}

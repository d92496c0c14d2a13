package simulate

import (
	"math"
	"testing"

	"deltafin/engine/expert"
)

// TestUnionGrows: the union of the experts of n tokens, of all that they choose, is
// as published of K3 within 12 %, and the overlap of neighbours about 0.3.
func TestUnionGrows(t *testing.T) {
	shape := K3().Experts
	shape.Layers = 25
	g, err := NewGenerator(shape, Published, 1)
	if err != nil {
		t.Fatal(err)
	}
	const tokens = 89
	seen := map[int][]float64{}
	var overlap, uses float64
	layers := shape.Layers - shape.Dense
	for l := shape.Dense; l < shape.Layers; l++ {
		union, last := map[int32]bool{}, map[int32]bool{}
		for n := 1; n <= tokens; n++ {
			ids := make([]int32, shape.TopK)
			g.Draw(l, ids)
			now := map[int32]bool{}
			for _, e := range ids {
				union[e], now[e] = true, true
				if last[e] {
					overlap++
				}
			}
			if n > 1 {
				uses += float64(len(ids))
			}
			last = now
			seen[n] = append(seen[n], float64(len(union))/float64(n*shape.TopK))
		}
	}
	for n, want := range map[int]float64{2: 0.83, 5: 0.68, 8: 0.56, 16: 0.445, 32: 0.37, 89: 0.26} {
		got := 0.0
		for _, x := range seen[n] {
			got += x / float64(layers)
		}
		t.Logf("union of %d tokens: %.3f, published %.3f", n, got, want)
		if math.Abs(got/want-1) > 0.12 {
			t.Errorf("union of %d tokens: %.3f of the choices, want %.3f within 12 %%", n, got, want)
		}
	}
	t.Logf("overlap %.3f", overlap/uses)
	if got := overlap / uses; got < 0.26 || got > 0.34 {
		t.Errorf("overlap with the previous token is %.3f, want about 0.3", got)
	}
}

// TestHitsOfTheCache: what the policy gets of generated routing lies in the range
// that the evidence tells to plan for.
func TestHitsOfTheCache(t *testing.T) {
	shape := expert.Shape{Layers: 12, Experts: 896, TopK: 16, Bytes: 1}
	for _, c := range []struct {
		share, lo, hi float64 // of all experts; hits to plan for
	}{{0.011, .12, .25}, {0.022, .20, .35}, {0.044, .28, .43}, {0.088, .44, .57}} {
		var rates [3]float64
		for k, fit := range []Fit{Flat, Expected, Published} {
			g, err := NewGenerator(shape, fit, 2)
			if err != nil {
				t.Fatal(err)
			}
			tr := &expert.Trace{Layers: shape.Layers, Experts: shape.Experts, Steps: 200, Choices: 200 * shape.Layers * shape.TopK}
			for range 200 {
				for l := range shape.Layers {
					ids := make([]int32, shape.TopK)
					g.Draw(l, ids)
					r := expert.Route{Layer: l}
					for _, e := range ids {
						r.Experts, r.Rows = append(r.Experts, int(e)), append(r.Rows, 1)
					}
					tr.Sets = append(tr.Sets, r)
				}
			}
			h := expert.Replay(tr, int(c.share*float64(shape.Layers*shape.Experts)), expert.DefaultHalfLife)
			rates[k] = float64(h.Policy) / float64(h.Uses)
		}
		t.Logf("%.1f %%: flat %.2f expected %.2f published %.2f, to plan for %.2f to %.2f", 100*c.share, rates[0], rates[1], rates[2], c.lo, c.hi)
		if rates[1] < c.lo-0.03 || rates[1] > c.hi+0.03 {
			t.Errorf("%.1f %%: %.2f hits with the expected fit, want %.2f to %.2f within 0.03", 100*c.share, rates[1], c.lo, c.hi)
		}
		if rates[0] >= rates[1] || rates[1] >= rates[2] {
			t.Errorf("%.1f %%: hits %v do not grow with the fit", 100*c.share, rates)
		}
	}
}

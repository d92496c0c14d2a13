package simulate

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sort"

	"deltafin/engine/expert"
)

// ErrRouting: routing does not suit the model.
var ErrRouting = errors.New("bad routing")

// A Router chooses experts in place of a model's.
type Router interface {
	// Draw fills ids with the experts of the next token in a layer, the most wanted
	// first, none twice.
	Draw(layer int, ids []int32)
	// Assumptions says where the choice comes from, for reports.
	Assumptions() string
}

// Fit are the parameters of generated routing.
type Fit struct {
	Skew  float64 // exponent of an expert's weight by its rank within the topic
	Drift float64 // share of experts whose rank changes with each token
}

// The fits. Published brings previous-token overlap and the growth of the union to
// what was measured of K3. Caches got less of real conversations than it gives
// them: with Expected the hit rates are those that measured ones tell to plan for,
// and Flat is the worst to expect.
var (
	Published = Fit{Skew: 1.2, Drift: 0.008}
	Expected  = Fit{Skew: 1.12, Drift: 0.03}
	Flat      = Fit{Skew: 1.05, Drift: 0.05}
)

// Generator makes routing as one topic makes it: in each layer the experts have
// ranks, the weight of rank r is r^-Skew, and a token draws its experts by weight
// without replacement. Ranks are a random order, so that over topics all experts
// are used alike, as K3 was trained to; with every token some swap theirs. It is
// a pure function of its seed.
type Generator struct {
	fit    Fit
	layers int
	cdf    []float64    // [experts]
	order  [][]int32    // [layers][experts]: expert by rank
	dice   []*rand.Rand // [layers]
	owe    []float64    // [layers]: parts of swaps
	stamp  []int32      // [experts]: mark of the draw that took it
	mark   int32
}

// NewGenerator makes a generator for a model.
func NewGenerator(s expert.Shape, fit Fit, seed uint64) (*Generator, error) {
	if !(fit.Skew >= 0 && fit.Skew <= 4) || !(fit.Drift >= 0 && fit.Drift <= 1) {
		return nil, fmt.Errorf("skew %g and drift %g: between 0 and 4, and 0 and 1, can be: %w", fit.Skew, fit.Drift, ErrRouting)
	}
	g := &Generator{fit: fit, layers: s.Layers, cdf: make([]float64, s.Experts), stamp: make([]int32, s.Experts), owe: make([]float64, s.Layers)}
	sum := 0.0
	for r := range g.cdf {
		sum += math.Pow(float64(r+1), -fit.Skew)
		g.cdf[r] = sum
	}
	for l := range s.Layers {
		dice := rand.New(rand.NewPCG(seed, uint64(l)))
		order := make([]int32, s.Experts)
		for i, e := range dice.Perm(s.Experts) {
			order[i] = int32(e)
		}
		g.dice, g.order = append(g.dice, dice), append(g.order, order)
	}
	return g, nil
}

// Draw implements Router.
func (g *Generator) Draw(layer int, ids []int32) {
	dice, order := g.dice[layer], g.order[layer]
	g.mark++
	for i := 0; i < len(ids); {
		e := order[g.rank(dice)]
		if g.stamp[e] == g.mark {
			continue
		}
		g.stamp[e] = g.mark
		ids[i] = e
		i++
	}
	// Two experts change rank with each swap.
	for g.owe[layer] += g.fit.Drift * float64(len(order)) / 2; g.owe[layer] >= 1; g.owe[layer]-- {
		a, b := dice.IntN(len(order)), dice.IntN(len(order))
		order[a], order[b] = order[b], order[a]
	}
}

// rank draws one rank by weight.
func (g *Generator) rank(dice *rand.Rand) int {
	return min(sort.SearchFloat64s(g.cdf, dice.Float64()*g.cdf[len(g.cdf)-1]), len(g.cdf)-1)
}

// Assumptions implements Router.
func (g *Generator) Assumptions() string {
	return fmt.Sprintf("routing is generated: one topic, weight of the expert of rank r is r^-%g, %g %% of the ranks change with each token; fitted to K3's published overlap with the previous token (about 0.3) and growth of the union",
		g.fit.Skew, 100*g.fit.Drift)
}

// Replayed is recorded routing. When it ends it begins anew.
type Replayed struct {
	sets [][][]int // [layers of the model][tokens]
	at   []int
}

// NewReplayed takes the single tokens of a trace; its prompts, read many rows at
// once, are left out. The trace must be of a model of this shape.
func NewReplayed(s expert.Shape, t *expert.Trace) (*Replayed, error) {
	if t.Layers > s.Layers || t.Experts > s.Experts {
		return nil, fmt.Errorf("the trace has %d layers of %d experts, the model %d of %d: %w", t.Layers, t.Experts, s.Layers, s.Experts, ErrRouting)
	}
	r := &Replayed{sets: make([][][]int, s.Layers), at: make([]int, s.Layers)}
	for i := range t.Sets {
		set := &t.Sets[i]
		one := len(set.Experts) == s.TopK
		for _, n := range set.Rows {
			one = one && n == 1
		}
		if one {
			r.sets[set.Layer] = append(r.sets[set.Layer], set.Experts)
		}
	}
	for l := s.Dense; l < s.Layers; l++ {
		if len(r.sets[l]) == 0 {
			return nil, fmt.Errorf("the trace has no token with %d experts in layer %d: %w", s.TopK, l, ErrRouting)
		}
	}
	return r, nil
}

// Draw implements Router.
func (r *Replayed) Draw(layer int, ids []int32) {
	set := r.sets[layer][r.at[layer]%len(r.sets[layer])]
	r.at[layer]++
	for i := range ids {
		ids[i] = int32(set[i])
	}
}

// Assumptions implements Router.
func (r *Replayed) Assumptions() string {
	return fmt.Sprintf("routing is recorded: %d tokens, again from the start where a run is longer", len(r.sets[len(r.sets)-1]))
}

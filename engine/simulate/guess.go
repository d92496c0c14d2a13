package simulate

import (
	"math/bits"
	"math/rand/v2"

	"deltafin/engine/expert"
)

// guesser stands for the router that is asked before its time: of the experts that
// a layer will choose it names a part, the first of them more surely, and others in
// place of the rest.
type guesser struct {
	recall float64
	k      int
	dice   *rand.Rand
	cands  []expert.Candidate
	named  map[int32]bool
}

func (g *guesser) init(s expert.Shape, recall float64, seed uint64) {
	*g = guesser{recall: recall, k: s.TopK, dice: rand.New(rand.NewPCG(seed, 1<<32)), named: map[int32]bool{}}
}

// candidates is the guess for the layer that was just drawn, with the classes that
// the engine gives: the rank for one row, the number of votes for several.
func (g *guesser) candidates(r *run, rows int) []expert.Candidate {
	experts := r.model.Experts.Experts
	g.cands = g.cands[:0]
	clear(g.named)
	add := func(e int32, class int) {
		if !g.named[e] {
			g.named[e] = true
			g.cands = append(g.cands, expert.Candidate{Expert: e, Class: uint8(class)})
		}
	}
	if rows > 1 {
		// Votes of many rows are steadier than one row's.
		for _, w := range r.want {
			if g.dice.Float64() < 1-(1-g.recall)/float64(min(w.Rows, 8)) {
				add(w.Expert, expert.Classes/2+min(bits.Len32(uint32(w.Rows)), expert.Classes/2-1))
			}
		}
		return g.cands
	}
	most := g.k + g.k/2
	for i := range most {
		// From 1.3 times the recall at the first rank to 0.7 times at the last.
		p := g.recall * (1.3 - 0.6*float64(i)/float64(g.k))
		e := int32(g.dice.IntN(experts))
		if i < len(r.want) && g.dice.Float64() < p {
			e = r.want[i].Expert
		}
		add(e, min(i, expert.Classes/2-1))
	}
	return g.cands
}

package sample

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Params says how tokens are chosen. The zero value is greedy.
type Params struct {
	// Temperature divides the logits; 0 is greedy: always the likeliest token,
	// the lowest id among equals.
	Temperature float64
	// TopP keeps the smallest set of likeliest tokens whose probabilities reach
	// it; 0 or 1 keeps all.
	TopP float64
	// Seed, with the position, decides every choice.
	Seed uint64
}

// Default is the sampling of the hosted service (spec 5.5), for models whose
// generation_config names none.
var Default = Params{Temperature: 1.0, TopP: 0.95}

// ErrNotNumbers is returned when no logit is a number: the arithmetic before
// went wrong, any token would be made up.
var ErrNotNumbers = errors.New("the logits hold no finite number; the weights or the arithmetic are damaged")

// Validate reports a field that is out of range.
func (p Params) Validate() error {
	if !(p.Temperature >= 0 && p.Temperature <= 100) {
		return fmt.Errorf("temperature %v is not between 0 and 100", p.Temperature)
	}
	if !(p.TopP >= 0 && p.TopP <= 1) {
		return fmt.Errorf("top-p %v is not between 0 and 1", p.TopP)
	}
	return nil
}

// A Sampler chooses tokens. It keeps buffers between calls and serves one caller
// at a time.
type Sampler struct {
	Params
	prob  []float64 // [vocabulary], unnormalised
	order []int32   // candidates, likeliest first
}

// Pick returns the token for position pos of its sequence, from the logits
// [vocabulary]. NaN logits are never chosen.
func (s *Sampler) Pick(logits []float32, pos int) (int, error) {
	best := argmax(logits)
	if best < 0 || math.IsInf(float64(logits[best]), 0) {
		return 0, fmt.Errorf("position %d: %w", pos, ErrNotNumbers)
	}
	if s.Temperature == 0 {
		return best, nil
	}
	total := s.weigh(logits, logits[best])
	top := s.TopP
	if top == 0 {
		top = 1
	}
	s.candidates(total, top)
	// The nucleus: the shortest prefix whose mass reaches top.
	mass, n := 0.0, 0
	for n < len(s.order) && (n == 0 || mass < top*total) {
		mass += s.prob[s.order[n]]
		n++
	}
	at := Uniform(s.Seed, pos) * mass
	for _, id := range s.order[:n] {
		at -= s.prob[id]
		if at < 0 {
			return int(id), nil
		}
	}
	return int(s.order[n-1]), nil // rounding left a crumb
}

// argmax is the lowest index of the largest value, -1 if there is no number.
func argmax(x []float32) int {
	best := -1
	for i, v := range x {
		if v == v && (best < 0 || v > x[best]) {
			best = i
		}
	}
	return best
}

// weigh fills prob with e^((logit-top)/temperature) and returns their sum.
func (s *Sampler) weigh(logits []float32, top float32) float64 {
	if cap(s.prob) < len(logits) {
		s.prob = make([]float64, len(logits))
	}
	s.prob = s.prob[:len(logits)]
	total := 0.0
	for i, v := range logits {
		s.prob[i] = 0
		if v == v {
			s.prob[i] = exp((float64(v) - float64(top)) / s.Temperature)
		}
		total += s.prob[i]
	}
	return total
}

// candidates fills order with the tokens that may belong to the nucleus, sorted.
// All tokens less likely than (1-top)/vocabulary hold less than 1-top together,
// so the others hold the nucleus: usually a handful, and only those are sorted.
func (s *Sampler) candidates(total, top float64) {
	least := (1 - top) * total / float64(len(s.prob))
	s.order = s.order[:0]
	for i, p := range s.prob {
		if p > 0 && p >= least {
			s.order = append(s.order, int32(i))
		}
	}
	slices.SortFunc(s.order, func(a, b int32) int {
		switch pa, pb := s.prob[a], s.prob[b]; {
		case pa > pb:
			return -1
		case pa < pb:
			return 1
		}
		return int(a - b)
	})
}

// Uniform is the random number of a position: in [0, 1), a function of its
// arguments alone (the finaliser of SplitMix64 over a Weyl sequence, twice).
func Uniform(seed uint64, pos int) float64 {
	return float64(mix(mix(seed)+uint64(pos)*0x9E3779B97F4A7C15)>>11) / (1 << 53)
}

func mix(x uint64) uint64 {
	x += 0x9E3779B97F4A7C15
	x = (x ^ x>>30) * 0xBF58476D1CE4E5B9
	x = (x ^ x>>27) * 0x94D049BB133111EB
	return x ^ x>>31
}

// exp is e^x for x <= 0. The library's exponential is not the same on every
// processor; this one is: every product is rounded before it is added (the
// conversions keep the compiler from fusing them). Its error is below 2 ulp.
func exp(x float64) float64 {
	if x < -745 {
		return 0
	}
	const hi, lo = 6.93147180369123816490e-01, 1.90821492927058770002e-10 // ln 2
	n := math.Round(float64(x * math.Log2E))
	r := float64(x-float64(n*hi)) - float64(n*lo)
	p := 1.0 / 6227020800 // 1/13!
	for _, f := range [...]float64{479001600, 39916800, 3628800, 362880, 40320, 5040, 720, 120, 24, 6, 2, 1, 1} {
		p = float64(p*r) + 1/f
	}
	return math.Ldexp(p, int(n))
}

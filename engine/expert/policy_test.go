package expert

import (
	"math"
	"math/rand/v2"
	"testing"
)

// slow is a Policy by definition: heats decay one by one, the victim is searched.
type slow struct {
	heat   []float64
	pins   []int
	cached []bool
	limit  int
}

func (s *slow) age(h float64) {
	for i := range s.heat {
		s.heat[i] *= math.Exp2(-h)
	}
}

func (s *slow) len() int {
	n := 0
	for _, c := range s.cached {
		if c {
			n++
		}
	}
	return n
}

func (s *slow) offer(key int) (int, bool) {
	if s.cached[key] {
		return -1, true
	}
	victim := -1
	if s.len() >= s.limit {
		for k, c := range s.cached {
			if c && s.pins[k] == 0 && (victim < 0 || s.heat[k] < s.heat[victim]) {
				victim = k
			}
		}
		if victim < 0 || s.heat[victim] >= s.heat[key] {
			return -1, false
		}
		s.cached[victim] = false
	}
	s.cached[key] = true
	return victim, true
}

// TestPolicyIsItsDefinition runs random operations against the definition. Ages
// are whole half-lives, so that both sides compute exactly.
func TestPolicyIsItsDefinition(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 4))
		keys, limit := 1+rng.IntN(40), rng.IntN(20)
		p := NewPolicy(keys, limit)
		s := &slow{heat: make([]float64, keys), pins: make([]int, keys), cached: make([]bool, keys), limit: limit}
		for step := range 3000 {
			key := rng.IntN(keys)
			switch rng.IntN(8) {
			case 0:
				h := float64(rng.IntN(2))
				p.Age(h)
				s.age(h)
			case 1, 2:
				n := float64(1 + rng.IntN(3))
				p.Count(key, n)
				s.heat[key] += n
			case 3:
				p.Pin(key)
				s.pins[key]++
			case 4:
				if s.pins[key] > 0 {
					p.Unpin(key)
					s.pins[key]--
				}
			case 5:
				if rng.IntN(4) == 0 {
					p.Remove(key)
					s.cached[key] = false
				}
			default:
				v, ok := p.Offer(key)
				wv, wok := s.offer(key)
				if v != wv || ok != wok {
					t.Fatalf("seed %d, step %d: Offer(%d) = %d, %v, want %d, %v", seed, step, key, v, ok, wv, wok)
				}
			}
			if p.Len() != s.len() || p.Cached(key) != s.cached[key] {
				t.Fatalf("seed %d, step %d: %d cached, want %d", seed, step, p.Len(), s.len())
			}
			if math.Abs(p.Heat(key)-s.heat[key]) > 1e-9*(1+s.heat[key]) {
				t.Fatalf("seed %d, step %d: heat of %d is %v, want %v", seed, step, key, p.Heat(key), s.heat[key])
			}
		}
	}
}

// TestPolicyOutlivesItsScale: order survives the scaling of all heats.
func TestPolicyOutlivesItsScale(t *testing.T) {
	p := NewPolicy(5, 3)
	for k := range 5 {
		p.Count(k, float64(k+1))
	}
	for k := range 3 {
		p.Offer(k)
	}
	p.Age(600)
	p.Age(600)
	if p.step != 1 {
		t.Fatalf("step is %v after 1200 half-lives", p.step)
	}
	p.Count(1, 1)
	if v, ok := p.Offer(3); ok {
		t.Errorf("a key of no heat threw out %d", v)
	}
	p.Count(3, 0.5)
	if v, ok := p.Offer(3); v != 0 || !ok {
		t.Errorf("a warm key threw out %d, %v; want key 0", v, ok)
	}
}

// access is one use as a store makes it.
func access(p *Policy, key int) (hit bool) {
	hit = p.Cached(key)
	p.Offer(key)
	p.Count(key, 1)
	return hit
}

// TestPolicyHasNoCliff: a cycle one key longer than the cache is where least
// recently used finds nothing. Here all but the share that cannot fit hits.
func TestPolicyHasNoCliff(t *testing.T) {
	for _, limit := range []int{1, 5, 50, 99} {
		p := NewPolicy(100, limit)
		hits := 0
		for range 50 {
			for key := range 100 {
				p.Age(1.0 / 6400)
				if access(p, key) {
					hits++
				}
			}
		}
		if want := 49 * limit; hits != want {
			t.Errorf("cache of %d under a cycle of 100: %d hits of 5000, want %d", limit, hits, want)
		}
	}
}

// TestPolicyFollowsTheTopic: when use moves to other keys, the cache does too.
func TestPolicyFollowsTheTopic(t *testing.T) {
	p := NewPolicy(200, 20)
	rng := rand.New(rand.NewPCG(1, 2))
	for round := range 2 {
		hits := 0
		for i := range 4000 {
			p.Age(1.0 / 500)
			key := round*100 + rng.IntN(20)
			if access(p, key) && i >= 3000 {
				hits++
			}
		}
		if hits < 990 {
			t.Errorf("topic %d: %d hits in the last 1000 uses of as many keys as are cached", round, hits)
		}
	}
}

func BenchmarkPolicyUse(b *testing.B) {
	p := NewPolicy(82432, 20000)
	rng := rand.New(rand.NewPCG(1, 2))
	for b.Loop() {
		p.Age(1e-6)
		access(p, min(rng.IntN(82432), rng.IntN(82432)))
	}
}

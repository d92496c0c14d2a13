package sample

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func pick(t *testing.T, p Params, logits []float32, pos int) int {
	t.Helper()
	s := Sampler{Params: p}
	id, err := s.Pick(logits, pos)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestGreedyTakesTheLowestOfEquals(t *testing.T) {
	nan := float32(math.NaN())
	for _, c := range []struct {
		logits []float32
		want   int
	}{
		{[]float32{1, 3, 2, 3}, 1},
		{[]float32{nan, -5, nan, -4}, 3},
		{[]float32{float32(math.Inf(-1)), -7}, 1},
	} {
		if got := pick(t, Params{}, c.logits, 0); got != c.want {
			t.Errorf("greedy over %v chose %d, want %d", c.logits, got, c.want)
		}
	}
}

func TestNoNumberIsAnError(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, logits := range [][]float32{{nan, nan}, {}, {1, inf}, {-inf, -inf}} {
		s := Sampler{Params: Default}
		if _, err := s.Pick(logits, 7); !errors.Is(err, ErrNotNumbers) {
			t.Errorf("%v: %v, want ErrNotNumbers", logits, err)
		}
	}
}

// TestChoicesFollowTheProbabilities counts choices over many positions against
// the nucleus computed the plain way.
func TestChoicesFollowTheProbabilities(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, p := range []Params{{Temperature: 1, TopP: 0.9}, {Temperature: 0.5, TopP: 1}, {Temperature: 2, TopP: 0.6}, {Temperature: 1}} {
		logits := make([]float32, 50)
		for i := range logits {
			logits[i] = float32(r.NormFloat64() * 2)
		}
		want := nucleus(logits, p)
		const draws = 40000
		got := make([]float64, len(logits))
		s := Sampler{Params: p}
		for pos := range draws {
			id, err := s.Pick(logits, pos)
			if err != nil {
				t.Fatal(err)
			}
			got[id] += 1.0 / draws
		}
		for i := range want {
			if want[i] == 0 && got[i] != 0 {
				t.Errorf("%+v: token %d is outside the nucleus and was chosen", p, i)
			}
			// Four standard deviations of a count.
			if d := 4 * math.Sqrt(want[i]*(1-want[i])/draws); math.Abs(got[i]-want[i]) > d {
				t.Errorf("%+v: token %d chosen with frequency %.4f, probability %.4f", p, i, got[i], want[i])
			}
		}
	}
}

func nucleus(logits []float32, p Params) []float64 {
	prob := make([]float64, len(logits))
	order := make([]int, len(logits))
	sum := 0.0
	for i, v := range logits {
		order[i] = i
		prob[i] = math.Exp(float64(v) / p.Temperature)
		sum += prob[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		if prob[a] > prob[b] {
			return -1
		}
		return 1
	})
	top, mass := p.TopP, 0.0
	if top == 0 {
		top = 1
	}
	out := make([]float64, len(logits))
	for _, i := range order {
		if mass >= top*sum {
			break
		}
		mass += prob[i]
		out[i] = prob[i]
	}
	for i := range out {
		out[i] /= mass
	}
	return out
}

// TestChoiceIsAFunctionOfSeedAndPosition: the sampler's history plays no part.
func TestChoiceIsAFunctionOfSeedAndPosition(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 300)
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	s := Sampler{Params: Params{Temperature: 1, TopP: 0.95, Seed: 42}}
	var run []int
	for pos := range 200 {
		id, err := s.Pick(logits, pos)
		if err != nil {
			t.Fatal(err)
		}
		run = append(run, id)
	}
	for _, pos := range []int{199, 0, 57, 57, 120} {
		if got := pick(t, s.Params, logits, pos); got != run[pos] {
			t.Errorf("position %d alone gives %d, in the run %d", pos, got, run[pos])
		}
	}
	other := s.Params
	other.Seed++
	same := 0
	for pos := range 200 {
		if pick(t, other, logits, pos) == run[pos] {
			same++
		}
	}
	if same > 40 {
		t.Errorf("another seed made %d of 200 choices alike", same)
	}
}

// TestUniformIsPinned: these numbers are part of every saved thread.
func TestUniformIsPinned(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		pos  int
		want float64
	}{{0, 0, 0.65244848637403219}, {42, 1000, 0.69525983983232564}} {
		if got := Uniform(c.seed, c.pos); got != c.want {
			t.Errorf("Uniform(%d, %d) = %v, want %v", c.seed, c.pos, got, c.want)
		}
	}
}

func TestExpIsClose(t *testing.T) {
	for x := 0.0; x > -745; x -= 0.0371 {
		got, want := exp(x), math.Exp(x)
		if d := math.Abs(got - want); d > 2*(math.Nextafter(want, 1)-want) {
			t.Fatalf("exp(%v) = %v, want %v", x, got, want)
		}
	}
	if exp(0) != 1 || exp(-1e9) != 0 {
		t.Error("exp at its ends")
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []Params{{Temperature: -1}, {Temperature: math.NaN()}, {TopP: 1.5}, {TopP: -0.1}, {Temperature: 1e9}} {
		if p.Validate() == nil {
			t.Errorf("%+v passed", p)
		}
	}
	if err := Default.Validate(); err != nil {
		t.Error(err)
	}
}

func FuzzPick(f *testing.F) {
	f.Add([]byte{0, 0, 128, 63, 0, 0, 0, 64}, 1.0, 0.9, uint64(1), 3)
	f.Add([]byte{0, 0, 192, 127, 0, 0, 128, 255}, 0.1, 0.0, uint64(1), 0)
	f.Fuzz(func(t *testing.T, data []byte, temp, top float64, seed uint64, pos int) {
		p := Params{temp, top, seed}
		if p.Validate() != nil {
			return
		}
		var logits []float32
		for ; len(data) >= 4; data = data[4:] {
			logits = append(logits, math.Float32frombits(uint32(data[0])|uint32(data[1])<<8|uint32(data[2])<<16|uint32(data[3])<<24))
		}
		s := Sampler{Params: p}
		id, err := s.Pick(logits, pos)
		if err == nil && (id < 0 || id >= len(logits) || logits[id] != logits[id]) {
			t.Errorf("chose %d of %v", id, logits)
		}
	})
}

func BenchmarkPick163840(b *testing.B) {
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 163840)
	for i := range logits {
		logits[i] = float32(r.NormFloat64() * 3)
	}
	s := Sampler{Params: Default}
	for pos := 0; b.Loop(); pos++ {
		if _, err := s.Pick(logits, pos); err != nil {
			b.Fatal(err)
		}
	}
}

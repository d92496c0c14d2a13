package simulate

import (
	"errors"
	"testing"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
)

// small is a model of four layers, the first dense, with eight experts of which two
// are used.
func small(t *testing.T) *Model {
	t.Helper()
	c := k3Config()
	c.Layers, c.Hidden, c.Latent, c.ExpertIntermediate, c.Experts, c.TopK = 4, 256, 128, 128, 8, 2
	c.MLALayer = []bool{false, false, false, true}
	m, err := NewModel("small", c)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// passOf is a token that uses experts e and e+1 in all layers, foreseen or not.
func passOf(m *Model, e int32, foreseen bool) Pass {
	p := Pass{Rows: 1, Head: true, Layers: make([]Asked, len(m.Layers))}
	for l := m.Experts.Dense; l < len(m.Layers); l++ {
		p.Layers[l].Want = []expert.Want{{Expert: e, Rows: 1}, {Expert: e + 1, Rows: 1}}
		if foreseen {
			p.Layers[l].Guess = []expert.Candidate{{Expert: e}, {Expert: e + 1, Class: 1}}
		}
	}
	return p
}

// TestReplayTakesWhatItIsTold: a replay asks for what was recorded, and its time is
// that of the measured arithmetic and of the reads, to the microsecond.
func TestReplayTakesWhatItIsTold(t *testing.T) {
	model := small(t)
	m := &Machine{
		Name: "one drive", RAM: 64 << 30, Bandwidth: 1e12, Gflops: 1e6, Overlap: 2,
		Drives: []Drive{{Name: "d", Rate: 1000 * float64(model.Experts.Bytes)}}, // a millisecond for each
	}
	cost := &PassCost{Layers: make([]LayerCost, 4), Head: 70 * time.Microsecond, Wave: 10 * time.Microsecond, Expert: 2 * time.Microsecond, Row: time.Microsecond}
	for i := range cost.Layers {
		cost.Layers[i] = LayerCost{Attention: 100 * time.Microsecond, Beside: 20 * time.Microsecond, After: 5 * time.Microsecond}
	}
	cost.Layers[0] = LayerCost{Attention: 300 * time.Microsecond}
	o := Options{Cache: 1 << 30, NoAhead: true, Unmeasured: true, Arithmetic: &Arithmetic{map[int]*PassCost{1: cost}}}
	phases := [][]Pass{{passOf(model, 0, false)}, {passOf(model, 0, false), passOf(model, 4, false)}}
	got, err := Replay(t.Context(), m, model, phases, o)
	if err != nil {
		t.Fatal(err)
	}
	base := 300*time.Microsecond + 3*125*time.Microsecond + 70*time.Microsecond
	hits := base + 3*(10+2*2+2)*time.Microsecond
	// Two reads of a millisecond; what runs beside them hides, the first expert is
	// computed during the second read.
	misses := base + 3*(2000-20+13)*time.Microsecond
	for i, want := range []struct {
		took      time.Duration
		hit, miss int64
	}{{misses, 0, 6}, {hits + misses, 6, 6}} {
		r := got[i]
		if d := (r.Elapsed - want.took).Abs(); d > time.Microsecond {
			t.Errorf("phase %d took %v, want %v", i, r.Elapsed, want.took)
		}
		if r.Counts.Hit != want.hit || r.Counts.Missed != want.miss || r.Read != want.miss*model.Experts.Bytes {
			t.Errorf("phase %d: %+v and %d bytes, want %d hits and %d misses", i, r.Counts, r.Read, want.hit, want.miss)
		}
	}
}

// TestReplayAsksBeforehand: recorded guesses are read ahead, and mistakes tell.
func TestReplayAsksBeforehand(t *testing.T) {
	model := small(t)
	m := &Machine{
		Name: "one drive", RAM: 64 << 30, Bandwidth: 1e9, Gflops: 1, Overlap: 4,
		Drives: []Drive{{Name: "a", Rate: 1e8}, {Name: "b", Rate: 1e8}},
	}
	var passes []Pass
	for i := range 24 {
		passes = append(passes, passOf(model, int32(i*2%8), true))
	}
	run := func(x Mistake) *Result {
		slots := int64(2*len(m.Drives) + 10)
		r, err := Replay(t.Context(), m, model, [][]Pass{passes}, Options{Cache: slots << 20, Mistake: x})
		if err != nil {
			t.Fatal(err)
		}
		return r[0]
	}
	right := run(NoMistake)
	if c := &right.Counts; c.InTime == 0 || c.Foreseen != c.Judged {
		t.Errorf("guesses that are right: %+v", *c)
	}
	if unspread := run(Unspread); unspread.Drives[0].Read != unspread.Read || right.Drives[0].Read == right.Read {
		t.Errorf("%d bytes of %d come from the first drive, without the mistake %d", unspread.Drives[0].Read, unspread.Read, right.Drives[0].Read)
	}
}

// TestReplayRefusesWhatDoesNotFit: recordings of other models, arithmetic that lacks
// a pass, and models whose dense layers do not come first.
func TestReplayRefusesWhatDoesNotFit(t *testing.T) {
	model := small(t)
	m, err := Example("pc192")
	if err != nil {
		t.Fatal(err)
	}
	short := passOf(model, 0, false)
	short.Layers = short.Layers[:3]
	for what, c := range map[string]struct {
		pass Pass
		o    Options
	}{
		"a layer less":    {short, Options{}},
		"no cost of rows": {passOf(model, 0, false), Options{Arithmetic: &Arithmetic{map[int]*PassCost{2: {}}}}},
	} {
		if _, err := Replay(t.Context(), m, model, [][]Pass{{c.pass}}, c.o); !errors.Is(err, ErrRouting) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var c checkpoint.Config = *k3Config()
	c.MoEFreq = 2
	if _, err := NewModel("every second", &c); !errors.Is(err, ErrRouting) {
		t.Errorf("experts in every second layer: %v", err)
	}
}

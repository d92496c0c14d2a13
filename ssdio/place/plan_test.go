package place

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"deltafin/ssdio"
)

// modelOf describes objects without any bytes behind them.
func modelOf(sizes ...int) *Model {
	m := &Model{Fingerprint: testPrint(1), Dir: "."}
	for i, n := range sizes {
		m.Objects = append(m.Objects, Object{
			Key: ssdio.Key{Layer: int32(i / 100), Expert: int32(i % 100)}, Size: int64(n),
			Extents: []Extent{{"f", 0, int64(n)}},
		})
	}
	return m
}

func someDrives(rng *rand.Rand, n int, total int64) []Candidate {
	out := make([]Candidate, n)
	for i := range out {
		out[i] = Candidate{
			ID: fmt.Sprintf("%032x", i+1), Name: fmt.Sprintf("d%d", i),
			Speed: 1e8 * math.Exp2(4*rng.Float64()), Room: int64(float64(total) * 1.5 * rng.Float64()),
		}
	}
	return out
}

// TestPlansHold: over random models and drives every plan covers every byte of
// every object, keeps to the room, and gives the rate it promises.
func TestPlansHold(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	planned, refused := 0, 0
	for range 400 {
		sizes := repeat(20+rng.IntN(60), 1+rng.IntN(20*ssdio.BlockSize))
		if rng.IntN(3) == 0 {
			sizes = someSizes(40)
		}
		m := modelOf(sizes...)
		drives := someDrives(rng, 1+rng.IntN(6), m.bytes())
		if rng.IntN(4) == 0 {
			drives[rng.IntN(len(drives))].InPlace = true
		}
		o := PlanOptions{Overlap: []float64{0, 0.2, -1}[rng.IntN(3)], PackSize: 8 << 20}
		p, err := NewPlan(m, drives, o)
		room := int64(0)
		for _, d := range drives {
			room += d.Room
			if d.InPlace {
				room += 2 * m.bytes()
			}
		}
		var small *RoomError
		if errors.As(err, &small) {
			refused++
			// Rounding to blocks may cost a block of every object per drive.
			slack := int64(len(drives)) * (int64(len(sizes))*ssdio.BlockSize + 1<<20)
			if room > m.bytes()+slack {
				t.Fatalf("refused although %d bytes of room hold %d: %v", room, m.bytes(), err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		planned++
		checkPlan(t, m, drives, p)
	}
	if planned < 150 || refused < 30 {
		t.Errorf("%d plans and %d refusals: the test tests too little", planned, refused)
	}
}

func checkPlan(t *testing.T, m *Model, drives []Candidate, p *Plan) {
	t.Helper()
	var b ssdio.Builder
	for i := range m.Objects {
		if err := b.Object(m.Objects[i].Key, m.Objects[i].Size, nil); err != nil {
			t.Fatal(err)
		}
	}
	sum, work := 0.0, 0.0
	for i, d := range p.Drives {
		k := newPacking(m, p, i)
		if !d.InPlace && k.written() > drives[i].Room {
			t.Fatalf("drive %d: %d bytes to write, %d of room", i, k.written(), drives[i].Room)
		}
		if d.Work > d.Stripe.Share()+1e-6 {
			t.Fatalf("drive %d: works on %v of a stripe of %v", i, d.Work, d.Stripe.Share())
		}
		sum += d.Speed
		work += d.Work
		f, err := b.File(i, "f", 1<<50)
		if err != nil {
			t.Fatal(err)
		}
		for n := range k.entries {
			e := &k.entries[n]
			if !d.InPlace && e.offset%page != 0 {
				t.Fatalf("drive %d: stripe at offset %d", i, e.offset)
			}
			if err := b.Hold(ssdio.Holding{Key: e.key, From: e.from(), To: e.to(), File: f, Offset: e.offset}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if math.Abs(work-1) > 1e-9 {
		t.Fatalf("the drives' work adds up to %v", work)
	}
	if p.Rate <= 0 || p.Rate > sum*(1+1e-9) {
		t.Fatalf("rate %v of drives of %v together", p.Rate, sum)
	}
	// Widening must not cost: the rate is that of the shares alone.
	for _, d := range p.Drives {
		if d.Work > 1e-12 && d.Speed/d.Work < p.Rate*(1-1e-6) {
			t.Fatalf("rate %v, but a share of %v at %v takes longer", p.Rate, d.Work, d.Speed)
		}
	}
	l := b.Layout()
	if g := l.Gaps(nil); len(g) > 0 {
		t.Fatalf("%d objects are not covered, first %s", len(g), g[0])
	}
}

// TestRateIsTheOptimum compares the closed form with the cut bound that package
// ssdio computes over all sets of drives from the layout itself.
func TestRateIsTheOptimum(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 60 {
		m := modelOf(repeat(200, 16*ssdio.BlockSize)...)
		drives := someDrives(rng, 2+rng.IntN(4), m.bytes())
		for i := range drives {
			drives[i].Room += m.bytes() / 2
		}
		p, err := NewPlan(m, drives, PlanOptions{Overlap: 0.3 * rng.Float64(), PackSize: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		l, speeds := layoutOf(t, m, p)
		if got := l.Ceiling(speeds); math.Abs(got/p.Rate-1) > 0.01 {
			t.Fatalf("plan says %.4g, the layout allows %.4g", p.Rate, got)
		}
		for i := range drives {
			loss := p.Lose(i)
			without := append([]float64(nil), speeds...)
			without[i] = 0
			got := l.Ceiling(without)
			if (got > 0) != (loss.Rate > 0) || (got > 0 && math.Abs(got/loss.Rate-1) > 0.02) {
				t.Fatalf("without drive %d: plan says %.4g (%.3f covered), the layout allows %.4g", i, loss.Rate, loss.Covered, got)
			}
		}
	}
}

func layoutOf(t *testing.T, m *Model, p *Plan) (*ssdio.Layout, []float64) {
	t.Helper()
	var b ssdio.Builder
	for i := range m.Objects {
		if err := b.Object(m.Objects[i].Key, m.Objects[i].Size, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range p.Drives {
		f, err := b.File(i, "f", 1<<50)
		if err != nil {
			t.Fatal(err)
		}
		k := newPacking(m, p, i)
		for n := range k.entries {
			e := &k.entries[n]
			if err := b.Hold(ssdio.Holding{Key: e.key, From: e.from(), To: e.to(), File: f, Offset: e.offset}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return b.Layout(), p.speeds()
}

// TestRateGrowsWithSpeedAndRoom: a faster drive or more room never makes a plan
// slower.
func TestRateGrowsWithSpeedAndRoom(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	for range 200 {
		n := 1 + rng.IntN(6)
		speeds, caps := make([]float64, n), make([]float64, n)
		for i := range speeds {
			speeds[i], caps[i] = 1+9*rng.Float64(), 0.3+0.7*rng.Float64()
		}
		time := func() float64 {
			works := fill(speeds, caps)
			if works == nil {
				return math.Inf(1)
			}
			slowest := 0.0
			for i := range works {
				if works[i] > caps[i]+1e-12 {
					t.Fatalf("share %v over cap %v", works[i], caps[i])
				}
				slowest = max(slowest, works[i]/speeds[i])
			}
			return slowest
		}
		before := time()
		i := rng.IntN(n)
		speeds[i] *= 1 + rng.Float64()
		faster := time()
		caps[i] = min(1, caps[i]+0.2)
		roomier := time()
		if faster > before*(1+1e-9) || roomier > faster*(1+1e-9) {
			t.Fatalf("time per object %v, with a faster drive %v, with more room %v", before, faster, roomier)
		}
	}
}

// TestSharesShift: what a fast but small drive cannot hold goes to the others in
// proportion to their speed.
func TestSharesShift(t *testing.T) {
	got := fill([]float64{1000, 100, 200}, []float64{0.4, 1, 1})
	for i, want := range []float64{0.4, 0.2, 0.4} {
		if math.Abs(got[i]-want) > 1e-12 {
			t.Errorf("shares %v", got)
		}
	}
	if fill([]float64{1, 1}, []float64{0.3, 0.6}) != nil {
		t.Error("0.9 of an object was divided as if it were all")
	}
}

// TestRecordRig: the four drives of the published record run, with room for
// everything, get full copies and lose nothing with any one of them.
func TestRecordRig(t *testing.T) {
	m := modelOf(repeat(896, 17547264)...)
	var drives []Candidate
	for i, s := range []float64{13.6e9, 7.1e9, 7.1e9, 5.7e9} {
		drives = append(drives, Candidate{ID: fmt.Sprintf("%032x", i+1), Name: fmt.Sprint(i), Speed: s, Room: 1 << 44})
	}
	p, err := NewPlan(m, drives, PlanOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(p.Rate-33.5e9) > 1e3 || p.Copies() != 4 {
		t.Errorf("rate %.4g, %.3f copies; want 33.5e9 and 4", p.Rate, p.Copies())
	}
	if l := p.Lose(0); l.Covered != 1 || math.Abs(l.Rate-19.9e9) > 1e3 {
		t.Errorf("without the fastest: %+v", l)
	}
	// With half of the room each, any one can still be lost.
	for i := range drives {
		drives[i].Room = m.bytes()*6/10 + 1<<25
	}
	if p, err = NewPlan(m, drives, PlanOptions{}); err != nil {
		t.Fatal(err)
	}
	for i := range drives {
		if l := p.Lose(i); l.Covered != 1 || l.Rate <= 0 {
			t.Errorf("without drive %d: %+v; stripes %v", i, l, p.spans(nil))
		}
	}
	if math.Abs(p.Rate-33.5e9) > 1e5 {
		t.Errorf("rate %.4g with 60%% of the room, want 33.5e9", p.Rate)
	}
	// Exact shares: a quarter of nothing is left of any.
	if p, err = NewPlan(m, drives, PlanOptions{Overlap: -1}); err != nil {
		t.Fatal(err)
	}
	if c := p.Copies(); math.Abs(c-1) > 1e-6 {
		t.Errorf("exact shares make %.4f copies", c)
	}
	if l := p.Lose(0); l.Rate != 0 || math.Abs(l.Covered-(1-13.6/33.5)) > 1e-3 {
		t.Errorf("without the fastest of exact shares: %+v", l)
	}
}

// TestRefusesWithNumbers: a model that does not fit is refused with what it
// needs, what there is and which drive has what.
func TestRefusesWithNumbers(t *testing.T) {
	m := modelOf(repeat(100, 1<<20)...)
	_, err := NewPlan(m, []Candidate{
		{ID: fmt.Sprintf("%032x", 1), Name: "left", Speed: 1, Room: 30 << 20},
		{ID: fmt.Sprintf("%032x", 2), Name: "right", Speed: 1, Room: 20 << 20},
	}, PlanOptions{})
	var small *RoomError
	if !errors.As(err, &small) {
		t.Fatalf("got %v, want a RoomError", err)
	}
	if small.Have != 50<<20 || small.Need < 100<<20 || small.Need > 101<<20 || len(small.Drives) != 2 || small.Drives[0] != (RoomOf{"left", 30 << 20}) {
		t.Errorf("%+v", small)
	}
	for _, bad := range [][]Candidate{
		nil,
		{{ID: "x", Speed: 1}},
		{{ID: fmt.Sprintf("%032x", 1), Speed: 0, Room: 1 << 40}},
		{{ID: fmt.Sprintf("%032x", 1), Speed: 1, Room: 1 << 40}, {ID: fmt.Sprintf("%032x", 1), Speed: 1, Room: 1 << 40}},
	} {
		if _, err := NewPlan(m, bad, PlanOptions{}); !errors.Is(err, ErrPlan) {
			t.Errorf("%v: %v, want ErrPlan", bad, err)
		}
	}
	if _, err := NewPlan(&Model{Fingerprint: "no"}, nil, PlanOptions{}); !errors.Is(err, ErrModel) {
		t.Errorf("no model: %v", err)
	}
}

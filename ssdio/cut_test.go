package ssdio

import (
	"math"
	"math/rand/v2"
	"testing"
)

// checkCut fails the test unless the pieces tile [lo,hi) in order and each lies
// within a holding of a drive that may be asked.
func checkCut(t *testing.T, lo, hi int32, hold []holding, est []estimate, ps []piece, ok bool) {
	t.Helper()
	coverable := true
	for b := lo; b < hi; b++ {
		has := false
		for k := range hold {
			has = has || (b >= hold[k].lo && b < hold[k].hi && est[hold[k].drive].rate > 0)
		}
		coverable = coverable && has
	}
	if ok != coverable {
		t.Fatalf("cut says %v, but the range can be covered: %v", ok, coverable)
	}
	if !ok {
		if len(ps) != 0 {
			t.Fatalf("%d pieces of an impossible cut", len(ps))
		}
		return
	}
	at := lo
	for _, p := range ps {
		h := &hold[p.hold]
		if p.lo != at || p.hi <= p.lo {
			t.Fatalf("piece [%d,%d) at %d", p.lo, p.hi, at)
		}
		if p.lo < h.lo || p.hi > h.hi {
			t.Fatalf("piece [%d,%d) of a holding [%d,%d)", p.lo, p.hi, h.lo, h.hi)
		}
		if est[h.drive].rate <= 0 {
			t.Fatalf("piece [%d,%d) for a drive that must not be asked", p.lo, p.hi)
		}
		at = p.hi
	}
	if at != hi {
		t.Fatalf("pieces end at %d, not %d", at, hi)
	}
}

// finish is when the last drive is through.
func finish(hold []holding, est []estimate, ps []piece) float64 {
	blocks := map[int32]float64{}
	for _, p := range ps {
		blocks[hold[p.hold].drive] += float64(p.hi - p.lo)
	}
	last := 0.0
	for d, n := range blocks {
		last = max(last, est[d].ready+n/est[d].rate)
	}
	return last
}

func FuzzCut(f *testing.F) {
	f.Add(uint64(1), int32(0), int32(67), uint8(4))
	f.Add(uint64(2), int32(3), int32(5), uint8(1))
	f.Add(uint64(3), int32(10), int32(9000), uint8(12))
	f.Fuzz(func(t *testing.T, seed uint64, lo, hi int32, n uint8) {
		if lo < 0 || hi < lo || hi-lo > 10000 || hi > 1<<24 {
			t.Skip()
		}
		rng := rand.New(rand.NewPCG(seed, 3))
		hold, est := randomHoldings(rng, hi, int(n%20)+1)
		ps, ok := cutRange(lo, hi, hold, est, nil)
		checkCut(t, lo, hi, hold, est, ps, ok)
	})
}

func randomHoldings(rng *rand.Rand, blocks int32, n int) ([]holding, []estimate) {
	var b Builder
	size := max(int64(blocks), 1) * BlockSize
	key := Key{}
	_ = b.Object(key, size, nil)
	est := make([]estimate, MaxDrives)
	for i := range n {
		drive := rng.IntN(min(n, MaxDrives))
		est[drive] = estimate{ready: rng.ExpFloat64() * math.Pow(10, float64(rng.IntN(6)-4)), rate: rng.ExpFloat64() * math.Pow(10, float64(rng.IntN(8)-2))}
		if rng.IntN(8) == 0 {
			est[drive].rate = 0
		}
		file, _ := b.File(drive, "f", 2*size)
		from := rng.Int64N(size/BlockSize) * BlockSize
		to := min(from+(1+rng.Int64N(size/BlockSize))*BlockSize, size)
		if i%3 == 0 {
			from, to = 0, size
		}
		_ = b.Hold(Holding{Key: key, From: from, To: to, File: file, Offset: int64(rng.IntN(5000))})
	}
	return b.Layout().objects[0].hold, est
}

// TestCutFinishesTogether: with copies everywhere and with overlapping stripes,
// the last drive is through within one block of the ideal.
func TestCutFinishesTogether(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		n := 2 + rng.IntN(4)
		est := make([]estimate, n)
		sum := 0.0
		for i := range est {
			est[i] = estimate{ready: rng.Float64() * 1e-3, rate: 1000 + 9000*rng.Float64()}
			sum += est[i].rate
		}
		const blocks = 200
		hold := make([]holding, n)
		for i := range hold {
			hold[i] = holding{lo: 0, hi: blocks, drive: int32(i)}
		}
		// All work, the ready times included, divided by all rates.
		ideal := blocks / sum
		for _, e := range est {
			ideal += e.ready * e.rate / sum
		}
		ps, ok := cutRange(0, blocks, hold, est, nil)
		checkCut(t, 0, blocks, hold, est, ps, ok)
		slowest := math.Inf(1)
		for _, e := range est {
			slowest = min(slowest, e.rate)
		}
		if got := finish(hold, est, ps); got > ideal+1/slowest {
			t.Fatalf("%d drives: through after %.3g s, ideal %.3g", n, got, ideal)
		}
	}
}

// TestCutFollowsTheSlowDrive: with 20 % overlap a drive at a third of its speed
// keeps only what nobody else has.
func TestCutFollowsTheSlowDrive(t *testing.T) {
	hold := []holding{{lo: 0, hi: 30, drive: 0}, {lo: 20, hi: 50, drive: 1}, {lo: 40, hi: 70, drive: 2}}
	est := []estimate{{rate: 1000}, {rate: 100}, {rate: 1000}}
	ps, ok := cutRange(0, 70, hold, est, nil)
	checkCut(t, 0, 70, hold, est, ps, ok)
	for _, p := range ps {
		if p.hold == 1 && (p.lo < 29 || p.hi > 41) {
			t.Errorf("the slow drive was given [%d,%d)", p.lo, p.hi)
		}
	}
}

func TestTakeOver(t *testing.T) {
	for _, c := range []struct {
		owner, helper estimate
		n, want       float64
	}{
		{estimate{0, 100}, estimate{0, 100}, 10, 5},
		{estimate{0, 100}, estimate{0, 300}, 8, 6},
		{estimate{0, 100}, estimate{1, 100}, 10, 0},   // busy for longer than it all takes
		{estimate{1, 100}, estimate{0, 1000}, 10, 10}, // could do all of it meanwhile
		{estimate{}, estimate{0, 1}, 7, 7},            // the owner is lost
	} {
		if got := takeOver(c.owner, c.helper, c.n); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("takeOver(%v, %v, %v) = %v, want %v", c.owner, c.helper, c.n, got, c.want)
		}
	}
}

func TestEvenly(t *testing.T) {
	for _, c := range [][3]int32{{8, 8, 8}, {9, 8, 5}, {1, 8, 1}, {24, 8, 8}, {17, 8, 6}} {
		if got := evenly(c[0], c[1]); got != c[2] {
			t.Errorf("%d blocks in slices of %d: first has %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// BenchmarkCut is the cost of one plan.
func BenchmarkCut(b *testing.B) {
	hold := make([]holding, 4)
	for i := range hold {
		hold[i] = holding{lo: 0, hi: 67, drive: int32(i)}
	}
	est := []estimate{{0.001, 5000}, {0.002, 2800}, {0.0015, 2800}, {0.001, 2200}}
	var out []piece
	for b.Loop() {
		out, _ = cutRange(0, 67, hold, est, out[:0])
	}
}

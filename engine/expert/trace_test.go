package expert

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const smallTrace = `# model=x
turn,phase,step,layer,slot,expert,weight
0,0,0,1,0,5,0.5
0,0,0,1,1,2,0.4
0,0,0,2,0,5,0.5
0,0,1,1,0,5,0.5
0,1,0,1,0,3,0.5
`

func TestReadTrace(t *testing.T) {
	tr, err := ReadTrace(strings.NewReader(smallTrace))
	if err != nil {
		t.Fatal(err)
	}
	if tr.Steps != 3 || tr.Layers != 3 || tr.Experts != 6 || tr.Choices != 5 || len(tr.Sets) != 4 || tr.Uses() != 5 || tr.Sets[0].Experts[1] != 2 {
		t.Errorf("read as %+v", tr)
	}
	for _, bad := range []string{
		"", "# only comments\n", "turn,phase,step,layer\n0,0,0,0\n", "turn,phase,step,layer,expert\n0,0,0,0\n",
		"turn,phase,step,layer,expert\n0,0,0,0,x\n", "turn,phase,step,layer,expert\n0,0,0,0,-1\n", "turn,phase,step,layer,expert\n0,0,0,0,99999999\n",
	} {
		if _, err := ReadTrace(strings.NewReader(bad)); !errors.Is(err, ErrTrace) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzReadTrace(f *testing.F) {
	f.Add(smallTrace)
	f.Add("turn,phase,step,layer,expert\n0,0,0,0,1\n0,0,0,0,1\n")
	f.Fuzz(func(t *testing.T, text string) {
		tr, err := ReadTrace(strings.NewReader(text))
		if err != nil {
			return
		}
		if tr.Layers*tr.Experts > 1<<20 {
			return
		}
		h := Replay(tr, 2, 0)
		if h.Uses != tr.Uses() || h.Belady < h.LRU || h.Belady < h.LFU || h.Belady < h.Policy || h.Belady > h.Uses {
			t.Errorf("%+v of %q", h, text)
		}
	})
}

// bestHits is the most hits that any policy can have, by trying all of them.
func bestHits(uses []int, cached map[int]bool, cache int) int {
	if len(uses) == 0 {
		return 0
	}
	k, rest := uses[0], uses[1:]
	if cached[k] {
		return 1 + bestHits(rest, cached, cache)
	}
	best := bestHits(rest, cached, cache) // not kept
	with := func(without int) {
		c := map[int]bool{k: true}
		for x := range cached {
			if x != without {
				c[x] = true
			}
		}
		best = max(best, bestHits(rest, c, cache))
	}
	if len(cached) < cache {
		with(-1)
	} else {
		for x := range cached {
			with(x)
		}
	}
	return best
}

// TestBeladyIsTheBest against every possible policy on short traces.
func TestBeladyIsTheBest(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 3))
		tr := &Trace{Layers: 1, Experts: 4, Steps: 9, Choices: 9}
		var uses []int
		for range tr.Steps {
			uses = append(uses, rng.IntN(4))
			tr.Sets = append(tr.Sets, Route{Experts: uses[len(uses)-1:], Rows: []int{1}})
		}
		cache := 1 + rng.IntN(2)
		if got, want := Replay(tr, cache, 0).Belady, bestHits(uses, map[int]bool{}, cache); got != want {
			t.Errorf("seed %d: %d hits with room for %d of %v, the best is %d", seed, got, cache, uses, want)
		}
	}
}

// realTraces opens the recorded traces of real models, if they are there.
func realTraces(t *testing.T) map[string]*Trace {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Skip("no module root found above the working directory")
		}
		dir = up
	}
	names, _ := filepath.Glob(filepath.Join(dir, "..", "shared", "data", "bigmoe-route-trace", "*.route.csv"))
	if len(names) == 0 {
		t.Skip("the recorded routing traces are not here")
	}
	out := map[string]*Trace{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		tr, err := ReadTrace(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[filepath.Base(name)] = tr
	}
	return out
}

// TestPolicyOnRealTraces: below one token's experts LRU finds next to nothing and
// the store's policy does; from there on it is not worse than LRU by more than two
// points of a hundred, and nothing beats Belady.
func TestPolicyOnRealTraces(t *testing.T) {
	for name, tr := range realTraces(t) {
		for _, tokens := range []float64{0.25, 0.5, 0.9, 1.5, 2, 4, 8} {
			h := Replay(tr, int(tokens*tr.PerToken()), 0)
			pc := func(n int) float64 { return 100 * float64(n) / float64(h.Uses) }
			t.Logf("%s, %.2f tokens: LRU %.1f, LFU %.1f, policy %.1f, Belady %.1f %%", name, tokens, pc(h.LRU), pc(h.LFU), pc(h.Policy), pc(h.Belady))
			if h.Belady < max(h.LRU, h.LFU, h.Policy) {
				t.Errorf("%s, %v tokens: something beats Belady: %+v", name, tokens, h)
			}
			if tokens < 1 && (h.Policy <= h.LRU || h.Policy == 0) {
				t.Errorf("%s, %v tokens: policy %d hits, LRU %d", name, tokens, h.Policy, h.LRU)
			}
			if pc(h.Policy) < pc(h.LRU)-2 {
				t.Errorf("%s, %v tokens: policy %.1f %%, LRU %.1f %%", name, tokens, pc(h.Policy), pc(h.LRU))
			}
		}
	}
}

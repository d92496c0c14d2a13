package engine

import (
	"math/rand/v2"
	"os"
	"slices"
	"testing"
)

// follow generates what a script says, token by token, as if the model had chosen it,
// and returns what the answer took.
func follow(t testing.TB, e *Engine, prompt, script []int, to Listener) Result {
	t.Helper()
	req := Request{Tokens: prompt, MaxTokens: len(script), Stop: []int{}}
	res, err := e.answer(t.Context(), e.NewSequence(), req, to, func(a *answering) {
		a.pick = func(_ []float32, pos int) (int, error) { return script[pos-len(prompt)], nil }
	})
	if err != nil || !slices.Equal(res.Tokens, script) {
		t.Fatalf("%v, %v was generated, the script is %v", err, res.Tokens, script)
	}
	return res
}

func BenchmarkX(b *testing.B) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, kind := range []string{"repeat", "free"} {
		b.Run(kind, func(b *testing.B) {
			o := Options{ExpertCache: 300_000, Drives: []string{os.TempDir() + ",name=slow,limit=4MB/s,latency=30us"}}
			plain := open(b, o)
			o.Draft = true
			draft := open(b, o)
			ids := ask(b, plain, "The tall tower of Lund was built in 1912 by Anna Berg. It has 14 bells and 3 doors. Every year 2,000 people climb it.")
			script := slices.Concat(ids, ids, ids)[:200]
			if kind == "free" {
				for i := range script {
					script[i] = rng.IntN(3000)
				}
			}
			var p, d float64
			for b.Loop() {
				p += follow(b, plain, ids, script, Listener{}).DecodeTime.Seconds()
				r := follow(b, draft, ids, script, Listener{})
				d += r.DecodeTime.Seconds()
				b.Logf("plain %.2f draft %.2f %+v", p, d, r.Draft)
			}
			c := draft.drafts.(*draftControl)
			b.Logf("step %v ratio %v right %v", c.step, c.power, c.right)
			b.ReportMetric(p/d, "gain")
		})
	}
}

package engine

import (
	"os"
	"slices"
	"testing"

	"deltafin/engine/sample"
)

// follow generates what a script says, token by token, as if the model had chosen it.
func follow(t testing.TB, e *Engine, prompt, script []int) Result {
	t.Helper()
	req := Request{Tokens: prompt, MaxTokens: len(script), Stop: []int{}}
	res, err := e.answer(t.Context(), e.NewSequence(), req, Listener{}, func(a *answering) {
		a.pick = func(_ []float32, pos int) (int, error) { return script[pos-len(prompt)], nil }
	})
	if err != nil || !slices.Equal(res.Tokens, script) {
		t.Fatalf("%v, %v was generated, the script is %v", err, res.Tokens, script)
	}
	return res
}

// sampled is an answer of the demonstration model.
func sampled(b *testing.B, e *Engine, seed int, temperature float64) Result {
	req := Request{Tokens: ask(b, e, "Tell me a story about a fox."), MaxTokens: 320, Stop: []int{},
		Sampling: sample.Params{Temperature: temperature, TopP: 0.95, Seed: uint64(seed)}}
	res, err := e.Generate(b.Context(), e.NewSequence(), req, Listener{})
	if err != nil {
		b.Fatal(err)
	}
	return res
}

// BenchmarkDraft compares answers with and without drafts, on the demonstration model
// and a drive so slow that it is the bound, in interleaved pairs of new engines, so
// that nothing is known at first. gain is how many times as many tokens per second
// there are with drafts. "copies" is a scripted answer that says what stands in the
// prompt; "story" is the model's own text, to its end and beyond, where it begins to
// repeat itself; "free" is sampled so freely that it hardly does.
func BenchmarkDraft(b *testing.B) {
	o := Options{ExpertCache: 300_000, Drives: []string{os.TempDir() + ",name=slow,limit=10MB/s,latency=30us"}}
	note := "The tall tower of Lund was built in 1912 by Anna Berg. It has 14 bells and 3 doors. Every year 2,000 people climb it. " +
		"The old bridge of Visby was planned in 1874 by Olof Lind, costs 5 coins to cross and is painted every 9 years by two brothers."
	ways := map[string]func(e *Engine, i int) Result{
		"copies": func(e *Engine, _ int) Result {
			ids := ask(b, e, note)
			return follow(b, e, ids, slices.Repeat(ids, 3)[:320])
		},
		"story": func(e *Engine, i int) Result { return sampled(b, e, i, 1) },
		"free":  func(e *Engine, i int) Result { return sampled(b, e, i, 1.5) },
	}
	for _, name := range []string{"copies", "story", "free"} {
		b.Run(name, func(b *testing.B) {
			var took [2]float64
			var d Drafting
			var tokens float64
			run := func(draft bool, i int) Result {
				o.Draft = draft
				e := open(b, o)
				defer e.Close()
				return ways[name](e, i)
			}
			for i := 0; b.Loop(); i++ {
				// Who goes first takes turns.
				for k := range 2 {
					draft := (i+k)%2 == 1
					res := run(draft, i)
					if draft {
						took[1] += res.DecodeTime.Seconds()
						d.Passes, d.Proposed, d.Accepted = d.Passes+res.Draft.Passes, d.Proposed+res.Draft.Proposed, d.Accepted+res.Draft.Accepted
						d.Saved += res.Draft.Saved
						tokens += float64(len(res.Tokens))
					} else {
						took[0] += res.DecodeTime.Seconds()
					}
				}
			}
			b.ReportMetric(took[0]/took[1], "gain")
			b.ReportMetric(1+d.Saved.Seconds()/took[1], "gain-estimated")
			b.ReportMetric(tokens/took[0], "plain-tokens/s")
			b.ReportMetric(float64(d.Passes)/float64(b.N), "passes")
			b.ReportMetric(float64(d.Proposed)/float64(b.N), "proposed")
			b.ReportMetric(float64(d.Accepted)/float64(b.N), "accepted")
		})
	}
}

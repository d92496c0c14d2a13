package engine

import (
	"os"
	"slices"
	"testing"
	"time"

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

// BenchmarkDraft compares answers with and without drafts, on the demonstration model,
// in interleaved pairs of new engines, so that nothing is known at first. gain is how
// many times as many tokens per second there are with drafts, over all and in the median
// of the pairs; of bytes, how many times as many are read without, prompts included. "copies" is a scripted
// answer that says what stands in the prompt; "story" is the model's own text, to its
// end and beyond, where it begins to repeat itself; "free" is sampled so freely that it
// hardly does. Drives are so slow that they are the bound; "mapped" has none.
func BenchmarkDraft(b *testing.B) {
	slow := []string{os.TempDir() + ",name=slow,limit=10MB/s,latency=30us"}
	o := Options{ExpertCache: 300_000, Drives: slow}
	large, blind := o, o
	large.ExpertCache, blind.NoLookahead = 2_000_000, true
	for _, c := range []struct {
		name   string
		o      Options
		answer func(b *testing.B, e *Engine, seed int) Result
	}{
		{"copies", o, copies},
		{"copies-blind", blind, copies},
		{"copies-large-cache", large, copies},
		{"copies-mapped", Options{}, copies},
		{"story", o, func(b *testing.B, e *Engine, seed int) Result { return sampled(b, e, seed, 1) }},
		{"free", o, func(b *testing.B, e *Engine, seed int) Result { return sampled(b, e, seed, 1.5) }},
		{"free-mapped", Options{}, func(b *testing.B, e *Engine, seed int) Result { return sampled(b, e, seed, 1.5) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			var sum [2]Stats
			var read [2]int64
			var ratios []float64
			run := func(seed, with int) time.Duration {
				o := c.o
				o.Draft = with == 1
				e := open(b, o)
				defer e.Close()
				res := c.answer(b, e, seed)
				sum[with] = sum[with].add(e.Stats())
				var st Streaming
				e.Streaming(&st)
				read[with] += st.Drives.Total.Read
				return res.DecodeTime
			}
			for i := 0; b.Loop(); i++ {
				first := i % 2 // who goes first takes turns
				took := [2]time.Duration{}
				took[first] = run(i, first)
				took[1-first] = run(i, 1-first)
				ratios = append(ratios, took[0].Seconds()/took[1].Seconds())
			}
			slices.Sort(ratios)
			d := sum[1].Draft
			b.ReportMetric(sum[0].DecodeTime.Seconds()/sum[1].DecodeTime.Seconds(), "gain")
			b.ReportMetric(ratios[len(ratios)/2], "gain-median")
			b.ReportMetric(d.Gain(sum[1].DecodeTime), "gain-estimated")
			b.ReportMetric(float64(sum[0].Generated)/sum[0].DecodeTime.Seconds(), "plain-tokens/s")
			if c.o.Drives != nil {
				b.ReportMetric(float64(read[0])/float64(read[1]), "gain-bytes")
			}
			for unit, n := range map[string]int64{"passes": d.Passes, "proposed": d.Proposed, "accepted": d.Accepted} {
				b.ReportMetric(float64(n)/float64(b.N), unit)
			}
		})
	}
}

// copies is an answer that says what stands in the prompt, over and over.
func copies(b *testing.B, e *Engine, _ int) Result {
	ids := ask(b, e, "The tall tower of Lund was built in 1912 by Anna Berg. It has 14 bells and 3 doors. Every year 2,000 people climb it. "+
		"The old bridge of Visby was planned in 1874 by Olof Lind, costs 5 coins to cross and is painted every 9 years by two brothers.")
	return follow(b, e, ids, slices.Repeat(ids, 3)[:320])
}

// add is the sum of what a benchmark looks at.
func (s Stats) add(t Stats) Stats {
	s.Generated += t.Generated
	s.DecodeTime += t.DecodeTime
	s.Draft.Passes += t.Draft.Passes
	s.Draft.Proposed += t.Draft.Proposed
	s.Draft.Accepted += t.Draft.Accepted
	s.Draft.Saved += t.Draft.Saved
	return s
}

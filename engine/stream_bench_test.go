package engine

import (
	"os"
	"sync"
	"testing"
	"time"
)

// BenchmarkTwoAtOnce compares one sequence with two that take turns, on the
// demonstration model with the plain Go kernels and a drive so slow that reads and
// arithmetic cost about the same. gain is how many times as many tokens per second
// the two have together as one has alone, in interleaved pairs.
func BenchmarkTwoAtOnce(b *testing.B) {
	e := open(b, Options{
		Kernel: "generic", ExpertCache: 300_000, Drives: []string{os.TempDir() + ",name=slow,limit=12MB/s,latency=30us"},
	})
	const tokens = 60
	run := func(sequences int) (perSecond float64) {
		var group sync.WaitGroup
		start := time.Now()
		for k := range sequences {
			group.Add(1)
			go func() {
				defer group.Done()
				_, err := e.Generate(b.Context(), e.NewSequence(), Request{Tokens: []int{5 + k, 5, 9}, MaxTokens: tokens, Stop: []int{}}, Listener{})
				if err != nil {
					b.Error(err)
				}
			}()
		}
		group.Wait()
		return float64(sequences*tokens) / time.Since(start).Seconds()
	}
	run(2)
	var alone, two float64
	for b.Loop() {
		alone += run(1)
		two += run(2)
	}
	b.ReportMetric(alone/float64(b.N), "alone-tokens/s")
	b.ReportMetric(two/float64(b.N), "two-tokens/s")
	b.ReportMetric(two/alone, "gain")
}

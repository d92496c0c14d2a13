package main

import (
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deltafin/engine/expert"
)

// newTrace works with recordings of which experts a router chose.
func newTrace(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "trace",
		Short: "Try cache policies on recorded routing",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage("trace needs a command: deltafin trace replay FILE")
		},
	}
	c.AddCommand(newTraceReplay(s))
	return c
}

func newTraceReplay(s streams) *cobra.Command {
	var sizes []float64
	var halfLife float64
	c := &cobra.Command{
		Use:   "replay FILE...",
		Short: "Print the hit rates that cache policies reach on routing traces",
		Long: `Replays routing traces through an expert cache of several sizes and prints how many
of the uses hit, in percent: for least recently used (LRU), least frequently used
(LFU), the policy that deltafin uses, and Belady's, which knows the future and
which nothing can beat. Sizes are in tokens: 1 holds as many experts as one token
uses in all layers. A prompt is one pass in which each expert is used once.

A trace is CSV with the columns turn, phase (0: prompt), step, layer and expert.`,
		Example: `  deltafin trace replay routes.csv
  deltafin trace replay --tokens 0.5,1,2,4 --half-life 64 routes.csv`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, files []string) error {
			if len(files) == 0 {
				return usage("no trace was named: deltafin trace replay FILE")
			}
			if !(halfLife > 0 && halfLife < 1e9) {
				return usage("--half-life %v: give a number of tokens above zero", halfLife)
			}
			for _, x := range sizes {
				if !(x >= 0 && x < 1e6) {
					return usage("--tokens %v: give sizes from 0 up", x)
				}
			}
			for _, name := range files {
				if err := replayFile(s, name, sizes, halfLife); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().Float64SliceVar(&sizes, "tokens", []float64{0.25, 0.5, 1, 1.5, 2, 4, 8}, "cache sizes, in experts that one token uses")
	c.Flags().Float64Var(&halfLife, "half-life", expert.DefaultHalfLife, "tokens after which a use counts half in deltafin's policy")
	return c
}

func replayFile(s streams, name string, sizes []float64, halfLife float64) error {
	f, err := os.Open(name)
	if err != nil {
		return usage("%v", err)
	}
	defer f.Close()
	t, err := expert.ReadTrace(f)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	fmt.Fprintf(s.out, "%s: %d tokens, %d uses, %.0f experts of %d layers a token\n", name, t.Steps, t.Uses(), t.PerToken(), t.Layers)
	tab := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "tokens\texperts\tLRU\tLFU\tdeltafin\tBelady\t")
	for _, size := range sizes {
		h := expert.Replay(t, int(size*t.PerToken()), halfLife)
		pc := func(n int) float64 { return 100 * float64(n) / float64(h.Uses) }
		fmt.Fprintf(tab, "%g\t%d\t%.1f\t%.1f\t%.1f\t%.1f\t\n", size, h.Cache, pc(h.LRU), pc(h.LFU), pc(h.Policy), pc(h.Belady))
	}
	return tab.Flush()
}

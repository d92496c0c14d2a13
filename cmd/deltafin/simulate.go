package main

import (
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/simulate"
)

// newSimulate runs the engine's scheduler over K3 in virtual time.
func newSimulate(s streams) *cobra.Command {
	var o simulate.Options
	var prompt int
	var trace, cache, dir string
	var asJSON bool
	var named machineFlags
	var checks checkFlags
	c := &cobra.Command{
		Use:   "simulate MACHINE",
		Short: "Run the cache and the drive scheduler over Kimi K3 in virtual time",
		Long: `Runs the engine's own expert cache, lookahead and drive scheduler over Kimi K3 at its
full size, with arithmetic replaced by its cost and drives by their limits, in
virtual time. No model is needed and no byte is read.

With --check the simulation itself is examined: the engine generates from emulated
drives, and the same is simulated, with the arithmetic that was measured from memory.
Times, bytes and the fates of all uses of experts must agree within 10 %.

` + machineHelp,
		Example: `  deltafin simulate m5max --tokens 1000
  deltafin simulate my-pc.toml --prompt 512
  deltafin simulate --this --drive /mnt/a --drive /mnt/b
  deltafin simulate --check`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			if checks.on {
				return checks.start(c, s, args, dir, asJSON)
			}
			if checks.scratch != "" {
				return usage("--scratch is for --check")
			}
			if o.Tokens < 1 || prompt < 0 || o.Warm < 0 || o.Layers < 0 || !(o.Recall > 0 && o.Recall <= 1) {
				return usage("--tokens must be at least 1, --prompt, --warm and --layers at least 0, and --recall above 0 up to 1")
			}
			m, err := named.machine(c.Context(), s, args)
			if err != nil {
				return err
			}
			model, err := sizesOf(dir)
			if err != nil {
				return err
			}
			if cache != "" {
				if o.Cache, err = parseBytes("--expert-cache", cache); err != nil {
					return err
				}
			}
			if trace != "" {
				if o.Layers != 0 {
					return usage("--layers takes a part of the model, a trace is of all of it: leave one out")
				}
				if o.Router, err = recorded(trace, model); err != nil {
					return err
				}
			}
			var r *simulate.Result
			if prompt > 0 {
				r, err = simulate.Prefill(c.Context(), m, model, prompt, o)
			} else {
				r, err = simulate.Decode(c.Context(), m, model, o)
			}
			if err != nil {
				return ofMachine(err)
			}
			if asJSON {
				return writeJSON(s.out, r)
			}
			return printSimulated(s, m, model, r, prompt > 0)
		},
	}
	c.Flags().IntVar(&o.Tokens, "tokens", 200, "tokens to decode and count")
	c.Flags().IntVar(&o.Warm, "warm", 64, "tokens to decode before, with a cache that was empty")
	c.Flags().IntVar(&prompt, "prompt", 0, "read a prompt of so many tokens instead")
	c.Flags().StringVar(&cache, "expert-cache", "", "memory for experts (default: what memory leaves)")
	c.Flags().StringVar(&trace, "trace", "", "recorded routing (CSV as for trace replay; default: generated)")
	c.Flags().Float64Var(&o.Recall, "recall", 0.6, "share of a token's experts that the lookahead foresees")
	c.Flags().BoolVar(&o.NoAhead, "no-ahead", false, "do not read ahead")
	c.Flags().IntVar(&o.Layers, "layers", 0, "layers that stand for all, for a quick answer (default: all)")
	c.Flags().Uint64Var(&o.Seed, "seed", 1, "of the generated routing")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVarP(&dir, "model", "m", "", "folder of a model whose sizes are taken, or which --check runs (default: Kimi K3, and two small models)")
	_ = c.MarkFlagDirname("model") // fails only for a flag that does not exist
	named.add(c)
	checks.add(c)
	return c
}

// sizesOf is the sizes of the model in a folder, of Kimi K3 without one. The weights
// need not be there.
func sizesOf(dir string) (*simulate.Model, error) {
	if dir == "" {
		return simulate.K3(), nil
	}
	ck, err := checkpoint.Open(dir, checkpoint.IndexOnly())
	if err != nil {
		return nil, err
	}
	defer ck.Close()
	m, err := simulate.NewModel(filepath.Base(filepath.Clean(dir)), ck.Config())
	return m, ofMachine(err)
}

func recorded(name string, model *simulate.Model) (simulate.Router, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("%v", err)
	}
	defer f.Close()
	t, err := expert.ReadTrace(f)
	if err != nil {
		return nil, usage("%s: %v", name, err)
	}
	r, err := simulate.NewReplayed(model.Experts, t)
	if err != nil {
		return nil, usage("%s: %v", name, err)
	}
	return r, nil
}

// printSimulated writes a result for people.
func printSimulated(s streams, m *simulate.Machine, model *simulate.Model, r *simulate.Result, prompt bool) error {
	tab := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(tab, "%s with %s, simulated\n", m.Name, model.Name)
	if prompt {
		fmt.Fprintf(tab, "first token of %d\t%.1f s\n", r.Tokens, r.Elapsed.Seconds())
	} else {
		fmt.Fprintf(tab, "tokens/s\t%.3f over %d tokens\n", r.Rate(), r.Tokens)
	}
	uses := float64(max(r.Counts.Uses(), 1))
	share := func(n int64) float64 { return 100 * float64(n) / uses }
	fmt.Fprintf(tab, "experts\t%.1f %% hit, %.1f %% in time, %.1f %% late, %.1f %% missed\n",
		share(r.Counts.Hit), share(r.Counts.InTime), share(r.Counts.Late), share(r.Counts.Missed))
	fmt.Fprintf(tab, "read\t%.2f GB a token, %.1f %% of it in vain\n", r.PerToken()/1e9,
		100*float64(r.Counts.Wasted)/float64(max(r.Counts.Useful+r.Counts.Wasted, 1)))
	fmt.Fprintf(tab, "time\t%.2f s waiting for drives, %.2f s streaming trunk, %.2f s memory, %.2f s arithmetic\n",
		r.Stall.Seconds(), r.Streaming.Seconds(), r.Memory.Seconds(), r.Compute.Seconds())
	fmt.Fprintf(tab, "memory\t%.1f GB of trunk, %.1f GB of experts\n", float64(r.Trunk)/1e9, float64(r.Cache)/1e9)
	for i := range r.Drives {
		d := &r.Drives[i]
		fmt.Fprintf(tab, "drive %s\t%.1f GB, busy %.0f %%\n", d.Name, float64(d.Read)/r.Factor/1e9, 100*d.Busy.Seconds()/r.Factor/r.Elapsed.Seconds())
	}
	fmt.Fprintln(tab, "\nAssumptions")
	for _, a := range r.Assumptions {
		fmt.Fprintf(tab, "  - %s\n", a)
	}
	return tab.Flush()
}

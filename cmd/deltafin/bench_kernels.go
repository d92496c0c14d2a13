package main

import (
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine/kernel"
	"deltafin/engine/kernel/kernelbench"
	"deltafin/ssdio"
)

// newBenchKernels measures the arithmetic.
func newBenchKernels(s streams) *cobra.Command {
	var level string
	var threads int
	var budget time.Duration
	var asJSON bool
	c := &cobra.Command{
		Use:   "kernels",
		Short: "The arithmetic on the shapes of Kimi K3, against memory and multipliers",
		Long: `Measures every kernel on the shapes of Kimi K3. The limit of each row is what this
machine gives at the same time: its read bandwidth for products with one row, its
peak rate of multiply-adds for products with many. Takes about a minute and 300 MB.`,
		Example: "  deltafin bench kernels\n  deltafin bench kernels --kernel generic --json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if budget <= 0 {
				return usage("--time %v: give a time above zero", budget)
			}
			if threads < 1 {
				return usage("--threads %d: at least 1 is needed", threads)
			}
			table, err := kernel.Select(level)
			if err != nil {
				return usage("--kernel: %v", err)
			}
			arena, err := ssdio.NewArena(kernelbench.WeightBytes, 1, 0) // large pages, as for the experts of a model
			if err != nil {
				return err
			}
			slot := arena.Get()
			defer func() { slot.Free(); arena.Close() }()
			status := newStatus(s)
			rows, err := kernelbench.Run(c.Context(), kernelbench.Options{Level: table, Workers: threads, Budget: budget,
				Weights: slot.Buffer(0, kernelbench.WeightBytes).Bytes(),
				Each:    func(r kernelbench.Row) { status.set("%s: %.4g %s", r.Name, r.Value, r.Unit) }})
			status.clear()
			if err != nil {
				return err
			}
			r := newBenchReport("kernels", map[string]any{"level": table.Name, "threads": threads, "time_s": budget.Seconds(), "arithmetic": kernel.Arithmetic})
			for _, row := range rows {
				r.add(benchRow{Name: row.Name, Value: row.Value, Unit: row.Unit, Limit: row.Limit, Ratio: row.Ratio})
			}
			if asJSON {
				return writeJSON(s.out, r)
			}
			return r.print(s.out)
		},
	}
	c.Flags().StringVar(&level, "kernel", "", "generic, avx2, avx512 or neon (default: the fastest here)")
	c.Flags().IntVar(&threads, "threads", runtime.GOMAXPROCS(0), "workers of the rows on all cores")
	c.Flags().DurationVar(&budget, "time", 250*time.Millisecond, "how long each figure is measured")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

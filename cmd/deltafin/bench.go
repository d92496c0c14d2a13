package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// newBench is the parent of all benchmarks.
func newBench(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "bench NAME",
		Short: "Measure this program against what the machine can do",
		Long: `Each benchmark measures one thing and, in the same run, what the hardware gives
there: figures mean something only beside each other. --json prints one object whose
names are stable, to be compared over time.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newBenchDrives(s), newBenchKernels(s), newBenchDecode(s), newBenchPrefill(s))
	return c
}

// A benchReport is what every benchmark prints: the language of benchmarks.
type benchReport struct {
	Bench   string         `json:"bench"`
	Version string         `json:"version"`
	Machine benchMachine   `json:"machine"`
	Config  map[string]any `json:"config"`
	Results []benchRow     `json:"results"`
}

type benchMachine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	CPUs int    `json:"cpus"`
	Go   string `json:"go"`
}

// A benchRow is one figure. Limit is what the hardware or the aim gives, Ratio is
// value over limit, or limit over value where less is better; both 0 if there is
// none.
type benchRow struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit float64 `json:"limit"`
	Ratio float64 `json:"ratio"`
	Note  string  `json:"note,omitempty"`
}

func newBenchReport(name string, config map[string]any) *benchReport {
	r := &benchReport{Bench: name, Version: "unknown", Config: config, Results: []benchRow{}}
	r.Machine = benchMachine{runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		r.Version = info.Main.Version
	}
	return r
}

// add appends a row. A figure that the time did not suffice for is none.
func (r *benchReport) add(row benchRow) {
	for _, v := range []*float64{&row.Value, &row.Limit, &row.Ratio} {
		if math.IsInf(*v, 0) || math.IsNaN(*v) {
			*v = 0
			row.Note = "not measured, the time was too short"
		}
	}
	r.Results = append(r.Results, row)
}

// print writes the rows as a table of at most 80 columns, notes below.
func (r *benchReport) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%-44s %12s %12s %8s\n", r.Bench, "value", "limit", "ratio")
	for _, row := range r.Results {
		limit, ratio := "", ""
		if row.Limit != 0 {
			limit = benchValue(row.Limit, row.Unit)
		}
		if row.Ratio != 0 {
			ratio = fmt.Sprintf("%.1f %%", 100*row.Ratio)
		}
		fmt.Fprintf(w, "%-44s %12s %12s %8s\n", cell(row.Name, 44), benchValue(row.Value, row.Unit), limit, ratio)
	}
	fmt.Fprintln(w)
	for _, row := range r.Results {
		if row.Note != "" {
			fmt.Fprintf(w, "%s: %s\n", row.Name, row.Note)
		}
	}
	return w.Flush()
}

// benchValue prints a figure in the unit that fits its size.
func benchValue(v float64, unit string) string {
	switch unit {
	case "B/s", "B/s per core": // what one core does, its name says
		return speed(v)
	case "cores per GB/s":
		return fmt.Sprintf("%.3f c/GB/s", v)
	}
	return fmt.Sprintf("%.4g %s", v, unit)
}

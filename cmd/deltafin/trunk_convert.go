package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/trunk"
)

// newTrunk makes and checks the second form of the weights that every token uses.
func newTrunk(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "trunk",
		Short: "Convert the weights that every token uses to int8, or check that",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return usage("trunk needs a command: deltafin trunk convert, or deltafin trunk verify")
		},
	}
	c.AddCommand(newTrunkConvert(s), newTrunkVerify(s))
	return c
}

type trunkFlags struct {
	dir     string
	to      string
	again   bool
	threads int
	json    bool
}

func newTrunkConvert(s streams) *cobra.Command {
	var f trunkFlags
	c := &cobra.Command{
		Use:   "convert",
		Short: "Write the weights that every token uses as int8, for --trunk int8",
		Long: `Writes the trunk, the weights that every token uses, a second time: its large matrices
rounded to 8 bits with a scale for every 128 columns, which takes about half the memory
and half the reads. The model's own files stay as they are. Routers and gates are not
rounded, and experts never are.

With --trunk int8 a model then runs from that file. This is not the exact model: its
answers differ from those of the model as published, and everything that shows it says
so. How large the differences of the weights are is printed, and by deltafin inspect.

The file is ` + trunk.Int8Name + ` in the model's folder, or in the folder named
with --to, which is remembered. It is there whole or not at all: after an interruption
the work begins anew. One that is there is not written again.`,
		Example: `  deltafin trunk convert --model /models/Kimi-K3
  deltafin trunk convert --model /models/Kimi-K3 --to /mnt/fast
  deltafin ask --model /models/Kimi-K3 --trunk int8 "Why is the sky blue?"`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if c.Flags().Changed("threads") && f.threads < 1 {
				return usage("--threads %d: at least 1 is needed", f.threads)
			}
			return f.convert(c.Context(), s)
		},
	}
	f.add(c)
	c.Flags().StringVar(&f.to, "to", "", "folder for the file (default: the model's own)")
	c.Flags().BoolVar(&f.again, "again", false, "convert although the file is there")
	c.Flags().IntVar(&f.threads, "threads", 0, "workers; the file does not depend on it (default: one per core)")
	_ = c.MarkFlagDirname("to") // fails only for a flag that does not exist
	return c
}

func newTrunkVerify(s streams) *cobra.Command {
	var f trunkFlags
	c := &cobra.Command{
		Use:   "verify",
		Short: "Check every byte of a converted trunk",
		Long: `Reads the file of deltafin trunk convert, past the page cache where that is possible,
and compares every block with its checksum. Bad blocks are never computed with, checked
or not; deltafin trunk convert --again makes the file anew.`,
		Example: "  deltafin trunk verify --model /models/Kimi-K3",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.verify(c.Context(), s)
		},
	}
	f.add(c)
	return c
}

func (f *trunkFlags) add(c *cobra.Command) {
	addModelFlag(c, &f.dir)
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
}

func (f *trunkFlags) convert(ctx context.Context, s streams) error {
	state, err := stateFolder()
	if err != nil {
		return err
	}
	status, begun := newStatus(s), time.Now()
	file, wrote, err := engine.ConvertTrunk(ctx, engine.ConvertOptions{
		Model: modelDir(f.dir), To: f.to, State: state, Again: f.again, Threads: f.threads, Progress: trunkStatus(status, "converting the trunk"),
	})
	status.clear()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(s.err, "interrupted; nothing was changed")
		return errReported
	case f.to == "" && (errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS)):
		return fmt.Errorf("%w: name another folder with --to", err)
	case err != nil:
		return err
	}
	r := int8ReportOf(file)
	r.Wrote, r.Seconds = wrote, time.Since(begun).Seconds()
	if f.json {
		return writeJSON(s.out, r)
	}
	how := "converted in " + duration(time.Since(begun))
	if !wrote {
		how = "was there already; deltafin trunk verify checks it, --again converts again"
	}
	fmt.Fprintf(s.out, "%s: %s, %s, %s\n", r.File, r.Label, bytesText(r.Bytes), how)
	return r.print(s.out)
}

func (f *trunkFlags) verify(ctx context.Context, s streams) error {
	state, err := stateFolder()
	if err != nil {
		return err
	}
	status, begun := newStatus(s), time.Now()
	file, bad, err := engine.VerifyTrunk(ctx, modelDir(f.dir), state, trunkStatus(status, "checking the int8 trunk"))
	status.clear()
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(s.err, "interrupted")
		return errReported
	case errors.Is(err, trunk.ErrInt8Damaged):
		return ofDrive(err)
	case err != nil:
		return err
	}
	r := int8ReportOf(file)
	r.Seconds, r.Bad = time.Since(begun).Seconds(), bad
	if f.json {
		err = writeJSON(s.out, r)
	} else {
		err = r.printBad(s.out)
	}
	if err == nil && len(bad) > 0 {
		// The report has said everything; the code says it to scripts.
		err = &driveError{errReported}
	}
	return err
}

// trunkStatus shows how far the work on a trunk is.
func trunkStatus(line *statusLine, what string) func(trunk.Progress) {
	begun := time.Now()
	return func(p trunk.Progress) {
		done := float64(p.Done) / float64(max(p.Total, 1))
		line.set("%s %s %3.0f %% of %s, %s, %s", what, bar(done), 100*done, bytesText(p.Total),
			speed(float64(p.Done)/max(time.Since(begun).Seconds(), 1e-3)), left(begun, done))
	}
}

// An int8Report says what a converted trunk is and how far it is from the model.
type int8Report struct {
	Label   string      `json:"label"`
	File    string      `json:"file"`
	Bytes   int64       `json:"bytes"`
	Group   int         `json:"columns_per_scale"`
	Classes []int8Class `json:"classes"`

	Wrote   bool     `json:"wrote,omitempty"`
	Seconds float64  `json:"seconds,omitempty"`
	Bad     []string `json:"bad_blocks,omitempty"`
}

type int8Class struct {
	Name     string  `json:"name"`
	Int8     int     `json:"int8_matrices"`
	Exact    int     `json:"exact_matrices"`
	Bytes    int64   `json:"bytes"`
	MaxError float64 `json:"max_error"` // of a weight
	Relative float64 `json:"rms_error"` // as a share of the weights' own rms
}

func int8ReportOf(f *trunk.Int8) *int8Report {
	r := &int8Report{Label: engine.Int8Label, File: f.Path(), Bytes: f.Bytes(), Group: f.Group}
	for _, c := range f.Classes() {
		r.Classes = append(r.Classes, int8Class{c.Class.String(), c.Converted, c.Exact, c.Bytes, c.MaxError, c.Relative})
	}
	return r
}

// print writes the error of every class, at most 80 columns wide.
func (r *int8Report) print(w io.Writer) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "weights\tin int8\texact\tbytes\tlargest error\trms error\t")
	for _, c := range r.Classes {
		most, rms := "none", "none"
		if c.Int8 > 0 {
			most, rms = fmt.Sprintf("%.3g", c.MaxError), fmt.Sprintf("%.3f %%", 100*c.Relative)
		}
		fmt.Fprintf(tab, "%s\t%d\t%d\t%s\t%s\t%s\t\n", c.Name, c.Int8, c.Exact, humanize.Comma(c.Bytes), most, rms)
	}
	return tab.Flush()
}

// printBad says what a check found.
func (r *int8Report) printBad(w io.Writer) error {
	if len(r.Bad) == 0 {
		_, err := fmt.Fprintf(w, "%s: %s, %s read in %s, every block is as it was written.\n", r.File, r.Label, bytesText(r.Bytes), duration(secondsOf(r.Seconds)))
		return err
	}
	fmt.Fprintf(w, "%s: bad blocks, which will not be used: %d\n", r.File, len(r.Bad))
	for i, b := range r.Bad {
		if i == shownProblems {
			fmt.Fprintf(w, "  %d more; --json lists all\n", len(r.Bad)-i)
			break
		}
		fmt.Fprintf(w, "  %s\n", b)
	}
	_, err := fmt.Fprintln(w, "Make it anew: deltafin trunk convert --again, with the same --model and --to")
	return err
}

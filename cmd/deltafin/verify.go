package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/ssdio/place"
)

type verifyFlags struct {
	dir    string
	drives []string
	repair bool
	json   bool
}

// newVerify checks what drives hold.
func newVerify(s streams) *cobra.Command {
	var f verifyFlags
	c := &cobra.Command{
		Use:   "verify [--drive DIR...] [PACK...]",
		Short: "Check everything that drives hold of a model",
		Long: `Reads everything that the drives hold, past the page cache, and compares it with the
checksums of their manifests. Without --drive it checks the drives of the last
placement (of --model, if there are several). Checksums that are not known yet are
recorded.

With --repair bad blocks are written again from another drive or from the model's own
files; those are never written to themselves. Files named as arguments are packs and
are checked alone, against the table inside them.`,
		Example: `  deltafin verify
  deltafin verify --drive /mnt/a --drive /mnt/b --repair
  deltafin verify /mnt/a/deltafin-1f3c88a0-00017.pack`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				if len(f.drives) > 0 || f.repair || f.dir != "" {
					return usage("packs are checked alone: --drive, --model and --repair do not go with them")
				}
				return f.packs(c.Context(), s, args)
			}
			return f.run(c.Context(), s)
		},
	}
	addModelFlag(c, &f.dir)
	c.Flags().StringArrayVarP(&f.drives, "drive", "d", nil, "folder on a drive to check; once for each drive")
	c.Flags().BoolVar(&f.repair, "repair", false, "write bad blocks again from wherever the right bytes are")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f *verifyFlags) run(ctx context.Context, s streams) error {
	set, source, err := f.open()
	if err != nil {
		return err
	}
	defer set.fleet.Release()
	status := newStatus(s)
	checks, err := place.Verify(ctx, set.drives, &place.VerifyOptions{
		State: set.state, Repair: f.repair, Source: source, Progress: transferStatus(status),
	})
	status.clear()
	if ctx.Err() != nil {
		fmt.Fprintln(s.err, "interrupted; what was checked so far was not recorded")
		return errReported
	}
	if err != nil {
		return ofDrive(err)
	}
	r := verifyReportOf(checks, f.repair)
	if f.json {
		err = writeJSON(s.out, r)
	} else {
		err = r.print(s.out)
	}
	if err == nil && !r.Good {
		// The report has said everything; the code says it to scripts.
		err = &driveError{errReported}
	}
	return err
}

// open finds the drives and, for repairs, the model's own files.
func (f *verifyFlags) open() (*driveSet, *place.Model, error) {
	var m *place.Model
	dir := modelDir(f.dir)
	if dir != "" {
		var err error
		if m, err = openPlaceModel(dir); err != nil {
			return nil, nil, err
		}
	}
	if len(f.drives) > 0 {
		set, err := openDrives(f.drives)
		return set, m, err
	}
	state, err := stateFolder()
	if err != nil {
		return nil, nil, err
	}
	print := ""
	if m != nil {
		print = m.Fingerprint
	}
	r, err := recall(state, print)
	if err != nil {
		return nil, nil, err
	}
	if m == nil && f.repair && r.exists() {
		if m, err = openPlaceModel(r.Model); err != nil {
			return nil, nil, err
		}
	}
	set, err := r.open()
	return set, m, err
}

// A verifyReport is what the command prints.
type verifyReport struct {
	Good   bool          `json:"good"`
	Repair bool          `json:"repair"`
	Drives []verifyDrive `json:"drives"`
}

type verifyDrive struct {
	Drive    string        `json:"drive"`
	ID       string        `json:"id"`
	Files    int           `json:"files"`
	Blocks   int           `json:"blocks"`
	Bytes    int64         `json:"bytes"`
	Seconds  float64       `json:"seconds"`
	Noted    int           `json:"sums_recorded"`
	Bad      int           `json:"bad_blocks"`
	Repaired int           `json:"repaired_blocks"`
	Heads    int           `json:"bad_heads"`
	Buffered bool          `json:"buffered"`
	Problems []verifyPlace `json:"problems,omitempty"`
}

type verifyPlace struct {
	File     string `json:"file"`
	Offset   int64  `json:"offset"`
	Length   int64  `json:"length"`
	What     string `json:"what"`
	Error    string `json:"error"`
	Repaired bool   `json:"repaired"`
	From     string `json:"from,omitempty"`
}

func verifyReportOf(checks []*place.Check, repair bool) *verifyReport {
	r := &verifyReport{Good: true, Repair: repair}
	for _, c := range checks {
		r.Good = r.Good && c.Good()
		d := verifyDrive{Drive: c.Drive, ID: c.ID, Files: c.Files, Blocks: c.Blocks, Bytes: c.Bytes, Seconds: c.Took.Seconds(),
			Noted: c.Noted, Bad: c.Bad, Repaired: c.Repaired, Heads: c.Heads, Buffered: c.Buffered}
		for _, p := range c.Problems {
			what := fmt.Sprintf("%s, block %d", p.Key, p.Block)
			if p.Block < 0 {
				what = "size, header or table"
			}
			d.Problems = append(d.Problems, verifyPlace{p.File, p.Offset, p.Length, what, oneLine(p.Err.Error()), p.Repaired, p.From})
		}
		r.Drives = append(r.Drives, d)
	}
	return r
}

// shownProblems is how many of a drive's problems people get to see.
const shownProblems = 8

// print writes the report, the table at most 80 columns wide.
func (r *verifyReport) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%-20s %6s %11s %9s %10s %7s %9s\n", "drive", "files", "blocks", "read", "rate", "bad", "repaired")
	for _, d := range r.Drives {
		fmt.Fprintf(w, "%-20s %6d %11s %9s %10s %7d %9d\n", cell(d.Drive, 20), d.Files, humanize.Comma(int64(d.Blocks)), bytesText(d.Bytes),
			speed(float64(d.Bytes)/max(d.Seconds, 1e-9)), d.Bad, d.Repaired)
	}
	for _, d := range r.Drives {
		if d.Noted > 0 {
			fmt.Fprintf(w, "%s: %s checksums were not known and are recorded now.\n", d.Drive, humanize.Comma(int64(d.Noted)))
		}
		if d.Buffered {
			fmt.Fprintf(w, "%s refuses direct reads: some of it may have come from memory.\n", d.Drive)
		}
		for i, p := range d.Problems {
			if i == shownProblems {
				fmt.Fprintf(w, "%s: %d more; --json lists up to 100.\n", d.Drive, d.Bad+d.Heads-i)
				break
			}
			fate := "not repaired"
			if p.Repaired {
				fate = "repaired from " + p.From
			}
			fmt.Fprintf(w, "%s: %s at offset %d of %s: %s; %s\n", d.Drive, p.What, p.Offset, p.File, p.Error, fate)
		}
	}
	switch {
	case r.Good:
		fmt.Fprintln(w, "Everything is as the manifests say.")
	case r.Repair:
		fmt.Fprintln(w, "Some of it could not be repaired: name more drives or the model's folder, or copy the named files again.")
	default:
		fmt.Fprintln(w, "Some of it is bad and will not be used: deltafin verify --repair")
	}
	return w.Flush()
}

// packs checks packs alone.
func (f *verifyFlags) packs(ctx context.Context, s streams, names []string) error {
	type row struct {
		File    string `json:"file"`
		Model   string `json:"fingerprint"`
		Drive   string `json:"drive"`
		Objects int    `json:"experts"`
		Bytes   int64  `json:"bytes"`
	}
	rows := []row{}
	status := newStatus(s)
	for _, n := range names {
		if info, err := os.Stat(n); err != nil || info.IsDir() {
			return usage("%s is no file", n)
		}
		p, err := place.VerifyPack(ctx, n, transferStatus(status))
		status.clear()
		if err != nil {
			return ofDrive(fmt.Errorf("%s: %w", filepath.Dir(n), err))
		}
		rows = append(rows, row{n, p.Fingerprint, p.Drive, p.Objects(), p.Size})
	}
	if f.json {
		return writeJSON(s.out, rows)
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(s.out, "%s: good; %s experts of model %s…, %s\n", r.File, humanize.Comma(int64(r.Objects)), r.Model[:12], bytesText(r.Bytes)); err != nil {
			return err
		}
	}
	return nil
}

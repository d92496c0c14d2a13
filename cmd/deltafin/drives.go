package main

import (
	"bufio"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"deltafin/ssdio"
)

// newDrives measures drives and says how fast they are.
func newDrives(s streams) *cobra.Command {
	var f measureFlags
	var asJSON bool
	c := &cobra.Command{
		Use:   "drives DIR...",
		Short: "Measure drives, alone and together",
		Long: `Measures how fast each drive reads, for read sizes from 256 KiB to 16 MiB and 1 to
32 reads at once, and then how fast all are together: drives that share a hub show
as less than their sum. Large files on the drive are read, or a test file is written
and removed. The result is kept for 30 days and used by place and by the engine.

DIR is a folder on the drive, or a folder with limits behind commas that emulate a
slower drive: /mnt/a,limit=710MB/s,latency=80us.`,
		Example: `  deltafin drives /mnt/a /mnt/b
  deltafin drives /mnt/a,limit=710MB/s /mnt/b --again --json`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("name at least one folder: deltafin drives /mnt/a /mnt/b")
			}
			set, err := openDrives(args)
			if err != nil {
				return err
			}
			defer set.fleet.Release()
			measured, err := f.profiles(c.Context(), s, set)
			if err != nil {
				return err
			}
			r := set.report(measured)
			if asJSON {
				return writeJSON(s.out, r)
			}
			return r.print(s.out)
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with the whole matrix")
	return c
}

// drivesReport is what the command prints. Rates are bytes per second.
type drivesReport struct {
	Measured bool          `json:"measured"` // now, not taken from what is stored
	Drives   []driveReport `json:"drives"`
	Sum      float64       `json:"sum"`                // of the drives alone
	Together float64       `json:"together,omitempty"` // all at once
	Note     string        `json:"note,omitempty"`
	State    string        `json:"stored_in"`
}

type driveReport struct {
	Name    string         `json:"name"`
	ID      string         `json:"id"`
	Path    string         `json:"path"`
	Device  string         `json:"device"`
	Free    int64          `json:"free_bytes"`
	Total   int64          `json:"total_bytes"`
	Profile *ssdio.Profile `json:"profile"`
}

func (s *driveSet) report(measured bool) *drivesReport {
	r := &drivesReport{Measured: measured, Note: s.shared(), State: s.state}
	for _, d := range s.drives {
		free, total, _ := d.Space() // a drive that does not say shows none
		r.Drives = append(r.Drives, driveReport{d.Name, d.ID, d.Path, d.Device.Name, free, total, d.Profile})
		r.Sum += d.Profile.Best.Rate
		r.Together += d.Profile.Together
	}
	return r
}

// print writes a table of at most 80 columns.
func (r *drivesReport) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%-20s %11s %8s %5s %9s %9s %11s\n", "drive", "ceiling", "read", "depth", "p50", "p99", "together")
	for _, d := range r.Drives {
		p := d.Profile
		together := ""
		if p.Together > 0 {
			together = speed(p.Together)
		}
		fmt.Fprintf(w, "%-20s %11s %8s %5d %9s %9s %11s\n", cell(d.Name, 20), speed(p.Best.Rate), ibytes(int64(p.Best.Size)), p.Best.Depth,
			readTime(p.Best.P50), readTime(p.Best.P99), together)
	}
	if len(r.Drives) > 1 && r.Together > 0 {
		fmt.Fprintf(w, "%-20s %11s %46s\n", "sum", speed(r.Sum), speed(r.Together))
		fmt.Fprintf(w, "All at once they give %.0f %% of their sum.\n", 100*r.Together/r.Sum)
	}
	for _, d := range r.Drives {
		if !d.Profile.Direct {
			fmt.Fprintf(w, "%s refuses direct reads: its figures are those of the page cache.\n", d.Name)
		}
		if d.Profile.Emulated != "" {
			fmt.Fprintf(w, "%s is emulated: %s\n", d.Name, d.Profile.Emulated)
		}
	}
	if r.Note != "" {
		fmt.Fprintf(w, "%s.\n", r.Note)
	}
	if !r.Measured {
		fmt.Fprintf(w, "Measured %s; --again measures anew.\n", r.Drives[0].Profile.Measured.Local().Format("2006-01-02 15:04"))
	}
	return w.Flush()
}

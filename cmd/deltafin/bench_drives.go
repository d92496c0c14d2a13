package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deltafin/ssdio/benchio"
	"deltafin/ssdio/emulate"
)

type benchDrivesFlags struct {
	only    string
	scratch string
	limits  string
	objects int
	size    string
	length  time.Duration
	json    bool
}

// newBenchDrives measures reading from several drives.
func newBenchDrives(s streams) *cobra.Command {
	var f benchDrivesFlags
	c := &cobra.Command{
		Use:   "drives [DIR...]",
		Short: "Reading from several drives, against their ceiling",
		Long: `Streams random whole experts from copies in 1, 2 and 4 folders and compares with
plain parallel reads of the same files, in turns; from emulated drives with full
copies, exact shares and 20 % overlap, and again while one of them slows to a third;
and states what reading and checking cost in processor time.

Test data is written to the folders (about 0.5 GB each, by default to the system's
folder for temporary files) and removed. Emulated drives need memory that is faster
than all of them together: --scratch. Fewer than four folders are used several times.`,
		Example: `  deltafin bench drives /mnt/a /mnt/b
  deltafin bench drives --only emulated --limits 13.6GB/s,7.1GB/s,7.1GB/s,5.7GB/s --json`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), s, args)
		},
	}
	c.Flags().StringVar(&f.only, "only", "real,emulated,cost", "which groups to measure")
	c.Flags().StringVar(&f.scratch, "scratch", "", "folder in memory for the emulated drives (default: /dev/shm where there is one)")
	c.Flags().StringVar(&f.limits, "limits", "1360MB/s,710MB/s,710MB/s,570MB/s", "speeds of the emulated drives; at least two")
	c.Flags().IntVar(&f.objects, "experts", 24, "experts to read from")
	c.Flags().StringVar(&f.size, "expert-size", "17547264B", "size of one")
	c.Flags().DurationVar(&f.length, "time", 3*time.Second, "how long each figure is measured")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	return c
}

func (f *benchDrivesFlags) run(ctx context.Context, s streams, dirs []string) error {
	size, err := parseBytes("--expert-size", f.size)
	if err != nil {
		return err
	}
	if f.objects < 1 || f.length <= 0 || size < 1 || size > 1<<30 {
		return usage("--experts %d, --time %v and --expert-size %s must be above 0, the size at most 1GiB", f.objects, f.length, f.size)
	}
	if int64(f.objects)*size < 8<<20 {
		return usage("--experts %d of --expert-size %s: at least 8 MiB in all are needed to measure anything", f.objects, f.size)
	}
	limits, err := f.rates()
	if err != nil {
		return err
	}
	if len(dirs) == 0 {
		dirs = []string{os.TempDir()}
	}
	for _, d := range append(dirs[:len(dirs):len(dirs)], f.scratch) {
		if info, err := os.Stat(d); d != "" && (err != nil || !info.IsDir()) {
			return usage("%s is no folder", d)
		}
	}
	if f.scratch == "" {
		f.scratch = dirs[0]
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			f.scratch = "/dev/shm"
		}
	}
	folders := dirs
	for len(folders) < 4 {
		folders = append(folders[:len(folders):len(folders)], dirs[len(folders)%len(dirs)])
	}
	groups := strings.Split(f.only, ",")
	r := newBenchReport("drives", map[string]any{
		"folders": dirs, "scratch": f.scratch, "limits": limits, "experts": f.objects, "expert_bytes": size, "seconds": f.length.Seconds(), "groups": groups,
	})
	status := newStatus(s)
	for i, g := range groups {
		o := benchio.Options{Objects: f.objects, Size: int(size), For: f.length, Progress: func(what string, done float64) {
			done = (float64(i) + done) / float64(len(groups))
			status.set("%s %3.0f %%, %s", bar(done), 100*done, what)
		}}
		var rows []benchio.Row
		switch g {
		case "real":
			rows, err = benchio.Real(ctx, folders, o)
		case "emulated":
			rows, err = benchio.Emulated(ctx, f.scratch, limits, o)
		case "cost":
			rows, err = benchio.Cost(ctx, dirs[0], o)
		default:
			return usage("--only %q: real, emulated and cost, with commas", f.only)
		}
		if err != nil {
			status.clear()
			if ctx.Err() != nil {
				fmt.Fprintln(s.err, "interrupted; the test data was removed")
				return errReported
			}
			return ofDrive(err)
		}
		for _, row := range rows {
			r.add(benchRow(row))
		}
	}
	status.clear()
	if f.json {
		return writeJSON(s.out, r)
	}
	return r.print(s.out)
}

// rates reads the limits in the language of drive specifications.
func (f *benchDrivesFlags) rates() ([]float64, error) {
	var out []float64
	for _, text := range strings.Split(f.limits, ",") {
		spec, err := emulate.ParseSpec("x,limit=" + strings.TrimSpace(text))
		if err != nil || spec.Limit <= 0 {
			return nil, usage("--limits %q: rates such as 1360MB/s, with commas", f.limits)
		}
		out = append(out, float64(spec.Limit))
	}
	if len(out) < 2 {
		return nil, usage("--limits %q: at least two drives are needed", f.limits)
	}
	return out, nil
}

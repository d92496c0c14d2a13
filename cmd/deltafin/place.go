package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/ssdio/place"
)

type placeFlags struct {
	dir      string
	drives   []string
	reserve  string
	overlap  string
	packSize string
	dryRun   bool
	replace  bool
	noIndex  bool
	json     bool
	measure  measureFlags
}

// newPlace divides a model's experts over drives.
func newPlace(s streams) *cobra.Command {
	var f placeFlags
	c := &cobra.Command{
		Use:   "place --model DIR --drive DIR...",
		Short: "Divide a model's experts over several drives",
		Long: `Plans which part of every expert each drive holds, from the drives' measured speed
and free space, and writes it there. Each drive gets a range in proportion to its
speed, wider where there is room: the overlap lets reading go on at full speed when a
drive slows down, and go on at all when one is lost.

The model's own files are only read. If a drive's folder holds them, they serve in
place: nothing is copied to that drive. What is written is read back from the device
before it counts. After an interruption the same command goes on where it stopped.

A drive is a folder, or a folder with limits behind commas that emulate a slower one:
--drive /mnt/a,limit=710MB/s.`,
		Example: `  deltafin place --model /models/Kimi-K3 --drive /mnt/a --drive /mnt/b --dry-run
  deltafin place --model /mnt/a/Kimi-K3 --drive /mnt/a --drive /mnt/b --reserve 50GiB`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), s)
		},
	}
	addModelFlag(c, &f.dir)
	c.Flags().StringArrayVarP(&f.drives, "drive", "d", nil, "folder on a drive to place on; once for each drive")
	c.Flags().StringVar(&f.reserve, "reserve", "20GiB", "space to leave free on each drive")
	c.Flags().StringVar(&f.overlap, "overlap", "full", "how much wider than its share a drive's range may be: full, none, or 20%")
	c.Flags().StringVar(&f.packSize, "pack-size", "8GiB", "size of the files to write")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "print the plan and write nothing of the model")
	c.Flags().BoolVar(&f.replace, "replace", false, "remove an earlier placement on these drives first")
	c.Flags().BoolVar(&f.noIndex, "no-index", false, "do not read files that serve in place; their checksums are recorded on first use")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object")
	f.measure.add(c)
	return c
}

// options reads the flags that are numbers.
func (f *placeFlags) options() (o place.PlanOptions, reserve int64, err error) {
	if reserve, err = parseBytes("--reserve", f.reserve); err != nil {
		return o, 0, err
	}
	if o.PackSize, err = parseBytes("--pack-size", f.packSize); err != nil {
		return o, 0, err
	}
	if o.PackSize < 1<<20 {
		return o, 0, usage("--pack-size %s: at least 1MiB is needed", f.packSize)
	}
	switch text, percent := strings.CutSuffix(f.overlap, "%"); {
	case f.overlap == "full":
	case f.overlap == "none":
		o.Overlap = -1
	default:
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || !percent || !(v > 0) || v > 1e6 {
			return o, 0, usage("--overlap %q: full, none, or a percentage such as 20%%", f.overlap)
		}
		o.Overlap = v / 100
	}
	return o, reserve, nil
}

func (f *placeFlags) run(ctx context.Context, s streams) (err error) {
	o, reserve, err := f.options()
	if err != nil {
		return err
	}
	if len(f.drives) == 0 {
		return usage("name the drives: --drive /mnt/a --drive /mnt/b")
	}
	m, err := openPlaceModel(f.dir)
	if err != nil {
		return err
	}
	set, err := openDrives(f.drives)
	if err != nil {
		return err
	}
	defer set.fleet.Release()
	status := newStatus(s)
	job, err := place.Begin(m, set.drives, &place.JobOptions{State: set.state, Replace: f.replace, Progress: transferStatus(status)})
	if err != nil {
		return ofDrive(err)
	}
	defer func() { err = errors.Join(err, job.Close()) }()
	found, err := job.Found()
	if err != nil {
		return ofDrive(err)
	}
	r := &placeReport{Model: m.Dir, Fingerprint: m.Fingerprint, Objects: len(m.Objects), Found: "nothing", Note: set.shared()}
	for i := range m.Objects {
		r.Bytes += m.Objects[i].Size
	}
	plan := found.Plan
	switch {
	case plan == nil || (f.replace && found.Finished):
		if plan, err = f.plan(ctx, s, m, set, job, o, reserve); err != nil {
			return err
		}
	case found.Finished:
		r.Found = "finished"
	default:
		r.Found, r.Done, r.All = "unfinished", found.Done, found.All
	}
	r.add(plan, set)
	if !f.json {
		if err := r.print(s.out); err != nil {
			return err
		}
	}
	if !f.dryRun && r.Found != "finished" {
		done, err := job.Run(ctx, plan, f.noIndex)
		status.clear()
		if err != nil {
			if ctx.Err() != nil {
				fmt.Fprintln(s.err, "interrupted; what was written is safe, the same command goes on from here")
				return errReported
			}
			return ofDrive(err)
		}
		r.done(done)
	}
	if !f.dryRun {
		if err := remember(set, m); err != nil {
			return fmt.Errorf("remembering where the placement is: %w", err)
		}
	}
	if f.json {
		return writeJSON(s.out, r)
	}
	return r.sumUp(s.out)
}

// plan measures what has to be measured and makes a new plan.
func (f *placeFlags) plan(ctx context.Context, s streams, m *place.Model, set *driveSet, job *place.Job, o place.PlanOptions, reserve int64) (*place.Plan, error) {
	if _, err := f.measure.profiles(ctx, s, set); err != nil {
		return nil, err
	}
	cs := make([]place.Candidate, len(set.drives))
	sharers := map[uint64]int64{} // folders to write to, by device
	for i, d := range set.drives {
		cs[i] = place.Candidate{ID: d.ID, Name: d.Name, Speed: set.speed(i)}
		if _, err := place.Below(d.Path, m.Dir); err == nil {
			cs[i].InPlace = true
		} else {
			sharers[d.Device.Number]++
		}
	}
	for i, d := range set.drives {
		if cs[i].InPlace {
			continue
		}
		room, err := job.Room(i, reserve)
		if err != nil {
			return nil, ofDrive(err)
		}
		cs[i].Room = room / sharers[d.Device.Number]
	}
	p, err := place.NewPlan(m, cs, o)
	return p, ofDrive(err)
}

// transferStatus shows how far a placement or a check is.
func transferStatus(status *statusLine) func(place.Progress) {
	begun := time.Now()
	first := int64(-1)
	return func(p place.Progress) {
		if first < 0 {
			begun, first = time.Now(), p.Done
		}
		done := float64(p.Done) / float64(max(p.Total, 1))
		rate := float64(p.Done-first) / max(time.Since(begun).Seconds(), 1e-3)
		status.set("%s %s %3.0f %% of %s, %s, %s (%s)", p.Phase, bar(done), 100*done, bytesText(p.Total), speed(rate), left(begun, done), p.Drive)
	}
}

// A placeReport is what the command prints.
type placeReport struct {
	Model       string       `json:"model"`
	Fingerprint string       `json:"fingerprint"`
	Objects     int          `json:"experts"`
	Bytes       int64        `json:"bytes"`
	Found       string       `json:"found"`                // nothing, unfinished or finished
	Done        int          `json:"parts_done,omitempty"` // before
	All         int          `json:"parts,omitempty"`
	Drives      []placeRow   `json:"drives"`
	Rate        float64      `json:"expected_bytes_per_s"`
	Copies      float64      `json:"copies"`
	Note        string       `json:"note,omitempty"`
	Result      *placeResult `json:"result,omitempty"`
}

// placeResult is what was done; it is absent if there was nothing to do.
type placeResult struct {
	Seconds float64     `json:"seconds"`
	Drives  []placeDone `json:"drives"`
}

type placeDone struct {
	Name     string `json:"name"`
	InPlace  bool   `json:"in_place"`
	Parts    int    `json:"parts"` // experts that the drive holds a part of
	Resumed  int    `json:"parts_safe_before"`
	Written  int64  `json:"bytes_written"`
	Files    int    `json:"files"`
	Rewrites int    `json:"parts_written_twice"`
	Sums     string `json:"checksums"`
	Buffered bool   `json:"buffered"`
}

func (r *placeReport) done(done *place.Report) {
	r.Result = &placeResult{Seconds: done.Took.Seconds()}
	for i, d := range done.Drives {
		r.Result.Drives = append(r.Result.Drives, placeDone{r.Drives[i].Name, d.InPlace, d.Objects, d.Resumed, d.Written, d.Files, d.Rewrites, d.Sums, d.Buffered})
	}
}

type placeRow struct {
	Name     string  `json:"name"`
	Path     string  `json:"path"`
	ID       string  `json:"id"`
	InPlace  bool    `json:"in_place"`
	Emulated string  `json:"emulated,omitempty"`
	Speed    float64 `json:"bytes_per_s"`
	Work     float64 `json:"share_of_reads"`
	From     float64 `json:"from"` // of every expert, fractions
	To       float64 `json:"to"`
	Bytes    int64   `json:"bytes"`
	Written  int64   `json:"bytes_on_drive"`
	Covered  float64 `json:"covered_if_lost"`
	LossRate float64 `json:"bytes_per_s_if_lost"`
}

func (r *placeReport) add(p *place.Plan, set *driveSet) {
	r.Rate, r.Copies = p.Rate, p.Copies()
	for i, d := range p.Drives {
		row := placeRow{Name: d.Name, ID: d.ID, InPlace: d.InPlace, Speed: d.Speed, Work: d.Work, Bytes: d.Bytes, Written: d.Written}
		row.From, row.To = d.Stripe.Bounds()
		loss := p.Lose(i)
		row.Covered, row.LossRate = loss.Covered, loss.Rate
		for _, have := range set.drives {
			if have.ID == d.ID {
				row.Name, row.Path, row.Emulated = have.Name, have.Path, have.Emulated
			}
		}
		r.Drives = append(r.Drives, row)
	}
}

// print writes the plan as a table of at most 80 columns.
func (r *placeReport) print(out io.Writer) error {
	w := bufio.NewWriter(out)
	fmt.Fprintf(w, "%s: %s experts, %s, fingerprint %s…\n", r.Model, humanize.Comma(int64(r.Objects)), bytesText(r.Bytes), r.Fingerprint[:12])
	switch r.Found {
	case "finished":
		fmt.Fprintln(w, "These drives hold the model already; --replace places it anew.")
	case "unfinished":
		fmt.Fprintf(w, "Going on with a placement that was begun: %s of %s parts are safe.\n", humanize.Comma(int64(r.Done)), humanize.Comma(int64(r.All)))
	}
	fmt.Fprintf(w, "\n%-16s %10s %6s %13s %9s  %s\n", "drive", "speed", "reads", "of each", "on drive", "if it is lost")
	for _, d := range r.Drives {
		on := bytesText(d.Written)
		if d.InPlace {
			on = "in place"
		}
		lost := fmt.Sprintf("%s left", speed(d.LossRate))
		if d.LossRate == 0 {
			lost = fmt.Sprintf("stops, %.0f %% left", 100*d.Covered)
		}
		fmt.Fprintf(w, "%-16s %10s %4.0f %% %5.1f-%5.1f %% %9s  %s\n", cell(d.Name, 16), speed(d.Speed), 100*d.Work, 100*d.From, 100*d.To, on, lost)
	}
	fmt.Fprintf(w, "%-16s %10s %6s %10.2f times the model\n", "together", speed(r.Rate), "", r.Copies)
	for _, d := range r.Drives {
		if d.Emulated != "" {
			fmt.Fprintf(w, "%s is emulated: %s\n", d.Name, d.Emulated)
		}
	}
	if r.Note != "" {
		fmt.Fprintf(w, "%s.\n", r.Note)
	}
	return w.Flush()
}

// sumUp says what was done.
func (r *placeReport) sumUp(out io.Writer) error {
	if r.Result == nil {
		return nil
	}
	w := bufio.NewWriter(out)
	fmt.Fprintln(w)
	for _, d := range r.Result.Drives {
		if d.InPlace {
			fmt.Fprintf(w, "%s: %s in place; checksums %s.\n", d.Name, count(d.Files, "file serves", "files serve"), d.Sums)
			continue
		}
		fmt.Fprintf(w, "%s: %s written and read back in %s", d.Name, bytesText(d.Written), count(d.Files, "file", "files"))
		if d.Resumed > 0 {
			fmt.Fprintf(w, ", %s parts were safe before", humanize.Comma(int64(d.Resumed)))
		}
		if d.Rewrites > 0 {
			fmt.Fprintf(w, ", %d came back changed and were written again", d.Rewrites)
		}
		if d.Buffered {
			fmt.Fprint(w, " (through the page cache: this drive refuses direct reads)")
		}
		fmt.Fprintln(w, ".")
	}
	fmt.Fprintf(w, "Done in %s; the model's own files are as they were.\n", duration(time.Duration(r.Result.Seconds*float64(time.Second))))
	return w.Flush()
}

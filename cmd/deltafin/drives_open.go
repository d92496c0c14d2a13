package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/session/paths"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// A driveError is a failure of a drive or of what is on it: the program exits
// with code 5.
type driveError struct{ err error }

func (e *driveError) Error() string { return e.err.Error() }
func (e *driveError) Unwrap() error { return e.err }

// ofDrive marks an error as one of drives. What the person asked for wrongly
// stays what it is, and so does an interruption.
func ofDrive(err error) error {
	var use *usageError
	if err == nil || errors.As(err, &use) || errors.Is(err, context.Canceled) || errors.Is(err, errReported) {
		return err
	}
	return &driveError{err}
}

// profileAge is how long a measured speed is believed.
const profileAge = 30 * 24 * time.Hour

// A driveSet is the drives that a command names, with the folders that are kept
// for them.
type driveSet struct {
	fleet  emulate.Fleet
	specs  []string
	drives []*ssdio.Drive
	state  string // profiles, and records of drives that cannot be written
}

// stateFolder is where the program keeps what it knows of drives.
func stateFolder() (string, error) {
	p, err := paths.Default()
	if err != nil {
		return "", err
	}
	return filepath.Join(p.State, "drives"), nil
}

// openDrives opens the drives of specifications: a folder each, or a folder with
// emulated limits and faults behind commas.
func openDrives(specs []string) (*driveSet, error) {
	state, err := stateFolder()
	if err != nil {
		return nil, err
	}
	s := &driveSet{state: state}
	for _, text := range specs {
		spec, err := emulate.ParseSpec(text)
		if err != nil {
			return nil, usage("%v", err)
		}
		if info, err := os.Stat(spec.Path); err != nil || !info.IsDir() {
			return nil, usage("%s is no folder; name the folder on the drive that holds the files, or is to hold them", spec.Path)
		}
		// A path that can be found again from anywhere.
		if spec.Path, err = filepath.Abs(spec.Path); err != nil {
			return nil, usage("%v", err)
		}
		d, err := s.fleet.OpenSpec(spec, nil)
		if err != nil {
			return nil, ofDrive(err)
		}
		for i, other := range s.drives {
			if other.ID == d.ID {
				return nil, usage("%s and %s are the same drive; name each folder once", s.specs[i], text)
			}
		}
		s.specs = append(s.specs, spec.String())
		s.drives = append(s.drives, d)
	}
	s.name()
	return s, nil
}

// name gives drives whose devices do not tell them apart the names of their
// folders, and whole paths if that does not suffice either.
func (s *driveSet) name() {
	for _, better := range []func(*ssdio.Drive) string{
		func(d *ssdio.Drive) string { return filepath.Base(d.Path) },
		func(d *ssdio.Drive) string { return d.Path },
	} {
		count := map[string]int{}
		for _, d := range s.drives {
			count[d.Name]++
		}
		for _, d := range s.drives {
			if count[d.Name] > 1 {
				d.Name = better(d)
			}
		}
	}
}

// shared says which folders lie on one device, in a sentence, "" if none do.
func (s *driveSet) shared() string {
	on := map[uint64][]string{}
	for _, d := range s.drives {
		on[d.Device.Number] = append(on[d.Device.Number], d.Name)
	}
	var texts []string
	for _, d := range s.drives {
		if names := on[d.Device.Number]; len(names) > 1 && d.Name == names[0] && d.Emulated == "" {
			texts = append(texts, strings.Join(names, " and ")+" are folders on one device and share its speed")
		}
	}
	return strings.Join(texts, "; ")
}

// company are the identities of all drives but one.
func (s *driveSet) company(i int) []string {
	var out []string
	for k, d := range s.drives {
		if k != i {
			out = append(out, d.ID)
		}
	}
	return out
}

// speed is what the i-th drive gives in this company: measured together if it
// was, for drives that share a hub give less then.
func (s *driveSet) speed(i int) float64 {
	p := s.drives[i].Profile
	if p.Together > 0 && sameSet(p.Company, s.company(i)) {
		return p.Together
	}
	return p.Best.Rate
}

func sameSet(a, b []string) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// measureFlags are the flags of commands that may have to measure.
type measureFlags struct {
	again bool
	point time.Duration
	file  string
}

func (f *measureFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.again, "again", false, "measure even if the drives were measured in the last 30 days")
	c.Flags().DurationVar(&f.point, "point", 400*time.Millisecond, "how long each read size and depth is measured")
	c.Flags().StringVar(&f.file, "test-file", "2GiB", "size of the file to write where a drive has no large ones; it is removed")
}

// profiles gives every drive its profile: the stored ones if they are all there,
// fresh, and of these drives together, else all are measured. It says which.
func (f *measureFlags) profiles(ctx context.Context, s streams, set *driveSet) (measured bool, err error) {
	if f.point <= 0 {
		return false, usage("--point %v: it must be above 0", f.point)
	}
	bytes, err := parseBytes("--test-file", f.file)
	if err != nil {
		return false, err
	}
	if !f.again && set.load() {
		return false, nil
	}
	line := newStatus(s)
	begun := time.Now()
	o := &ssdio.MeasureOptions{Point: f.point, Bytes: bytes}
	if bytes < 16<<20 { // too small for the largest reads
		o.Sizes = []int{256 << 10, 1 << 20}
	}
	ps, err := ssdio.Measure(ctx, set.drives, o, func(p ssdio.MeasureProgress) {
		what := p.Drive
		if what == "" {
			what = "all together"
		}
		if p.Phase == "writing" {
			line.set("writing a test file on %s, %s", what, speed(p.Rate))
			return
		}
		line.set("measuring %s %s %3.0f %%, %s, %s at %s x %d", what, bar(p.Done), 100*p.Done, left(begun, p.Done), speed(p.Rate), ibytes(int64(p.Size)), p.Depth)
	})
	line.clear()
	if ctx.Err() != nil {
		fmt.Fprintln(s.err, "interrupted while measuring; the test file was removed")
		return false, errReported
	}
	if err != nil {
		return false, ofDrive(err)
	}
	for i, p := range ps {
		set.drives[i].Profile = p
		if err := p.Save(set.state); err != nil {
			return true, fmt.Errorf("storing the profile: %w", err)
		}
	}
	return true, nil
}

// load takes the stored profiles if all can be used together.
func (s *driveSet) load() bool {
	for i, d := range s.drives {
		p, err := ssdio.LoadProfile(s.state, d, profileAge, time.Now())
		if err != nil || !sameSet(p.Company, s.company(i)) {
			return false // whatever the reason, measuring again is the answer
		}
		d.Profile = p
	}
	return true
}

// bar is a progress bar of twelve cells.
func bar(done float64) string {
	n := int(12 * min(max(done, 0), 1))
	return "[" + strings.Repeat("#", n) + strings.Repeat(".", 12-n) + "]"
}

// left estimates how long the rest takes.
func left(begun time.Time, done float64) string {
	took := time.Since(begun)
	if done <= 0.01 || took < time.Second {
		return "time unknown"
	}
	return duration(time.Duration(float64(took)*(1-done)/done)) + " left"
}

// speed prints bytes per second, size bytes in the units drives are sold in, and
// ibytes bytes in the units reads have.
func speed(rate float64) string {
	switch {
	case rate >= 1e9:
		return fmt.Sprintf("%.2f GB/s", rate/1e9)
	case rate >= 1e6:
		return fmt.Sprintf("%.0f MB/s", rate/1e6)
	}
	return fmt.Sprintf("%.0f kB/s", rate/1e3)
}

func bytesText(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

func ibytes(n int64) string {
	return strings.ReplaceAll(humanize.IBytes(uint64(max(n, 0))), ".0 ", " ")
}

// parseBytes reads a size such as 20GiB.
func parseBytes(flag, text string) (int64, error) {
	n, err := humanize.ParseBytes(text)
	if err != nil || n > 1<<60 {
		return 0, usage("%s %q: not a size such as 20GiB or 500MB", flag, text)
	}
	return int64(n), nil
}

// cell cuts a text to n cells, from the left: the end of a path says more.
func cell(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return "…" + string(r[len(r)-n+1:])
}

// readTime prints the time of one read: three digits at most.
func readTime(d time.Duration) string {
	switch {
	case d < 10*time.Millisecond:
		return fmt.Sprintf("%.2f ms", d.Seconds()*1e3)
	case d < 100*time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return duration(d)
}

// count prints a number with the right word.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return humanize.Comma(int64(n)) + " " + many
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine/kernel"
	"deltafin/engine/kernel/kernelbench"
	"deltafin/engine/memory"
	"deltafin/engine/simulate"
	"deltafin/ssdio"
)

// machineFlags name a machine: an argument, or this one, measured.
type machineFlags struct {
	this   bool
	drives []string
	trunk  string // form of the trunk; "": as the machine says
}

func (f *machineFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.this, "this", false, "the machine this runs on, measured now: memory, arithmetic, drives (about half a minute)")
	c.Flags().StringVar(&f.trunk, "trunk", "", "bf16, as published, or int8, rounded by deltafin trunk: the form of the weights that every token uses (default: as the machine's file says; with --this bf16)")
	c.Flags().StringArrayVar(&f.drives, "drive", nil, "with --this: folder on a drive that holds the model or is to, repeatable (default: the working folder); a drive without large files gets a test file of 256 MiB for a moment")
}

// machine reads what the arguments name, or measures, and gives it the trunk that was
// asked for.
func (f *machineFlags) machine(ctx context.Context, s streams, args []string) (*simulate.Machine, error) {
	if f.trunk != "" && f.trunk != "bf16" && f.trunk != "int8" {
		return nil, usage("--trunk %q: give bf16 or int8", f.trunk)
	}
	m, err := f.named(ctx, s, args)
	if err == nil && f.trunk != "" {
		m.Int8 = f.trunk == "int8"
	}
	return m, err
}

func (f *machineFlags) named(ctx context.Context, s streams, args []string) (*simulate.Machine, error) {
	if f.this {
		if len(args) > 0 {
			return nil, usage("--this and %s name two machines: leave one out", args[0])
		}
		return f.measure(ctx, s)
	}
	if len(f.drives) > 0 {
		return nil, usage("--drive is for --this: the drives of a described machine stand in its file")
	}
	return machineOf(args)
}

// kernelTime is how long each row of the arithmetic is measured, until the rows that
// are asked for are there.
const kernelTime = 60 * time.Millisecond

// measure describes this machine.
func (f *machineFlags) measure(ctx context.Context, s streams) (*simulate.Machine, error) {
	now, err := memory.Read()
	if err != nil {
		return nil, err
	}
	m := &simulate.Machine{
		Name: fmt.Sprintf("this machine (%s/%s, %d cores)", runtime.GOOS, runtime.GOARCH, runtime.GOMAXPROCS(0)),
		RAM:  now.Total, Reserve: now.Total - now.Spare(), Overlap: 0.2,
	}
	line := newStatus(s)
	defer line.clear()
	level, err := f.arithmetic(ctx, line, m)
	if err != nil {
		return nil, err
	}
	how, err := f.measureDrives(ctx, line, m)
	if err != nil {
		return nil, ofDrive(err)
	}
	m.Notes = fmt.Sprintf("measured %s: arithmetic and memory bandwidth with the %s kernels, %s; memory is what can be taken now without swapping",
		time.Now().Format("2006-01-02 15:04"), level, how)
	return m, ofMachine(m.Check())
}

// The rows that a machine is described by. With one core there are no rows of all.
const (
	oneRow     = "matvec/bf16/12288x7168/"
	manyRows   = "matmul/bf16/12288x7168/512/"
	expertRows = "matmul/mxfp4/3072x3584/512/"
)

// arithmetic measures what the kernels reach: bytes per second with one row of
// activations, operations per second with many.
func (f *machineFlags) arithmetic(ctx context.Context, line *statusLine, m *simulate.Machine) (string, error) {
	table, err := kernel.Select("")
	if err != nil {
		return "", usage("%v", err)
	}
	workers := runtime.GOMAXPROCS(0)
	cores := "all"
	if workers == 1 {
		cores = "one"
	}
	enough, stop := context.WithCancel(ctx)
	defer stop()
	got := map[string]float64{}
	_, err = kernelbench.Run(enough, kernelbench.Options{Level: table, Workers: workers, Budget: kernelTime, Each: func(r kernelbench.Row) {
		line.set("measuring the arithmetic: %s", r.Name)
		got[r.Name] = r.Value * 1e9
		if r.Name == manyRows+cores {
			stop() // the rows that follow are not asked for
		}
	}})
	if err != nil && (!errors.Is(err, context.Canceled) || ctx.Err() != nil) {
		return "", err
	}
	m.Bandwidth = got[oneRow+cores]
	m.Gflops = min(got[manyRows+cores], got[expertRows+cores]) / 1e9
	return table.Name, nil
}

// measureDrives takes what was measured of the drives before, or measures them
// shortly. It says which.
func (f *machineFlags) measureDrives(ctx context.Context, line *statusLine, m *simulate.Machine) (string, error) {
	specs := f.drives
	if len(specs) == 0 {
		dir, err := os.Getwd()
		if err != nil {
			return "", err
		}
		specs = []string{strings.ReplaceAll(dir, ",", ",,")}
	}
	set, err := openDrives(specs)
	if err != nil {
		return "", err
	}
	defer set.fleet.Release()
	how := "drives as deltafin drives found them"
	if !set.load() {
		how = "drives with short reads of large files"
		o := ssdio.MeasureOptions{Sizes: []int{256 << 10, 2 << 20}, Depths: []int{1, 8, 16}, Point: 300 * time.Millisecond, Bytes: 256 << 20}
		profiles, err := ssdio.Measure(ctx, set.drives, &o, func(p ssdio.MeasureProgress) {
			line.set("measuring drive %s %3.0f %%", p.Drive, 100*p.Done)
		})
		if err != nil {
			return "", err
		}
		for i, p := range profiles {
			set.drives[i].Profile = p
		}
	}
	describeDrives(m, set)
	return how, nil
}

// describeDrives makes a description of measured drives. Where all together give less
// than each alone, they stand behind one hub.
func describeDrives(m *simulate.Machine, set *driveSet) {
	alone, together := 0.0, 0.0
	for i, d := range set.drives {
		p := d.Profile
		m.Drives = append(m.Drives, simulate.Drive{Name: d.Name, Rate: p.Best.Rate, Latency: latency(p).Seconds()})
		alone += p.Best.Rate
		together += set.speed(i)
	}
	const shared = 0.95
	if len(set.drives) > 1 && together < shared*alone {
		m.Hubs = []simulate.Hub{{Name: "what they share", Rate: together}}
		for i := range m.Drives {
			m.Drives[i].Hub = m.Hubs[0].Name
		}
	}
}

// latency is what a single read takes besides its bytes.
func latency(p *ssdio.Profile) time.Duration {
	least := time.Duration(0)
	for i, x := range p.Points {
		if x.Depth != 1 {
			continue
		}
		d := max(x.P50-time.Duration(float64(x.Size)/p.Best.Rate*1e9), 0)
		if least == 0 || i == 0 || d < least {
			least = d
		}
	}
	return least
}

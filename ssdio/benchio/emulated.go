package benchio

import (
	"context"
	"fmt"
	"time"

	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// A Row is one result. Limit is what the hardware (or the emulated limit) gives
// in the same run and Ratio is Value over Limit, or Limit over Value where less
// is better; 0 where there is none.
type Row struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	Limit float64 `json:"limit"`
	Ratio float64 `json:"ratio"`
	Note  string  `json:"note,omitempty"`
}

// Options are the options of all benchmarks. Zero means the default.
type Options struct {
	// Objects and Size of the data; default 24 experts of K3.
	Objects, Size int
	// Window is how many objects are asked for at once; default 32, the experts
	// of two layers.
	Window int
	// For is how long one figure is measured; default 3 s. Before it, WarmUp
	// passes unmeasured; default 1 s.
	For, WarmUp time.Duration
	// Set are the options of the set.
	Set ssdio.Options
	// Progress is told what begins and which fraction of all is done; it may be
	// nil. It is called on the caller's goroutine.
	Progress func(what string, done float64)
}

func (o Options) ensure() Options {
	fill(&o.Objects, 24)
	fill(&o.Size, ExpertSize)
	fill(&o.Window, 32)
	fill(&o.For, 3*time.Second)
	fill(&o.WarmUp, time.Second)
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	return o
}

func fill[T comparable](v *T, d T) {
	var zero T
	if *v == zero {
		*v = d
	}
}

// Limits of the four drives of the published record run, at a tenth of their
// speed, in bytes per second.
func Limits() []float64 { return []float64{1360e6, 710e6, 710e6, 570e6} }

// placements are the ways of placing that are measured.
func placements(limits []float64) []struct {
	Name   string
	Shares []Share
} {
	return []struct {
		Name   string
		Shares []Share
	}{
		{"full copies", Full(len(limits))},
		{"exact shares", Stripes(0, limits)},
		{"20% overlap", Stripes(0.2, limits)},
	}
}

// Emulated streams random objects from emulated drives of the given limits for
// each placement, again with the second drive slowing to a third half way, and
// again in sets of 16 of which each waits for the one before it.
// scratch is a folder on something faster than the sum of the limits.
func Emulated(ctx context.Context, scratch string, limits []float64, o Options) (rows []Row, err error) {
	o = o.ensure()
	ways := placements(limits)
	for i, w := range ways {
		o.Progress("emulated drives, "+w.Name, float64(i)/float64(len(ways)))
		more, err := emulated(ctx, scratch, limits, w.Name, w.Shares, o)
		if err != nil {
			return rows, fmt.Errorf("emulated drives, %s: %w", w.Name, err)
		}
		rows = append(rows, more...)
	}
	o.Progress("emulated drives", 1)
	return rows, nil
}

func emulated(ctx context.Context, scratch string, limits []float64, name string, shares []Share, o Options) (rows []Row, err error) {
	parents := make([]string, len(limits))
	for i := range parents {
		parents[i] = scratch
	}
	d, err := makeData(parents, shares, o.Objects, o.Size)
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := d.remove(); err == nil {
			err = e
		}
	}()
	steady, err := runEmulated(ctx, d, limits, -1, stream, o)
	if err != nil {
		return nil, err
	}
	slow, err := runEmulated(ctx, d, limits, 1, stream, o)
	if err != nil {
		return nil, err
	}
	layer, err := runEmulated(ctx, d, limits, -1, layers, o)
	if err != nil {
		return nil, err
	}
	// The same drives without ssdio between, to tell a machine that is too busy
	// or too slow for the limits from a scheduler that is.
	plain, err := runEmulated(ctx, d, limits, -1, plainRun, o)
	if err != nil {
		return nil, err
	}
	sum := 0.0
	for _, l := range limits {
		sum += l
	}
	slowed := append([]float64(nil), limits...)
	slowed[1] /= 3
	possible := d.layout.Ceiling(slowed)
	return []Row{
		{Name: "emulated/" + name, Value: steady.rate, Unit: "B/s", Limit: sum, Ratio: steady.rate / sum,
			Note: fmt.Sprintf("plain reads get %.0f MB/s; %s", plain.rate/1e6, steady.note)},
		{
			Name: "emulated/" + name + "/one slows to a third", Value: slow.rate, Unit: "B/s", Limit: possible,
			Ratio: slow.rate / possible, Note: "2 s after it slowed; " + slow.note,
		},
		{
			Name: "emulated/" + name + "/one layer at a time", Value: layer.rate, Unit: "B/s", Limit: sum, Ratio: layer.rate / sum,
			Note: "nothing asked for between two layers; " + layer.note,
		},
	}, nil
}

// runEmulated streams for a while. If a drive is to slow, it does so after the
// warm-up, and the figure begins two seconds later.
func runEmulated(ctx context.Context, d *data, limits []float64, slows int, run runner, o Options) (f figure, err error) {
	var fleet emulate.Fleet
	defer fleet.Release()
	start := o.WarmUp
	var drives []*ssdio.Drive
	for i, l := range limits {
		spec := emulate.Spec{Path: d.folders[i], Name: fmt.Sprintf("e%d", i), Limit: int64(l), Latency: 80 * time.Microsecond}
		if i == slows {
			spec.Faults = []emulate.Fault{{Kind: emulate.Slow, By: 3, From: o.WarmUp}}
			start = o.WarmUp + 2*time.Second
		}
		drive, err := fleet.OpenSpec(spec, nil)
		if err != nil {
			return f, err
		}
		drives = append(drives, drive)
	}
	return run(ctx, drives, d, start, o)
}

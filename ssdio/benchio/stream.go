package benchio

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"deltafin/ssdio"
)

// figure is the outcome of streaming for a while.
type figure struct {
	rate float64 // useful bytes per second
	cpu  float64 // processor seconds per 10^9 bytes
	note string
}

// stream asks for random objects, always o.Window at a time, and measures for
// o.For after start.
func stream(ctx context.Context, drives []*ssdio.Drive, d *data, start time.Duration, o Options) (f figure, err error) {
	arena, err := ssdio.NewArena(o.Size, o.Window, 4)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, arena.Close()) }()
	arena.Populate()
	set, err := ssdio.Open(drives, d.layout, &o.Set)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, set.Close()) }()

	// Every block once, so that what is checked only the first time is not part
	// of the figure.
	for _, key := range d.keys {
		slot := arena.Get()
		r := set.Read(ctx, ssdio.Demand, []ssdio.Request{{Key: key, Into: slot.Buffer(d.layout.Residue(key), o.Size)}}).Wait()[0]
		r.Into.Slot().Free()
		if r.Err != nil {
			return f, r.Err
		}
	}

	// Requests are sent one batch each and meet in one channel.
	landed := make(chan ssdio.Result, o.Window)
	rng := rand.New(rand.NewPCG(7, 7))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ask := func(into *ssdio.Slot) {
		key := d.keys[rng.IntN(len(d.keys))]
		b := set.Read(ctx, ssdio.Demand, []ssdio.Request{{Key: key, Into: into.Buffer(d.layout.Residue(key), o.Size)}})
		go func() { landed <- <-b.Results() }() // ends with the request; landed has room
	}
	for range o.Window {
		ask(arena.Get())
	}
	begin := time.Now()
	var first, last ssdio.Counters
	var cpu0, cpu1 time.Duration
	var failed error
	measuring := false
	for flying := o.Window; flying > 0; {
		r := <-landed
		age := time.Since(begin)
		switch {
		case r.Err != nil && failed == nil && !errors.Is(r.Err, context.Canceled):
			failed = r.Err
		case !measuring && age >= start:
			measuring = true
			set.Counters(&first)
			cpu0 = cpuTime()
		case measuring && last.Elapsed == 0 && age >= start+o.For:
			set.Counters(&last)
			cpu1 = cpuTime()
		}
		if last.Elapsed == 0 && failed == nil && ctx.Err() == nil {
			ask(r.Into.Slot())
			continue
		}
		flying--
		r.Into.Slot().Free()
	}
	if err := errors.Join(failed, ctx.Err()); err != nil {
		return f, err
	}
	last.Sub(&first)
	n := &last.Total
	// Bytes that arrived and were not for nothing: finer than those of whole
	// requests that happen to end within the time.
	f.rate = float64(n.Read-n.Wasted) / last.Elapsed.Seconds()
	f.cpu = (cpu1 - cpu0).Seconds() / (float64(n.Read) / 1e9)
	f.note = fmt.Sprintf("p50 %v p99 %v, wasted %.2f%%, hedged %.2f%%", n.Latency.Quantile(0.5).Round(10*time.Microsecond),
		n.Latency.Quantile(0.99).Round(10*time.Microsecond), 100*float64(n.Wasted)/float64(n.Read), 100*float64(n.Hedged)/float64(n.Read))
	for i := range last.Drives {
		f.note += fmt.Sprintf(", %s %.0f MB/s", last.Drives[i].Name, last.Drives[i].Mean(last.Elapsed)/1e6)
	}
	return f, nil
}

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

// A runner reads from drives and measures for o.For after start.
type runner func(ctx context.Context, drives []*ssdio.Drive, d *data, start time.Duration, o Options) (figure, error)

// bench is an open set with memory, and the readings of one figure.
type bench struct {
	set         *ssdio.Set
	arena       *ssdio.Arena
	d           *data
	size        int
	rng         *rand.Rand
	begin       time.Time
	start, end  time.Duration
	first, last ssdio.Counters
	cpu         [2]time.Duration
}

// openBench opens a set and reads every block once, so that what is checked
// only the first time is not part of the figure.
func openBench(ctx context.Context, drives []*ssdio.Drive, d *data, start time.Duration, o Options) (b *bench, err error) {
	b = &bench{d: d, size: o.Size, rng: rand.New(rand.NewPCG(7, 7)), start: start, end: start + o.For}
	if b.arena, err = ssdio.NewArena(o.Size, max(o.Window, layerSize), 4); err != nil {
		return nil, err
	}
	b.arena.Populate()
	if b.set, err = ssdio.Open(drives, d.layout, &o.Set); err != nil {
		return nil, errors.Join(err, b.arena.Close())
	}
	for _, key := range d.keys {
		r := b.set.Read(ctx, ssdio.Demand, []ssdio.Request{b.request(key)}).Wait()[0]
		r.Into.Slot().Free()
		if r.Err != nil {
			return nil, errors.Join(r.Err, b.close())
		}
	}
	b.begin = time.Now()
	return b, nil
}

func (b *bench) close() error { return errors.Join(b.set.Close(), b.arena.Close()) }

// request asks for an object into a free slot; there is always one.
func (b *bench) request(key ssdio.Key) ssdio.Request {
	return ssdio.Request{Key: key, Into: b.arena.Get().Buffer(b.d.layout.Residue(key), b.size)}
}

func (b *bench) random() ssdio.Key { return b.d.keys[b.rng.IntN(len(b.d.keys))] }

// over takes the readings when their time has come and says whether the second
// one is taken.
func (b *bench) over() bool {
	age := time.Since(b.begin)
	switch {
	case b.first.Elapsed == 0 && age >= b.start:
		b.set.Counters(&b.first)
		b.cpu[0] = cpuTime()
	case b.first.Elapsed != 0 && b.last.Elapsed == 0 && age >= b.end:
		b.set.Counters(&b.last)
		b.cpu[1] = cpuTime()
	}
	return b.last.Elapsed != 0
}

// figure is what came out between the two readings.
func (b *bench) figure() (f figure) {
	b.last.Sub(&b.first)
	n, took := &b.last.Total, b.last.Elapsed
	// Bytes that arrived and were not for nothing: finer than those of whole
	// requests that happen to end within the time.
	f.rate = float64(n.Read-n.Wasted) / took.Seconds()
	f.cpu = (b.cpu[1] - b.cpu[0]).Seconds() / (float64(n.Read) / 1e9)
	f.note = fmt.Sprintf("p50 %v p99 %v, wasted %.2f%%, hedged %.2f%%", n.Latency.Quantile(0.5).Round(10*time.Microsecond),
		n.Latency.Quantile(0.99).Round(10*time.Microsecond), 100*float64(n.Wasted)/float64(n.Read), 100*float64(n.Hedged)/float64(n.Read))
	for i := range b.last.Drives {
		f.note += fmt.Sprintf(", %s %.0f MB/s", b.last.Drives[i].Name, b.last.Drives[i].Mean(took)/1e6)
	}
	return f
}

// stream asks for random objects, always o.Window at a time.
func stream(ctx context.Context, drives []*ssdio.Drive, d *data, start time.Duration, o Options) (f figure, err error) {
	b, err := openBench(ctx, drives, d, start, o)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	// Requests are sent one batch each and meet in one channel.
	landed := make(chan ssdio.Result, o.Window)
	ask := func() {
		batch := b.set.Read(ctx, ssdio.Demand, []ssdio.Request{b.request(b.random())})
		go func() { landed <- <-batch.Results() }() // ends with the request; landed has room
	}
	for range o.Window {
		ask()
	}
	var failed error
	for flying := o.Window; flying > 0; {
		r := <-landed
		r.Into.Slot().Free()
		if failed == nil {
			failed = r.Err
		}
		if failed == nil && !b.over() {
			ask()
			continue
		}
		flying--
	}
	if failed != nil {
		return f, failed
	}
	return b.figure(), nil
}

// layerSize is the number of experts of one layer of K3.
const layerSize = 16

// layers asks for sets of 16 objects, the next when the last one is complete:
// what decoding would look like without prefetch and without arithmetic.
func layers(ctx context.Context, drives []*ssdio.Drive, d *data, start time.Duration, o Options) (f figure, err error) {
	b, err := openBench(ctx, drives, d, start, o)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for !b.over() {
		var reqs []ssdio.Request
		for range layerSize {
			reqs = append(reqs, b.request(b.random()))
		}
		var failed error
		for r := range b.set.Read(ctx, ssdio.Demand, reqs).Results() {
			r.Into.Slot().Free()
			failed = errors.Join(failed, r.Err)
		}
		if failed != nil {
			return f, failed
		}
	}
	return b.figure(), nil
}

package benchio

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"deltafin/ssdio"
)

// rounds is how often value and limit are measured in turns: a drive drifts.
const rounds = 3

// Real streams random objects from copies in 1, 2 and 4 of the folders (as many
// as there are) and compares with plain reads of the same files by as many
// goroutines, in turns. Folders on one device measure that two roads to it cost
// nothing; folders on several devices measure what ssdio is for.
func Real(ctx context.Context, folders []string, o Options) (rows []Row, err error) {
	o = o.ensure()
	for _, n := range []int{1, 2, 4} {
		if n > len(folders) {
			break
		}
		o.Progress(fmt.Sprintf("real folders, %d of %d", n, len(folders)), float64(n-1)/float64(len(folders)))
		row, err := real(ctx, folders[:n], o)
		if err != nil {
			return rows, fmt.Errorf("%d real folders: %w", n, err)
		}
		rows = append(rows, row)
	}
	o.Progress("real folders", 1)
	return rows, nil
}

func real(ctx context.Context, folders []string, o Options) (row Row, err error) {
	d, err := makeData(folders, Full(len(folders)), o.Objects, o.Size)
	if err != nil {
		return row, err
	}
	defer func() { err = errors.Join(err, d.remove()) }()
	var drives []*ssdio.Drive
	for i, dir := range d.folders {
		drive, err := ssdio.OpenDrive(dir, &ssdio.DriveOptions{Name: fmt.Sprintf("f%d", i)})
		if err != nil {
			return row, err
		}
		drives = append(drives, drive)
	}
	var ours, plain float64
	var last figure
	for range rounds {
		p, err := plainReads(ctx, drives, o)
		if err != nil {
			return row, err
		}
		if last, err = stream(ctx, drives, d, o.WarmUp, o); err != nil {
			return row, err
		}
		ours += last.rate / rounds
		plain += p / rounds
	}
	note := last.note
	if len(drives) > 1 && drives[0].Device.Number == drives[1].Device.Number {
		note = "folders on one device; " + note
	}
	return Row{
		Name: fmt.Sprintf("real/%d folders", len(folders)), Value: ours, Unit: "B/s", Limit: plain, Ratio: ours / plain,
		Note: fmt.Sprintf("%.3f cores per GB/s; %s", last.cpu, note),
	}, nil
}

// plainRun is plainReads as a runner.
func plainRun(ctx context.Context, drives []*ssdio.Drive, _ *data, _ time.Duration, o Options) (figure, error) {
	rate, err := plainReads(ctx, drives, o)
	return figure{rate: rate}, err
}

// plainReads is the ceiling: goroutines that read slices at random places of
// the files of all drives, and do nothing else.
func plainReads(ctx context.Context, drives []*ssdio.Drive, o Options) (rate float64, err error) {
	depth, slice := o.Set.Depth, o.Set.Slice
	fill(&depth, 8)
	fill(&slice, 2<<20)
	arena, err := ssdio.NewArena(slice, depth*len(drives), 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, arena.Close()) }()
	arena.Populate()
	var wait sync.WaitGroup
	totals := make([]int64, depth*len(drives))
	errs := make([]error, len(totals))
	begin := time.Now()
	for i := range totals {
		slot := arena.Get()
		defer slot.Free()
		src, err := drives[i%len(drives)].FS.Open(fileName)
		if err != nil {
			return 0, err
		}
		defer src.Close()
		wait.Add(1)
		go func() {
			defer wait.Done()
			totals[i], errs[i] = plainReader(ctx, src, slot.Buffer(0, slice).Bytes(), begin, o.For, uint64(i))
		}()
	}
	wait.Wait()
	took := time.Since(begin).Seconds()
	for _, n := range totals {
		rate += float64(n) / took
	}
	return rate, errors.Join(errs...)
}

func plainReader(ctx context.Context, src ssdio.Source, mem []byte, begin time.Time, long time.Duration, seed uint64) (total int64, err error) {
	var bounce ssdio.Scratch
	defer func() { err = errors.Join(err, bounce.Free()) }()
	rng := rand.New(rand.NewPCG(seed, 1))
	for time.Since(begin) < long {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		at := rng.Int64N(src.Size()-int64(len(mem))+1) &^ 4095
		if _, err := src.ReadInto(mem, at, &bounce); err != nil {
			return total, err
		}
		total += int64(len(mem))
	}
	return total, nil
}

// Cost measures processor time: of the read path without and with checks, on
// one real folder, and of the checksum alone.
func Cost(ctx context.Context, folder string, o Options) (rows []Row, err error) {
	o = o.ensure()
	d, err := makeData([]string{folder}, Full(1), o.Objects, o.Size)
	if err != nil {
		return nil, fmt.Errorf("cost of reading: %w", err)
	}
	defer func() { err = errors.Join(err, d.remove()) }()
	drive, err := ssdio.OpenDrive(d.folders[0], nil)
	if err != nil {
		return nil, fmt.Errorf("cost of reading: %w", err)
	}
	o.Progress("cost/plain reads", 0)
	plain, err := plainCost(ctx, drive, o)
	if err != nil {
		return nil, fmt.Errorf("cost of reading: %w", err)
	}
	rows = append(rows, plain)
	for i, c := range []struct {
		name   string
		verify ssdio.Verify
		limit  float64
	}{
		{"cost/read path", ssdio.VerifyFirst(), 0.05},
		{"cost/read path with all checks", ssdio.VerifyAll(), 0},
	} {
		o.Progress(c.name, float64(i+1)/4)
		o.Set.Verify = c.verify
		f, err := stream(ctx, []*ssdio.Drive{drive}, d, o.WarmUp, o)
		if err != nil {
			return rows, fmt.Errorf("cost of reading: %w", err)
		}
		row := Row{Name: c.name, Value: f.cpu, Unit: "cores per GB/s", Limit: c.limit, Note: fmt.Sprintf("at %.0f MB/s", f.rate/1e6)}
		if c.limit > 0 {
			row.Ratio = c.limit / f.cpu
		}
		rows = append(rows, row)
	}
	o.Progress("cost/checksum", 3.0/4)
	rate := sumRate()
	o.Progress("cost/checksum", 1)
	return append(rows, Row{Name: "cost/checksum", Value: rate, Unit: "B/s per core", Limit: 10e9, Ratio: rate / 10e9}), nil
}

// plainCost is what the same reads cost without ssdio: the kernel's part, which
// no library can go below.
func plainCost(ctx context.Context, drive *ssdio.Drive, o Options) (Row, error) {
	before := cpuTime()
	begin := time.Now()
	rate, err := plainReads(ctx, []*ssdio.Drive{drive}, o)
	bytes := rate * time.Since(begin).Seconds()
	return Row{
		Name: "cost/plain reads", Value: (cpuTime() - before).Seconds() / (bytes / 1e9), Unit: "cores per GB/s",
		Note: fmt.Sprintf("the kernel's part; at %.0f MB/s", rate/1e6),
	}, err
}

// sumRate is the rate of ssdio.Sum on blocks that are in the cache, as they are
// when a worker has just read them.
func sumRate() float64 {
	block := make([]byte, ssdio.BlockSize)
	best := 0.0
	for range 20 {
		const n = 200
		begin := time.Now()
		for range n {
			ssdio.Sum(block)
		}
		best = max(best, n*float64(len(block))/time.Since(begin).Seconds())
	}
	return best
}

package kernelbench

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"deltafin/engine/kernel"
)

// Options say what to measure; the zero value of a field has a default.
type Options struct {
	Level   *kernel.Table // what to measure; required
	Workers int           // workers of the rows "all"; default: GOMAXPROCS
	Budget  time.Duration // time per row; default 250 ms
	Each    func(Row)     // called after every row, on the caller's goroutine; may be nil

	// Weights gives the memory that the weights lie in, WeightBytes long and zero.
	// The engine's lie in large pages, which is worth some percent; nil takes the
	// Go heap.
	Weights []byte
}

// WeightBytes is the size of Options.Weights.
const WeightBytes = experts * expertBytes

// A Row is one figure. Limit and Ratio are 0 where nothing limits it.
type Row struct {
	Name  string  `json:"name"`  // stable: kernel/format/shape/rows/cores
	Value float64 `json:"value"` // in Unit
	Unit  string  `json:"unit"`  // GB/s, GFLOP/s, Gelem/s or us
	Limit float64 `json:"limit"` // what the machine gave in the same passes
	Ratio float64 `json:"ratio"` // Value / Limit; for us Limit / Value
	Note  string  `json:"note"`
}

// quantile is the share of passes that are faster than the one reported: others
// on the machine slow passes down, nothing speeds them up.
const quantile = 0.25

// bench is one run.
type bench struct {
	ctx  context.Context
	opt  Options
	one  *kernel.Pool // a single worker
	all  *kernel.Pool
	data []byte       // weights, see fill
	side []byte       // scales of MXFP4
	f32  []byte       // scales of int8: float32 ones
	next atomic.Int64 // rotation through data
	x, y []float32
	rows []Row

	least int // passes per row, whatever the budget
}

// Run measures and returns all rows. It ends early with the rows so far and the
// context's error.
func Run(ctx context.Context, opt Options) ([]Row, error) {
	if opt.Level == nil {
		return nil, fmt.Errorf("kernelbench: no level was chosen")
	}
	if n := len(opt.Weights); n != 0 && n != WeightBytes {
		return nil, fmt.Errorf("kernelbench: %d bytes for weights, need %d", n, WeightBytes)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if opt.Workers <= 0 {
		opt.Workers = runtime.GOMAXPROCS(0)
	}
	if opt.Budget <= 0 {
		opt.Budget = 250 * time.Millisecond
	}
	b := &bench{ctx: ctx, opt: opt, one: kernel.NewPool(opt.Level, 1), all: kernel.NewPool(opt.Level, opt.Workers), least: 8}
	if opt.Budget < time.Millisecond {
		b.least = 1 // a test of the rows, not of the speed
	}
	defer b.one.Close()
	defer b.all.Close()
	b.fill()
	for _, part := range []func(){b.machine, b.matVecs, b.matMuls, b.vectors, b.region} {
		if part(); ctx.Err() != nil {
			return b.rows, ctx.Err()
		}
	}
	return b.rows, nil
}

// fill makes weights that are ordinary numbers in every format: as BF16 between
// 0.004 and 0.5, as MXFP4 with scales near 1, as int8 any code.
func (b *bench) fill() {
	if b.data = b.opt.Weights; b.data == nil {
		b.data = make([]byte, WeightBytes)
	}
	v := uint32(1)
	for i := range b.data {
		v = v*1664525 + 1013904223
		c := byte(v >> 24)
		if i&1 == 1 {
			c = c&0x83 | 0x3C // the upper byte of a BF16
		}
		b.data[i] = c
	}
	b.side = slices.Repeat([]byte{122, 123, 124, 125}, experts*3*344064/4)
	b.f32 = slices.Repeat([]byte{0, 0, 0, 0x3C}, 1<<20)
	b.x = kernel.Floats(512 * 12288)
	for i := range b.x {
		v = v*1664525 + 1013904223
		b.x[i] = float32(int32(v)) / (1 << 31)
	}
	b.y = kernel.Floats(512 * 12288)
}

// measure alternates passes of probe and work for the budget and returns the
// seconds of each at the quantile. probe may be nil.
func (b *bench) measure(probe, work func()) (probeSec, workSec float64) {
	var p, w []float64
	end := time.Now().Add(b.opt.Budget)
	clock := func(f func(), to *[]float64) {
		if f == nil {
			return
		}
		start := time.Now()
		f()
		*to = append(*to, time.Since(start).Seconds())
	}
	work() // warm scratch buffers
	for len(w) < b.least || time.Now().Before(end) {
		if b.ctx.Err() != nil {
			break
		}
		clock(probe, &p)
		clock(work, &w)
	}
	at := func(d []float64) float64 {
		if len(d) == 0 {
			return 0
		}
		slices.Sort(d)
		return d[int(quantile*float64(len(d)))]
	}
	return at(p), at(w)
}

// add appends a row: amount of work per pass against amount of the probe.
func (b *bench) add(name, unit, note string, amount float64, probe func(), probeAmount float64, work func()) {
	ps, ws := b.measure(probe, work)
	if b.ctx.Err() != nil {
		return
	}
	r := Row{Name: name, Unit: unit, Note: note, Value: amount / ws / 1e9}
	if ps > 0 {
		r.Limit = probeAmount / ps / 1e9
		r.Ratio = r.Value / r.Limit
	}
	b.push(r)
}

func (b *bench) push(r Row) {
	b.rows = append(b.rows, r)
	if b.opt.Each != nil {
		b.opt.Each(r)
	}
}

// cores names the pool in a row.
func (b *bench) cores(p *kernel.Pool) string {
	if p == b.one {
		return "one"
	}
	return "all"
}

func (b *bench) pools() []*kernel.Pool {
	if b.all.Workers() == 1 {
		return []*kernel.Pool{b.one}
	}
	return []*kernel.Pool{b.one, b.all}
}

package kernelbench

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"deltafin/engine/kernel"
)

// The experts of one layer that a token uses (spec 2.3).
const (
	experts     = 16
	expertBytes = 3 * 5505024 // packed codes of w1, w3, w2
)

const (
	readBytes = 4 << 20 // of one pass of the read probe and worker
	mulRounds = 20000   // of one pass of the multiply probe and worker
	passBytes = 6 << 20 // about what one pass of a one-row product reads
)

// readTask reads data, mulTask multiplies registers, on every worker.
type readTask struct{ b *bench }

func (t readTask) Run(_, lo, hi int) {
	for i := lo; i < hi; i++ {
		t.b.opt.Level.ReadBytes(t.b.window(readBytes / 4))
	}
}

type mulTask struct{ b *bench }

func (t mulTask) Run(_, lo, hi int) { t.b.opt.Level.MulAdds((hi - lo) * mulRounds / 16) }

// window is the next n bytes of the arena in rotation.
func (b *bench) window(n int) []byte {
	at := int(b.next.Add(int64(n)))
	at = at % (len(b.data) - n) &^ 63
	return b.data[at : at+n]
}

func (b *bench) readProbe(p *kernel.Pool) (func(), float64) {
	return func() { p.Do(readTask{b}, 4*p.Workers(), 1) }, float64(readBytes * p.Workers())
}

func (b *bench) mulProbe(p *kernel.Pool) (func(), float64) {
	n := 16 * p.Workers()
	return func() { p.Do(mulTask{b}, n, 1) }, float64(2 * n * (mulRounds / 16) * b.opt.Level.MulAddsPerRound)
}

// longMulProbe is mulProbe for as many multiply-adds as work has, at least one pass:
// on a busy machine both are then interrupted as often.
func (b *bench) longMulProbe(p *kernel.Pool, work float64) (func(), float64) {
	probe, amount := b.mulProbe(p)
	times := max(1, int(work/amount))
	return func() {
		for range times {
			probe()
		}
	}, amount * float64(times)
}

// machine measures the limits themselves.
func (b *bench) machine() {
	for _, p := range b.pools() {
		f, n := b.readProbe(p)
		b.add("read/"+b.cores(p), "GB/s", "memory, read only", n, nil, 0, f)
		f, n = b.mulProbe(p)
		b.add("peak/"+b.cores(p), "GFLOP/s", "fused multiply-adds on registers", n, nil, 0, f)
	}
}

// shape is a weight of the model.
type shape struct {
	format     kernel.Format
	rows, cols int
	what       string
}

// matrix is a weight in the arena, at the next place in rotation.
func (b *bench) matrix(s shape, rows int) kernel.Matrix {
	n := rows * s.format.RowBytes(s.cols)
	var scale []byte
	switch s.format {
	case kernel.MXFP4:
		scale = b.side
	case kernel.Int8:
		scale = b.f32
	}
	m, err := kernel.NewMatrix(s.format, rows, s.cols, b.window(n), scale, int8Group)
	if err != nil {
		panic(err) // a shape of this file
	}
	return m
}

const int8Group = 128

// matVecs measures products with one row of x. A pass takes a part of a large
// weight, whole rows, so that passes are short; the next one goes on elsewhere.
func (b *bench) matVecs() {
	shapes := []shape{
		{kernel.MXFP4, 3072, 3584, "expert gate, up"},
		{kernel.MXFP4, 3584, 3072, "expert down"},
		{kernel.BF16, 12288, 7168, "q, k, v, gate"},
		{kernel.BF16, 7168, 12288, "attention out"},
		{kernel.BF16, 6144, 7168, "shared gate, up"},
		{kernel.BF16, 7168, 6144, "shared down"},
		{kernel.BF16, 3584, 7168, "latent down"},
		{kernel.BF16, 7168, 3584, "latent up"},
		{kernel.BF16, 896, 7168, "router"},
		{kernel.BF16, 18432, 1536, "MLA q"},
		{kernel.BF16, 576, 7168, "MLA kv"},
		{kernel.BF16, 12288, 128, "KDA decay, second"},
		{kernel.Int8, 12288, 7168, "trunk as int8"},
		{kernel.Int8, 7168, 12288, "trunk as int8"},
		{kernel.F32, 3072, 3584, "no weight of K3"},
	}
	for _, s := range shapes {
		for _, p := range b.pools() {
			rows := min(s.rows, passBytes*p.Workers()/s.format.RowBytes(s.cols))
			probe, n := b.readProbe(p)
			m := b.matrix(s, rows)
			note := s.what
			if s.format == kernel.MXFP4 {
				note += fmt.Sprintf("; %.1f %% of the bytes are scales", 100*float64(1)/17)
			}
			b.add(fmt.Sprintf("matvec/%s/%dx%d/%s", s.format, s.rows, s.cols, b.cores(p)), "GB/s", note,
				float64(m.Bytes()), probe, n, func() {
					m := b.matrix(s, rows)
					p.MatMul(b.y, &m, b.x, 1)
				})
		}
	}
}

// matMuls measures products with many rows of x.
func (b *bench) matMuls() {
	for _, s := range []shape{
		{kernel.MXFP4, 3072, 3584, "expert gate, up"},
		{kernel.BF16, 12288, 7168, "q, k, v, gate"},
		{kernel.Int8, 12288, 7168, "trunk as int8"},
	} {
		for _, n := range []int{2, 4, 8, 64, 512} {
			for _, p := range b.pools() {
				if n < 64 && p != b.one {
					continue
				}
				rows := 4096 / n // passes of a few milliseconds
				if n >= 64 && b.least > 1 {
					// As many that the pool hands them out in blocks like those of a
					// whole weight; smaller blocks would fetch x from afar more often.
					rows = min(512*p.Workers(), s.rows)
				}
				work := float64(2 * rows * s.cols * n)
				probe, amount := b.longMulProbe(p, work)
				b.add(fmt.Sprintf("matmul/%s/%dx%d/%d/%s", s.format, s.rows, s.cols, n, b.cores(p)), "GFLOP/s", s.what,
					work, probe, amount, func() {
						m := b.matrix(s, rows)
						p.MatMul(b.y, &m, b.x, n)
					})
			}
		}
	}
}

// vectors measures what is not a product with a weight, on one core.
func (b *bench) vectors() {
	l := b.opt.Level
	read, readAmount := b.readProbe(b.one)
	mul, mulAmount := b.mulProbe(b.one)
	const heads, d = 96, 128
	state := kernel.Floats(heads * d * d * 4) // four layers: more than a cache
	for i := range state {
		state[i] = b.x[i%len(b.x)] // pages that nobody wrote would be made during the passes
	}
	decay := make([]float32, d) // near 1, or the state would sink to nothing
	for i := range decay {
		decay[i] = 0.97
	}
	h := 0
	b.add("kda/128x128/one", "GB/s", "state of one head, read and written", 2*4*d*d, read, readAmount, func() {
		s := state[h*d*d : (h+1)*d*d]
		h = (h + 1) % (4 * heads)
		l.KDAStep(b.y[:d], s, b.x[:d], b.x[d:2*d], b.x[2*d:3*d], decay, 0.01, b.y[d:2*d])
	})
	const ctx, rank, width = 4096, 512, 576
	cache := kernel.F32View(b.x, ctx, width, width)
	var sc kernel.Scratch
	b.add("mla scores/4096x576/48/one", "GFLOP/s", "48 heads over the latent cache", 2*ctx*width*48, mul, mulAmount, func() {
		l.MatMul(&sc, b.y, ctx, &cache, 0, ctx, b.x, width, 48)
	})
	b.add("mla sums/4096x512/48/one", "GFLOP/s", "48 heads over the latent cache", 2*ctx*rank*48, mul, mulAmount, func() {
		l.MatTMul(&sc, b.y, rank, &cache, 0, rank, b.x, ctx, 48)
	})
	const n = 6144
	y, g, u := b.y[:n], b.x[:n], b.x[n:2*n]
	for _, f := range []struct {
		name string
		run  func()
	}{
		{"situ", func() { l.SiTU(y, g, u, 4, 25) }},
		{"sigmoid", func() { l.Sigmoid(y, g) }},
		{"softmax", func() { l.Softmax(y) }},
		{"rmsnorm", func() { l.RMSNorm(y, g, u, 1e-5) }},
		{"decay", func() { l.DecayLower(y, g, u, 1, -5) }},
	} {
		b.add(fmt.Sprintf("%s/%d/one", f.name, n), "Gelem/s", "", n, nil, 0, f.run)
	}
	scores := make([]float32, 896)
	copy(scores, b.x)
	idx := make([]int32, 16)
	b.add("topk/896/one", "Gelem/s", "16 of 896", 896, nil, 0, func() { kernel.TopK(idx, scores, nil) })
}

// regionLimit is the most that a parallel region may cost.
const regionLimit = 5 * time.Microsecond

// A meeting is a region that ends when every worker is inside.
type meeting struct {
	inside atomic.Int32
	all    int32
}

func (m *meeting) Run(_, _, _ int) {
	m.inside.Add(1)
	for m.inside.Load() < m.all {
		runtime.Gosched()
	}
}

// region measures what a parallel region costs by itself, from its call until all
// workers have been inside and are out again.
func (b *bench) region() {
	n := b.all.Workers()
	m := &meeting{all: int32(n)}
	_, sec := b.measure(nil, func() {
		m.inside.Store(0)
		b.all.Do(m, n, 1)
	})
	if b.ctx.Err() != nil {
		return
	}
	us, limit := sec*1e6, float64(regionLimit.Microseconds())
	b.push(Row{Name: "region/all", Value: us, Unit: "us", Limit: limit, Ratio: limit / us, Note: "every worker takes part"})
}

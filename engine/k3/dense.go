package k3

import "deltafin/engine/kernel"

// mlpWeights is a gated feed-forward: down * SiTU(gate x, up x) (spec 3.5). The
// dense layers and the shared experts have this form.
type mlpWeights struct {
	gate, up kernel.Matrix // [width, Hidden]
	down     kernel.Matrix // [Hidden, width]
}

func (l *loader) mlp(p string, hidden, width int) *mlpWeights {
	return &mlpWeights{
		gate: l.matrix(p+"gate_proj.weight", width, hidden),
		up:   l.matrix(p+"up_proj.weight", width, hidden),
		down: l.matrix(p+"down_proj.weight", hidden, width),
	}
}

// mlpBuffers is the working memory of a feed-forward.
type mlpBuffers struct {
	r        *Runner
	gate, up []float32 // [n][width]
	situ     situTask
	jobs     [2]kernel.Job
}

func (b *mlpBuffers) init(r *Runner) {
	b.r = r
	b.situ.r = r
}

// run writes the feed-forward of every row of x to y.
func (b *mlpBuffers) run(w *mlpWeights, y, x []float32) {
	b.size(w)
	b.jobs = [2]kernel.Job{b.gateJob(w, x), b.upJob(w, x)}
	b.r.pool.MatMuls(b.jobs[:])
	b.finish(w, y)
}

// size, gateJob, upJob and finish are the parts of run, for callers that put the
// first products into a parallel region of their own.
func (b *mlpBuffers) size(w *mlpWeights) {
	b.gate = sized(b.gate, b.r.n*w.gate.Rows)
	b.up = sized(b.up, b.r.n*w.gate.Rows)
}

func (b *mlpBuffers) gateJob(w *mlpWeights, x []float32) kernel.Job {
	return kernel.Job{Y: b.gate, W: &w.gate, X: x, N: b.r.n}
}

func (b *mlpBuffers) upJob(w *mlpWeights, x []float32) kernel.Job {
	return kernel.Job{Y: b.up, W: &w.up, X: x, N: b.r.n}
}

func (b *mlpBuffers) finish(w *mlpWeights, y []float32) {
	b.situ.run(b.gate, b.up)
	b.r.pool.MatMul(y, &w.down, b.gate, b.r.n)
}

// situTask replaces g by SiTU(g, u), in blocks of elements.
type situTask struct {
	r    *Runner
	g, u []float32
}

// situBlock is how many elements make an item: two tanh and a sigmoid each, so
// about 10 microseconds.
const situBlock = 1024

func (t *situTask) run(g, u []float32) {
	t.g, t.u = g, u
	t.r.pool.Do(t, (len(g)+situBlock-1)/situBlock, 1)
}

func (t *situTask) Run(_, lo, hi int) {
	c := t.r.m.cfg
	a, b := lo*situBlock, min(hi*situBlock, len(t.g))
	t.r.pool.SiTU(t.g[a:b], t.g[a:b], t.u[a:b], c.SituBeta, c.SituLinearBeta)
}

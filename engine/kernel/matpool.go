package kernel

// strip is the number of weight rows that pass over one block of x, tile after
// tile, before the next columns: x is fetched from afar once per strip.
const strip = 64

// A Job is one product of MatMul: Y [N, W.Rows] = X [N, W.Cols] * W^T, rows of Y
// LdY and of X LdX floats apart (0 stands for no gap).
type Job struct {
	Y        []float32
	LdY      int
	W        *Matrix
	X        []float32
	LdX      int
	N        int
	firstRow int // number of the job's first row among all rows of the call
}

// MatMul computes Y [n, w.Rows] = X [n, w.Cols] * W^T over the workers.
func (p *Pool) MatMul(y []float32, w *Matrix, x []float32, n int) {
	p.mat.one[0] = Job{Y: y, W: w, X: x, N: n}
	p.MatMuls(p.mat.one[:])
}

// MatMuls computes several products in one parallel region. It fills in the
// defaults of the jobs.
func (p *Pool) MatMuls(jobs []Job) {
	rows, work := 0, 0
	for i := range jobs {
		j := &jobs[i]
		if j.LdY == 0 {
			j.LdY = j.W.Rows
		}
		if j.LdX == 0 {
			j.LdX = j.W.Cols
		}
		j.firstRow = rows
		rows += j.W.Rows
		work += j.W.Rows * j.W.Cols * j.N
	}
	p.mat.jobs = jobs
	p.Do(&p.mat, rows, p.matGrain(rows, work))
	p.mat.jobs, p.mat.one[0] = nil, Job{}
}

// matGrain is the number of weight rows handed out at a time: enough blocks to
// even out the workers, few enough that handing out costs nothing, and none so
// small that it is done sooner than another worker would have noticed it. work is
// the number of multiplications.
func (p *Pool) matGrain(rows, work int) int {
	if rows == 0 {
		return 1
	}
	even := min(max((rows/(8*p.Workers())+7)&^7, 16), 256)
	if even > strip {
		even &^= strip - 1
	}
	worth := (p.blockWork*rows/max(work, 1) + 7) &^ 7
	return max(even, worth)
}

// matTask is the Task behind MatMul; its items are the weight rows of all jobs.
type matTask struct {
	p    *Pool
	jobs []Job
	one  [1]Job
}

func (t *matTask) Run(worker, lo, hi int) {
	for i := range t.jobs {
		j := &t.jobs[i]
		a, b := max(lo-j.firstRow, 0), min(hi-j.firstRow, j.W.Rows)
		if a < b {
			t.p.Table.MatMul(t.p.Scratch(worker), j.Y, j.LdY, j.W, a, b, j.X, j.LdX, j.N)
		}
	}
}

package kernel

import (
	"sync"
	"sync/atomic"
)

// A Task is work that can be cut into independent items.
type Task interface {
	// Run does items [lo, hi). worker is below Pool.Workers and says whose
	// Scratch to use.
	Run(worker, lo, hi int)
}

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

// A Pool is a fixed set of workers that run a Table. It serves one caller at a
// time. Which worker does what never changes a result.
type Pool struct {
	*Table
	scratch []Scratch

	task  Task
	n     int
	grain int
	next  atomic.Int64
	wake  []chan struct{}
	done  sync.WaitGroup
	quit  sync.WaitGroup
	mat   matTask
}

// NewPool starts workers-1 goroutines; the caller of Do is the remaining worker.
// Close ends them.
func NewPool(t *Table, workers int) *Pool {
	workers = max(workers, 1)
	p := &Pool{Table: t, scratch: make([]Scratch, workers)}
	p.mat.p = p
	for w := 1; w < workers; w++ {
		c := make(chan struct{}, 1)
		p.wake = append(p.wake, c)
		p.quit.Add(1)
		go func() {
			defer p.quit.Done()
			for range c {
				p.work(w)
				p.done.Done()
			}
		}()
	}
	return p
}

// Close ends the workers and waits for them.
func (p *Pool) Close() {
	for _, c := range p.wake {
		close(c)
	}
	p.quit.Wait()
	p.wake = nil
}

// Workers is the number of workers, the caller of Do included.
func (p *Pool) Workers() int { return len(p.scratch) }

// Scratch is the working memory of a worker, for use inside Task.Run.
func (p *Pool) Scratch(worker int) *Scratch { return &p.scratch[worker] }

// Do runs items [0, n) of t, handed out in blocks of grain, and returns when all
// are done.
func (p *Pool) Do(t Task, n, grain int) {
	grain = max(grain, 1)
	if len(p.wake) == 0 || n <= grain {
		if n > 0 {
			t.Run(0, 0, n)
		}
		return
	}
	p.task, p.n, p.grain = t, n, grain
	p.next.Store(0)
	p.done.Add(len(p.wake))
	for _, c := range p.wake {
		c <- struct{}{}
	}
	p.work(0)
	p.done.Wait()
	p.task = nil
}

func (p *Pool) work(worker int) {
	for {
		lo := int(p.next.Add(int64(p.grain))) - p.grain
		if lo >= p.n {
			return
		}
		p.task.Run(worker, lo, min(lo+p.grain, p.n))
	}
}

// MatMul computes Y [n, w.Rows] = X [n, w.Cols] * W^T over the workers.
func (p *Pool) MatMul(y []float32, w *Matrix, x []float32, n int) {
	p.mat.one[0] = Job{Y: y, W: w, X: x, N: n}
	p.MatMuls(p.mat.one[:])
}

// MatMuls computes several products in one parallel region. It fills in the
// defaults of the jobs.
func (p *Pool) MatMuls(jobs []Job) {
	rows := 0
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
	}
	p.mat.jobs = jobs
	p.Do(&p.mat, rows, matGrain(rows, p.Workers()))
}

// matGrain is the number of weight rows handed out at a time: enough blocks to
// even out the workers, few enough that handing out costs nothing.
func matGrain(rows, workers int) int {
	return min(max((rows/(8*workers)+7)&^7, 16), 256)
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

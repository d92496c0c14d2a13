package kernel

import (
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// countTask counts how often every item was done and which workers took part.
type countTask struct {
	done    []atomic.Int32
	workers [8]atomic.Int32
}

func (c *countTask) Run(worker, lo, hi int) {
	c.workers[worker].Add(1)
	for i := lo; i < hi; i++ {
		c.done[i].Add(1)
	}
}

func TestDoRunsEveryItemOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 3, 5} {
		p := NewPool(genericTable(), workers)
		for n := range 70 {
			for _, grain := range []int{0, 1, 3, 16, 100} {
				c := &countTask{done: make([]atomic.Int32, n)}
				p.Do(c, n, grain)
				for i := range c.done {
					if got := c.done[i].Load(); got != 1 {
						t.Fatalf("%d workers, n %d, grain %d: item %d ran %d times", workers, n, grain, i, got)
					}
				}
			}
		}
		p.Close()
	}
}

// meetTask ends only when all workers are inside at the same time.
type meetTask struct {
	inside atomic.Int32
	want   int32
}

func (m *meetTask) Run(worker, lo, hi int) {
	m.inside.Add(1)
	for m.inside.Load() < m.want {
		runtime.Gosched()
	}
}

// TestAllWorkersTakePart also after they went to sleep: collecting garbage gives
// them the time.
func TestAllWorkersTakePart(t *testing.T) {
	p := NewPool(genericTable(), 4)
	defer p.Close()
	for range 20 {
		p.Do(&meetTask{want: 4}, 4, 1)
		for _, w := range p.workers {
			for !w.gate.asleep.Load() {
				runtime.Gosched()
			}
		}
		p.Do(&meetTask{want: 4}, 4, 1)
	}
}

func TestCloseTwiceAndUseAfter(t *testing.T) {
	p := NewPool(genericTable(), 3)
	p.Close()
	p.Close()
	c := &countTask{done: make([]atomic.Int32, 10)}
	p.Do(c, 10, 1)
	for i := range c.done {
		if c.done[i].Load() != 1 {
			t.Fatalf("item %d did not run once after Close", i)
		}
	}
}

// panicTask panics on one kind of worker, once all are inside.
type panicTask struct {
	meetTask
	onCaller bool
}

var errTask = errors.New("the task failed")

func (m *panicTask) Run(worker, lo, hi int) {
	m.meetTask.Run(worker, lo, hi)
	if (worker == 0) == m.onCaller {
		panic(errTask)
	}
}

func TestPanicReachesTheCaller(t *testing.T) {
	p := NewPool(genericTable(), 2)
	defer p.Close()
	for _, onCaller := range []bool{true, false, true, false} {
		got := func() (v any) {
			defer func() { v = recover() }()
			p.Do(&panicTask{meetTask{want: 2}, onCaller}, 2, 1)
			return nil
		}()
		if onCaller && got != errTask {
			t.Fatalf("panic on the caller arrived as %v", got)
		}
		if !onCaller {
			f, ok := got.(*TaskPanic)
			if !ok || f.Value != errTask || !strings.Contains(f.Error(), "panicTask") {
				t.Fatalf("panic on a worker arrived as %v", got)
			}
		}
		c := &countTask{done: make([]atomic.Int32, 100)}
		p.Do(c, 100, 1) // the pool still works
		for i := range c.done {
			if c.done[i].Load() != 1 {
				t.Fatal("the pool lost an item after a panic")
			}
		}
	}
}

func TestWarmPoolAllocatesNothing(t *testing.T) {
	for _, level := range Levels() {
		p := NewPool(level, 2)
		w, wx := make([]float32, 96*160), make([]byte, 96*80)
		x, y := make([]float32, 3*160), make([]float32, 3*96)
		m := F32View(w, 96, 160, 160)
		q := Matrix{Format: MXFP4, Rows: 96, Cols: 160, Stride: 80, Data: wx, Scale: make([]byte, 96*5)}
		c := &countTask{done: make([]atomic.Int32, 64)}
		run := func() {
			p.MatMul(y, &m, x, 3)
			p.MatMul(y, &q, x, 1)
			p.MatTMul(p.Scratch(0), y, 160, &m, 0, 150, x, 96, 1)
			p.Softmax(x[:33])
			p.SiTU(x[:33], x[40:73], x[80:113], 4, 25)
			p.Dot(x[:33], x[40:73])
			p.Do(c, 64, 1)
		}
		for range 100 {
			run()
		}
		if n := testing.AllocsPerRun(200, run); n != 0 {
			t.Errorf("%s: %v allocations per run", level.Name, n)
		}
		p.Close()
	}
}

// TestSplitDoesNotMatter: a product over two workers in blocks equals the product
// in one piece, bit for bit, and many rows equal each row alone.
func TestSplitDoesNotMatter(t *testing.T) {
	for _, level := range Levels() {
		p := NewPool(level, 2)
		f := floats{Rand: newRand(3)}
		for _, format := range []Format{F32, BF16, MXFP4, Int8} {
			w := f.matrix(format, 75, 544, 64)
			x := f.some(5 * 544)
			whole, split, alone := make([]float32, 5*75), make([]float32, 5*75), make([]float32, 5*75)
			var s Scratch
			level.MatMul(&s, whole, 75, &w, 0, 75, x, 544, 5)
			p.mat.jobs = []Job{{Y: split, LdY: 75, W: &w, X: x, LdX: 544, N: 5}}
			p.Do(&p.mat, 75, 7)
			for i := range 5 {
				level.MatMul(&s, alone[i*75:], 75, &w, 0, 75, x[i*544:], 544, 1)
			}
			if err := sameBits(split, whole); err != nil {
				t.Errorf("%s %v: split into blocks: %v", level.Name, format, err)
			}
			if err := sameBits(alone, whole); err != nil {
				t.Errorf("%s %v: row by row: %v", level.Name, format, err)
			}
		}
		p.Close()
	}
}

func TestMatMulsEqualsMatMul(t *testing.T) {
	for _, level := range Levels() {
		p := NewPool(level, 2)
		f := floats{Rand: newRand(4)}
		a, b := f.matrix(BF16, 300, 192, 0), f.matrix(MXFP4, 200, 64, 0)
		x := f.some(2 * 192)
		y1, y2, z1, z2 := make([]float32, 2*300), make([]float32, 200), make([]float32, 2*300), make([]float32, 200)
		p.MatMuls([]Job{{Y: y1, W: &a, X: x, N: 2}, {Y: y2, W: &b, X: x, N: 1}})
		p.MatMul(z1, &a, x, 2)
		p.MatMul(z2, &b, x, 1)
		if err := errors.Join(sameBits(y1, z1), sameBits(y2, z2)); err != nil {
			t.Errorf("%s: %v", level.Name, err)
		}
		p.Close()
	}
}

// emptyTask does nothing: what is left is the region itself.
type emptyTask struct{}

func (emptyTask) Run(worker, lo, hi int) {}

func BenchmarkRegion(b *testing.B) {
	p := NewPool(genericTable(), 2)
	defer p.Close()
	for b.Loop() {
		p.Do(emptyTask{}, 2, 1)
	}
}

// BenchmarkRegionBothWorkers is the time until both workers have been inside.
func BenchmarkRegionBothWorkers(b *testing.B) {
	p := NewPool(genericTable(), 2)
	defer p.Close()
	m := &meetTask{want: 2}
	for b.Loop() {
		m.inside.Store(0)
		p.Do(m, 2, 1)
	}
}

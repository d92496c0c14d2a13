package kernel

import (
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
)

// A Task is work that can be cut into independent items.
type Task interface {
	// Run does items [lo, hi). worker is below Pool.Workers and says whose
	// Scratch to use.
	Run(worker, lo, hi int)
}

// A Pool is a fixed set of workers that run a Table. It serves one caller at a
// time. Which worker does what never changes a result.
//
// # How a parallel region runs
//
// The caller opens a region by a change of state and works on it itself. Workers
// that watch the state see it within nanoseconds; those that have gone to sleep
// are woken. A worker enters an open region by counting itself in, takes blocks
// until none is left, and counts itself out. The caller closes the region once
// all blocks are taken and waits for those inside only: a worker that comes too
// late finds the region closed, and nobody waits for it.
//
// Between regions a worker watches for a short while (regions of one token
// follow each other closely), then sleeps, so that an idle program uses no
// processor. How long it watches adapts: it is halved when the watch was in vain.
type Pool struct {
	*Table
	scratch []Scratch

	// state is the number of the region in the upper 32 bits, odd while it is open,
	// and the number of workers inside in the lower ones.
	state atomic.Uint64
	_     [56]byte // the counter below changes with every block: its own cache line
	next  atomic.Int64
	_     [56]byte

	// Set by the caller while no worker is inside.
	task  Task
	n     int
	grain int

	workers []*worker
	idle    gate // the caller, waiting for the workers inside
	closing atomic.Bool
	once    sync.Once
	exited  sync.WaitGroup
	failed  atomic.Pointer[TaskPanic]
	mat     matTask
}

// A worker is the goroutine number id of the pool.
type worker struct {
	id   int
	gate gate
	spin int // turns it watches before it sleeps
}

// TaskPanic is what Do panics with when Task.Run panicked on a worker.
type TaskPanic struct {
	Value any    // the value of the original panic
	Stack []byte // the stack of the worker
}

// Error says what panicked and where.
func (p *TaskPanic) Error() string {
	return fmt.Sprintf("kernel: a task panicked: %v\n%s", p.Value, p.Stack)
}

// The watch of a worker, in turns of pauseTurn: about 30 microseconds at most
// and 1 at least. The caller waits longer, because the end of a block is near.
const (
	spinMax    = 400
	spinMin    = 16
	spinCaller = 4000
)

// NewPool starts workers-1 goroutines; the caller of Do is the remaining worker.
// Close ends them.
func NewPool(t *Table, workers int) *Pool {
	workers = max(workers, 1)
	p := &Pool{Table: t, scratch: make([]Scratch, workers)}
	p.mat.p = p
	p.idle.init()
	for id := 1; id < workers; id++ {
		w := &worker{id: id, spin: spinMin}
		w.gate.init()
		p.workers = append(p.workers, w)
		p.exited.Add(1)
		go func() {
			defer p.exited.Done()
			p.serve(w)
		}()
	}
	return p
}

// Close ends the workers and waits for them. Further calls do nothing. A closed
// pool runs everything on its caller.
func (p *Pool) Close() {
	p.once.Do(func() {
		p.closing.Store(true)
		for _, w := range p.workers {
			w.gate.open()
		}
		p.exited.Wait()
	})
}

// Workers is the number of workers, the caller of Do included.
func (p *Pool) Workers() int { return len(p.scratch) }

// Scratch is the working memory of a worker, for use inside Task.Run.
func (p *Pool) Scratch(worker int) *Scratch { return &p.scratch[worker] }

// Do runs items [0, n) of t, handed out in blocks of grain, and returns when all
// are done. If Run panics, Do panics after the other workers have stopped: with
// the same value if it was the caller's own share, else with a *TaskPanic.
func (p *Pool) Do(t Task, n, grain int) {
	grain = max(grain, 1)
	if len(p.workers) == 0 || n <= grain || p.closing.Load() {
		if n > 0 {
			t.Run(0, 0, n)
		}
		return
	}
	p.task, p.n, p.grain = t, n, grain
	p.next.Store(0)
	p.state.Add(1 << 32) // odd: open
	blocks := (n + grain - 1) / grain
	for _, w := range p.workers[:min(len(p.workers), blocks-1)] {
		w.gate.open()
	}
	defer p.finish()
	p.blocks(0)
}

// finish closes the region and waits for the workers inside.
func (p *Pool) finish() {
	p.next.Store(int64(p.n)) // after a panic: hand out no more
	p.state.Add(1 << 32)     // even: closed
	for turn := 0; uint32(p.state.Load()) != 0; turn++ {
		if turn < spinCaller {
			pauseTurn()
			continue
		}
		p.idle.wait(func() bool { return uint32(p.state.Load()) == 0 })
	}
	p.task = nil
	if f := p.failed.Swap(nil); f != nil {
		panic(f)
	}
}

// blocks runs blocks until none is left.
func (p *Pool) blocks(worker int) {
	for {
		lo := int(p.next.Add(int64(p.grain))) - p.grain
		if lo >= p.n {
			return
		}
		p.task.Run(worker, lo, min(lo+p.grain, p.n))
	}
}

// serve is the life of a worker.
func (p *Pool) serve(w *worker) {
	var last uint32 // the region it was in
	for !p.closing.Load() {
		if p.enter(w, &last) {
			w.spin = min(2*w.spin, spinMax)
			continue
		}
		if p.watch(w, last) {
			continue
		}
		w.spin = max(w.spin/2, spinMin)
		w.gate.wait(func() bool { return p.isNew(last) || p.closing.Load() })
	}
}

// isNew says whether a region is open that the worker has not been in.
func (p *Pool) isNew(last uint32) bool {
	region := uint32(p.state.Load() >> 32)
	return region&1 == 1 && region != last
}

// watch looks out for a new region for a while.
func (p *Pool) watch(w *worker, last uint32) bool {
	for range w.spin {
		if p.isNew(last) {
			return true
		}
		pauseTurn()
	}
	return false
}

// enter joins the open region, if there is a new one, and works in it.
func (p *Pool) enter(w *worker, last *uint32) bool {
	for {
		s := p.state.Load()
		region := uint32(s >> 32)
		if region&1 == 0 || region == *last {
			return false
		}
		if p.state.CompareAndSwap(s, s+1) {
			*last = region
			break
		}
	}
	p.guarded(w.id)
	if s := p.state.Add(^uint64(0)); uint32(s) == 0 && s>>32&1 == 0 {
		p.idle.open()
	}
	return true
}

// guarded runs blocks and keeps a panic for the caller.
func (p *Pool) guarded(worker int) {
	defer func() {
		if v := recover(); v != nil {
			p.failed.CompareAndSwap(nil, &TaskPanic{v, debug.Stack()})
			p.next.Store(int64(p.n))
		}
	}()
	p.blocks(worker)
}

// A gate is where one goroutine sleeps until another one opens it.
type gate struct {
	asleep atomic.Bool
	wake   chan struct{}
}

func (g *gate) init() { g.wake = make(chan struct{}, 1) }

// wait sleeps until open, unless ready is true already: it is asked again after
// the sleeper has announced itself, so that no opening is missed.
//
// That takes an order between announcing and asking, a store and a load of different
// words. A swap gives it everywhere: emulators of arm64 let a load pass a plain store.
func (g *gate) wait(ready func() bool) {
	g.asleep.Swap(true)
	if ready() && g.asleep.CompareAndSwap(true, false) {
		return
	}
	<-g.wake
}

// open wakes the sleeper, if there is one.
func (g *gate) open() {
	if g.asleep.Load() && g.asleep.CompareAndSwap(true, false) {
		g.wake <- struct{}{}
	}
}

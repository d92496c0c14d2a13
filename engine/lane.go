package engine

import (
	"context"
	"slices"

	"deltafin/engine/k3"
)

// A lane is what one call computes with. A model that is read from drives has two:
// while one waits for its experts, the other computes, so that two sequences fill
// each other's gaps.
type lane struct {
	e      *Engine
	runner *k3.Runner
	call   int // number of the call, for a recording
	step   int // first token of the pass that is recorded
	rows   int // of that pass
	held   *heldRoutes
}

// lanes is how many calls share a model that is read from drives. More than two
// would only wait for each other: two already keep drives and arithmetic busy.
const lanes = 2

// makeLanes sets up the lanes.
func (e *Engine) makeLanes() {
	n := 1
	if e.stream != nil {
		n = lanes
		if t := e.stream.trunk; t != nil && t.Streams() {
			n = 1 // two at different layers would read the trunk twice
		}
		e.stream.around = e.baton.without
	}
	e.lanes = make(chan *lane, n)
	for range n {
		l := &lane{e: e, runner: e.model.NewRunner(e.pool)}
		if n > 1 {
			l.runner.Yield = e.baton.yield
		}
		e.lanes <- l
	}
}

// acquire waits for a lane and for the arithmetic. release gives them back.
func (e *Engine) acquire(ctx context.Context) (*lane, error) {
	select {
	case l, open := <-e.lanes:
		if !open {
			return nil, ErrClosed
		}
		if e.closed.Load() {
			e.lanes <- l
			return nil, ErrClosed
		}
		e.baton.take()
		return l, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (l *lane) release() {
	l.e.baton.pass()
	l.e.lanes <- l
}

// withLane runs a call: it waits for a lane, counts what was done, and says that it
// was cancelled if that is why it ended.
func (e *Engine) withLane(ctx context.Context, res *Result, call func(w *lane) error) error {
	run := func() error {
		w, err := e.acquire(ctx)
		if err != nil {
			return err
		}
		defer w.release()
		err = call(w)
		e.stats.add(res)
		return err
	}
	err := run()
	if err != nil && ctx.Err() != nil {
		res.Finish = Cancelled
		return context.Cause(ctx)
	}
	return err
}

// begin starts a new call.
func (l *lane) begin() {
	if r := l.e.opts.Routes; r != nil {
		l.call, l.step, l.rows = r.Turn(), 0, 0
	}
}

// Phases of a recording.
const (
	promptPhase = iota
	answerPhase
)

// observe has a function called after every layer, and the routes of a phase
// recorded if that was asked for, until unobserve.
func (l *lane) observe(phase int, layer func(layer int)) {
	o := &k3.Observer{Layer: layer}
	if r := l.e.opts.Routes; r != nil {
		first := -1
		o.Routes = func(at, rows int, _ []float32, experts []int32, _ []float32) {
			if first < 0 {
				first = at
			}
			if l.held != nil {
				l.held.add(at, rows, experts)
				return
			}
			if at == first {
				l.step, l.rows = l.step+l.rows, rows
			}
			r.Add(l.call, phase, l.step, at, rows, experts)
		}
	}
	l.runner.Observe = o
}

// unobserve ends observe.
func (l *lane) unobserve() { l.runner.Observe = nil }

// heldRoutes are the choices of a pass of which it is not known what will be kept.
type heldRoutes struct {
	layers  []int
	experts [][]int32 // [layers][rows*k]
	rows    int
}

func (h *heldRoutes) add(layer, rows int, experts []int32) {
	h.layers, h.experts, h.rows = append(h.layers, layer), append(h.experts, slices.Clone(experts)), rows
}

// holdRoutes keeps the routes of the next pass back until keepRoutes.
func (l *lane) holdRoutes() {
	if l.e.opts.Routes != nil {
		l.held = &heldRoutes{}
	}
}

// keepRoutes records the first rows of what was held back, as the passes of single
// tokens that they stand for.
func (l *lane) keepRoutes(rows int) {
	h := l.held
	if l.held = nil; h == nil {
		return
	}
	for i := range rows {
		l.step, l.rows = l.step+l.rows, 1
		for j, layer := range h.layers {
			k := len(h.experts[j]) / h.rows
			l.e.opts.Routes.Add(l.call, answerPhase, l.step, layer, 1, h.experts[j][i*k:(i+1)*k])
		}
	}
}

// A baton is held by the lane that computes. Those who wait get it in the order in
// which they came, so that a lane that never has to wait for drives does not starve
// the other.
type baton chan struct{}

func newBaton() baton {
	b := make(baton, 1)
	b <- struct{}{}
	return b
}

func (b baton) take() { <-b }
func (b baton) pass() { b <- struct{}{} }

// yield passes the baton on if somebody waits. A sender hands over to the longest
// waiting receiver, so the taker comes after it.
func (b baton) yield() {
	b.pass()
	b.take()
}

// without runs something that does not compute.
func (b baton) without(wait func()) {
	b.pass()
	wait()
	b.take()
}

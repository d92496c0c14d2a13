package planner

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"deltafin/engine/simulate"
)

// A Range is a figure: what to expect, and between which bounds.
type Range struct {
	Low      float64 `json:"low"`
	Expected float64 `json:"expected"`
	High     float64 `json:"high"`
}

// A Prompt is the time to the first token of a prompt.
type Prompt struct {
	Tokens  int   `json:"tokens"`
	Seconds Range `json:"seconds"`
}

// A Part is where a part of a token's time goes, of the expected case.
type Part struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	Share   float64 `json:"share"`
}

// A Change is what a machine would do that is different in one way.
type Change struct {
	What  string `json:"what"`
	Rate  Range  `json:"tokens_per_second"`
	Gain  Range  `json:"gain"`             // of the rate, each case against the same case of the machine as it is
	First Range  `json:"seconds_to_first"` // of a prompt of 512 tokens
}

// A Report is a plan for one machine. Rates are tokens per second of plain decode.
type Report struct {
	Machine     *simulate.Machine `json:"machine"`
	Model       string            `json:"model"`
	Trunk       int64             `json:"trunk_bytes"`
	Streamed    int64             `json:"trunk_streamed_bytes"`
	Cache       int64             `json:"expert_cache_bytes"`
	Drives      float64           `json:"drives_bytes_per_second"`
	Rate        Range             `json:"tokens_per_second"`
	Hits        Range             `json:"hits"`
	PerToken    Range             `json:"gigabytes_per_token"`
	Prompts     []Prompt          `json:"prompts"`
	Parts       []Part            `json:"parts"`
	Changes     []Change          `json:"changes"`
	Warnings    []string          `json:"warnings"`
	Assumptions []string          `json:"assumptions"`
}

// scenario is one of the three cases.
type scenario struct {
	name                      string
	fit                       simulate.Fit
	recall                    float64
	gflops, bandwidth, drives float64 // factors
}

var scenarios = [3]scenario{
	{"low", simulate.Flat, 0.4, 0.7, 0.8, 0.85},
	{"expected", simulate.Expected, 0.6, 1, 0.9, 0.95},
	{"high", simulate.Published, 0.75, 1.15, 1, 1},
}

// How much is simulated of each run. More changes no figure by more than its range.
const (
	layers       = 8
	warm, tokens = 56, 10
	passes       = 1
)

// promptLengths are the prompts of a report.
var promptLengths = [...]int{512, 4096, 32768}

// apply makes the machine of a case.
func (s *scenario) apply(m *simulate.Machine) *simulate.Machine {
	c := clone(m)
	c.Gflops *= s.gflops
	c.Bandwidth *= s.bandwidth
	for i := range c.Drives {
		c.Drives[i].Rate *= s.drives
	}
	return c
}

func clone(m *simulate.Machine) *simulate.Machine {
	c := *m
	c.Drives = append([]simulate.Drive(nil), m.Drives...)
	c.Hubs = append([]simulate.Hub(nil), m.Hubs...)
	return &c
}

// job is one run, and where its result goes.
type job struct {
	m      *simulate.Machine
	s      *scenario
	prompt int // 0: decode
	into   **simulate.Result
}

func (j *job) run(ctx context.Context) error {
	model := simulate.K3()
	sample := model.Experts
	g, err := simulate.NewGenerator(sample, j.s.fit, 1)
	if err != nil {
		return err
	}
	o := simulate.Options{
		Tokens: tokens, Warm: warm, Layers: layers, Passes: passes, Recall: j.s.recall, Router: g, Slice: 4 << 20, Seed: 1,
	}
	m := j.s.apply(j.m)
	if j.prompt == 0 {
		*j.into, err = simulate.Decode(ctx, m, model, o)
		return err
	}
	o.Layers = layers / 2 // MLA is one of four layers, so no fewer
	*j.into, err = simulate.Prefill(ctx, m, model, j.prompt, o)
	return err
}

// machineRuns are the runs of one machine in all cases.
type machineRuns struct {
	decode  [3]*simulate.Result
	prompts [len(promptLengths)][3]*simulate.Result
}

// Make plans for a machine. Errors are those of package simulate: ErrMachine for a
// machine that cannot be, ErrMemory for one that is too small.
func Make(ctx context.Context, m *simulate.Machine) (*Report, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if _, err := simulate.Divide(m, simulate.K3(), 4096); err != nil {
		return nil, err
	}
	changes := changesOf(m)
	machines := []*simulate.Machine{m}
	for _, c := range changes {
		machines = append(machines, c.m)
	}
	runs := make([]machineRuns, len(machines))
	var jobs []job
	for i, m := range machines {
		for k := range scenarios {
			jobs = append(jobs, job{m, &scenarios[k], 0, &runs[i].decode[k]})
			for p, n := range promptLengths {
				if i == 0 || p == 0 { // long prompts only of the machine as it is
					jobs = append(jobs, job{m, &scenarios[k], n, &runs[i].prompts[p][k]})
				}
			}
		}
	}
	if err := all(ctx, jobs); err != nil {
		return nil, err
	}
	return report(m, changes, runs), nil
}

// all runs jobs on all processors. The first error ends it.
func all(ctx context.Context, jobs []job) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan *job)
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for j := range next {
				if err := j.run(ctx); err != nil {
					cancel(fmt.Errorf("%s case: %w", j.s.name, err))
				}
			}
		})
	}
	for i := range jobs {
		if ctx.Err() != nil {
			break
		}
		next <- &jobs[i]
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// between sorts three values into a range: a case that is better in all its parts
// may still be a hair slower.
func between(x [3]float64) Range {
	return Range{min(x[0], x[1], x[2]), x[1], max(x[0], x[1], x[2])}
}

func each(r *[3]*simulate.Result, f func(*simulate.Result) float64) Range {
	return between([3]float64{f(r[0]), f(r[1]), f(r[2])})
}

func report(m *simulate.Machine, changes []variant, runs []machineRuns) *Report {
	base := &runs[0]
	e := base.decode[1]
	r := &Report{
		Machine: m, Model: simulate.K3().Name, Trunk: e.Trunk, Streamed: e.Streamed, Cache: e.Cache, Drives: m.Rate(),
		Rate:     each(&base.decode, (*simulate.Result).Rate),
		Hits:     each(&base.decode, func(r *simulate.Result) float64 { return r.Counts.HitRate() }),
		PerToken: each(&base.decode, func(r *simulate.Result) float64 { return r.PerToken() / 1e9 }),
	}
	first := func(r *simulate.Result) float64 { return r.Elapsed.Seconds() }
	for p, n := range promptLengths {
		r.Prompts = append(r.Prompts, Prompt{n, each(&base.prompts[p], first)})
	}
	for _, p := range []struct {
		name string
		d    time.Duration
	}{
		{"waiting for experts from drives", e.Stall}, {"reading the trunk from drives", e.Streaming},
		{"reading weights from memory", e.Memory}, {"arithmetic", e.Compute},
	} {
		r.Parts = append(r.Parts, Part{p.name, p.d.Seconds() / float64(e.Tokens), p.d.Seconds() / e.Elapsed.Seconds()})
	}
	for i, c := range changes {
		x := &runs[i+1]
		var gain [3]float64
		for k := range gain {
			gain[k] = x.decode[k].Rate()/base.decode[k].Rate() - 1
		}
		r.Changes = append(r.Changes, Change{c.what, each(&x.decode, (*simulate.Result).Rate), between(gain), each(&x.prompts[0], first)})
	}
	r.Warnings = warnings(m, base)
	r.Assumptions = assumptions(e)
	return r
}

// assumptions is what all figures rest on.
func assumptions(e *simulate.Result) []string {
	out := []string{"every figure is a simulation, not a measurement; the range is from the low to the high case"}
	for _, s := range scenarios {
		out = append(out, fmt.Sprintf("%s case: %.0f %% of the stated arithmetic, %.0f %% of the memory bandwidth, %.0f %% of the drives' rates; expert weight by rank r^-%g, %g %% of ranks change per token; the lookahead foresees %.0f %%",
			s.name, 100*s.gflops, 100*s.bandwidth, 100*s.drives, s.fit.Skew, 100*s.fit.Drift, 100*s.recall))
	}
	out = append(out, "decode with a warm cache, 4096 tokens of conversation, no drafting; prompts with a cold cache, 512 tokens a pass where memory allows")
	return append(out, e.Assumptions[2:]...)
}

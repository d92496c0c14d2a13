package check

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"deltafin/engine"
	"deltafin/engine/kernel"
	"deltafin/engine/simulate"
	"deltafin/engine/synth"
)

// Options are the options of Run.
type Options struct {
	// Scratch is a folder for models, drives and packs. Its own files are removed.
	Scratch string
	// Model is the folder of a model that takes the place of all others. The slow
	// kernel and a streamed trunk, which would take hours with most, are left out then.
	Model string
	// Configs are what is run; nil stands for Configs().
	Configs []Config
	// Repeat is how often each is run for real, at least; 0 stands for 3.
	Repeat int
	// Progress is told what is about to happen; it may be nil.
	Progress func(done, of int, what string)
}

// Configs are the configurations that a check runs: caches from a tenth to
// half, one to four drives, with and without looking ahead, packs and whole copies,
// one in which the arithmetic takes about as long as the reads, and one whose trunk is
// streamed.
func Configs() []Config {
	one := []Drive{{Rate: 60, Latency: 100 * time.Microsecond}}
	two := []Drive{{Rate: 60, Latency: 100 * time.Microsecond}, {Rate: 30, Latency: 200 * time.Microsecond}}
	faster := []Drive{{Rate: 120, Latency: 100 * time.Microsecond}, {Rate: 60, Latency: 200 * time.Microsecond}}
	four := []Drive{
		{Rate: 50, Latency: 100 * time.Microsecond}, {Rate: 40, Latency: 100 * time.Microsecond},
		{Rate: 25, Latency: 200 * time.Microsecond}, {Rate: 20, Latency: 200 * time.Microsecond},
	}
	c := []Config{
		{Name: "1 drive, cache 25 %, no lookahead", Cache: 0.25, Drives: one, NoAhead: true},
		{Name: "1 drive, cache 25 %", Cache: 0.25, Drives: one},
		{Name: "2 drives, cache 40 %", Cache: 0.4, Drives: two},
		{Name: "4 drives, cache 10 %", Cache: 0.1, Drives: four},
		{Name: "2 drives, slow arithmetic", Cache: 0.25, Drives: faster, Kernel: "generic"},
		{Name: "packs, 1 drive, cache 15 %", Synth: "small", Cache: 0.15, Drives: one},
		{Name: "packs, 4 drives, cache 40 %", Synth: "small", Cache: 0.4, Drives: four},
		{Name: "shared experts, 2 drives", Synth: "wide", Cache: 0.3, Drives: two, NoAhead: true},
		{Name: "shared experts, 3 drives", Synth: "wide", Cache: 0.5, Drives: four[:3]},
		{Name: "streamed trunk, 1 drive", Synth: "wide", Cache: 0.5, Drives: one, Streamed: true},
	}
	for i := range c {
		// With a worker for each core, others on the machine would hold up the whole.
		c[i].Prompt, c[i].Rows, c[i].Answer, c[i].Threads = 32, 16, 24, 1
		if c[i].Kernel != "" {
			// Most of it is arithmetic, which others hold up: shorter steps, more often.
			c[i].Rows, c[i].Repeat = 8, 2
		}
	}
	return c
}

// synths are the models that Run makes, by the name that configurations give them:
// one of many small experts, one of few that drives share.
var synths = map[string]synth.Options{
	"small": {Like: "small", Layers: 9, Experts: 64, Skew: 0.7, Seed: 3},
	"wide":  {Like: "wide", Layers: 5, Experts: 16, Skew: 0.3, Seed: 5},
}

// Run runs every configuration for real and in virtual time. What differs too much is
// in the report, and is no error.
func Run(ctx context.Context, o Options) (_ *Report, err error) {
	if o.Repeat == 0 {
		o.Repeat = 3
	}
	if o.Configs == nil {
		o.Configs = Configs()
	}
	if o.Progress == nil {
		o.Progress = func(int, int, string) {}
	}
	if o.Model != "" {
		o.Configs = slices.DeleteFunc(slices.Clone(o.Configs), func(c Config) bool { return c.Streamed || c.Kernel != "" })
	}
	b, err := newBench(o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	r := &Report{Tolerance: Tolerance, Agrees: true}
	for i := range o.Configs {
		c := &o.Configs[i]
		o.Progress(i, len(o.Configs), c.Name)
		x, err := b.measure(ctx, c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		row, err := x.simulate(ctx, simulate.NoMistake)
		if err == nil {
			err = x.h.clear()
		}
		if err != nil {
			return nil, fmt.Errorf("%s, simulated: %w", c.Name, err)
		}
		r.Rows = append(r.Rows, *row)
		r.Agrees = r.Agrees && row.Agrees
	}
	return r, nil
}

// bench is one call of Run, with what its configurations share.
type bench struct {
	o          Options
	scratch    string
	homes      map[string]*home
	texts      map[string]*text
	recordings map[string]*recording
}

func newBench(o Options) (*bench, error) {
	scratch, err := os.MkdirTemp(o.Scratch, "deltafin-check-*")
	if err != nil {
		return nil, err
	}
	return &bench{o: o, scratch: scratch, homes: map[string]*home{}, texts: map[string]*text{}, recordings: map[string]*recording{}}, nil
}

func (b *bench) close() error {
	var errs []error
	for _, h := range b.homes {
		errs = append(errs, h.close())
	}
	return errors.Join(append(errs, os.RemoveAll(b.scratch))...)
}

// home is the model of a configuration.
func (b *bench) home(ctx context.Context, c *Config) (*home, error) {
	name, dir := engine.NanoName, ""
	switch {
	case b.o.Model != "":
		name, dir = filepath.Base(filepath.Clean(b.o.Model)), b.o.Model
	case c.Synth != "":
		name, dir = "synth "+c.Synth, filepath.Join(b.scratch, "synth "+c.Synth)
	}
	if h := b.homes[name]; h != nil {
		return h, nil
	}
	if c.Synth != "" && b.o.Model == "" {
		m, err := synth.New(synths[c.Synth])
		if err != nil {
			return nil, err
		}
		if err := m.Write(ctx, dir, nil); err != nil {
			return nil, err
		}
	}
	h, err := openHome(name, dir, b.scratch)
	if err == nil {
		b.homes[name] = h
	}
	return h, err
}

// prepare makes the text of a configuration and its recording, or finds them.
func (b *bench) prepare(ctx context.Context, h *home, c *Config) (t *text, rec *recording, err error) {
	key := fmt.Sprint(h.name, c.Prompt, c.Answer)
	if t = b.texts[key]; t == nil {
		if t, err = h.words(ctx, c); err != nil {
			return nil, nil, err
		}
		b.texts[key] = t
	}
	key = fmt.Sprint(key, c.Rows, c.Kernel, c.Threads)
	if rec = b.recordings[key]; rec == nil {
		table, err := kernel.Select(c.Kernel)
		if err != nil {
			return nil, nil, err
		}
		if rec, err = record(ctx, h.ck, table, c.Threads, c.Rows, t.prompt, t.answer); err != nil {
			return nil, nil, err
		}
		b.recordings[key] = rec
	}
	return t, rec, nil
}

// measured is a configuration that was run for real.
type measured struct {
	c                *Config
	h                *home
	rec              *recording
	real, fromMemory [2][]Side // of prompt and answer
	lags             []time.Duration
}

// measure runs a configuration for real, and from memory.
func (b *bench) measure(ctx context.Context, c *Config) (_ *measured, err error) {
	h, err := b.home(ctx, c)
	if err != nil {
		return nil, err
	}
	t, rec, err := b.prepare(ctx, h, c)
	if err != nil {
		return nil, err
	}
	m, err := h.fromMemory(ctx, c, t)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, m.e.Close()) }()
	x := &measured{c: c, h: h, rec: rec}
	least := b.o.Repeat * max(c.Repeat, 1)
	for n := 0; n < least || n > 1 && n < 3*least && x.disturbed(); n++ {
		l, err := lag(ctx, b.scratch, h.expert(), c.Drives[0])
		if err != nil {
			return nil, err
		}
		x.lags = append(x.lags, l)
		// As often as the real run: of more runs the fastest would be faster.
		if err := x.add(&x.fromMemory, func() ([2]Side, error) { return m.run(ctx) }); err != nil {
			return nil, err
		}
		if err := x.add(&x.real, func() ([2]Side, error) { return h.real(ctx, c, t) }); err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (x *measured) add(to *[2][]Side, run func() ([2]Side, error)) error {
	sides, err := run()
	for phase := range sides {
		to[phase] = append(to[phase], sides[phase])
	}
	return err
}

// simulate runs it in virtual time and compares.
func (x *measured) simulate(ctx context.Context, mistake simulate.Mistake) (*Row, error) {
	var real, fromMemory [2]Side
	for phase := range real {
		real[phase], fromMemory[phase] = undisturbed(x.real[phase]), undisturbed(x.fromMemory[phase])
	}
	lag := slices.Min(x.lags)
	sim, err := x.h.simulated(ctx, x.c, x.rec, x.rec.scaled(fromMemory[0].Time, fromMemory[1].Time), lag, mistake)
	if err != nil {
		return nil, err
	}
	row := newRow(x.c, x.h, real, sim)
	row.Repeated, row.Lag = len(x.lags), lag.Seconds()
	row.Arithmetic = [2]float64{fromMemory[0].Time.Seconds(), fromMemory[1].Time.Seconds()}
	return row, nil
}

// calmChange is by how much of its time another run may still better a run that was
// not disturbed.
const calmChange = 0.01

// disturbed says that the last run was faster in parts than those before, so that
// another may be too. What was simulated plays no part.
func (x *measured) disturbed() bool {
	for phase := range x.real {
		whole := undisturbed(x.real[phase]).Time
		for _, runs := range [][]Side{x.real[phase], x.fromMemory[phase]} {
			change := undisturbed(runs[:len(runs)-1]).Time - undisturbed(runs).Time
			if change.Seconds() > calmChange*whole.Seconds() {
				return true
			}
		}
	}
	return false
}

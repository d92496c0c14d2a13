package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"deltafin/engine"
	"deltafin/engine/expert"
	"deltafin/engine/simulate"
)

// A Drive is an emulated drive.
type Drive struct {
	Rate    float64       // experts per second; 0: as fast as it goes
	Latency time.Duration // of each read
}

// bytes is the rate in bytes per second, for experts of a size.
func (d Drive) bytes(size int64) int64 { return int64(d.Rate * float64(size)) }

// A Config is one configuration: what is run for real and in virtual time.
type Config struct {
	Name    string
	Synth   string  // which synth model; "": the demonstration model
	Cache   float64 // share of all experts that there is memory for
	Drives  []Drive
	NoAhead bool
	// Streamed: the trunk is read again for every token, from the only drive, which
	// holds the model's own files. It needs Synth.
	Streamed bool

	Prompt  int // tokens
	Rows    int // of a pass over the prompt
	Answer  int // tokens
	Kernel  string
	Threads int
	Repeat  int // times Options.Repeat; 0: once
}

// A Side is what one of the two did, in a phase.
type Side struct {
	Time   time.Duration
	Counts expert.Counts
	Read   int64 // bytes from drives
	// Steps add up to Time: the layers of all passes, and what is between passes. They
	// are nil for what was simulated, and where they are not independent: of a trunk
	// that is streamed on and on, a layer that is late makes the next one early.
	Steps []time.Duration
}

// undisturbed is one run made of several of the same text: of each step the fastest,
// since others on the machine slow a step down and nothing speeds it up. Counts and
// bytes are those of the fastest run.
func undisturbed(runs []Side) Side {
	out := slices.MinFunc(runs, func(a, b Side) int { return cmp.Compare(a.Time, b.Time) })
	if out.Steps == nil {
		return out
	}
	out.Time, out.Steps = 0, slices.Clone(out.Steps)
	for i := range out.Steps {
		for _, r := range runs {
			out.Steps[i] = min(out.Steps[i], r.Steps[i])
		}
		out.Time += out.Steps[i]
	}
	return out
}

// text is the tokens of a home that all configurations use.
type text struct{ prompt, answer []int }

// words makes a prompt of n tokens and finds its answer with the mapped model.
func (h *home) words(ctx context.Context, c *Config) (*text, error) {
	e, err := engine.Open(ctx, engine.Options{Model: h.dir})
	if err != nil {
		return nil, err
	}
	defer e.Close()
	t := &text{}
	for i := range c.Prompt {
		// Neighbours differ, and it ends in nothing special.
		t.prompt = append(t.prompt, (i*i*7+i*13+11)%(e.Info().Config.Vocab/2))
	}
	res, err := e.Generate(ctx, e.NewSequence(), engine.Request{Tokens: t.prompt, MaxTokens: c.Answer + 1, Stop: []int{}}, engine.Listener{})
	if err == nil && len(res.Tokens) != c.Answer+1 {
		err = fmt.Errorf("%d of %d tokens were generated", len(res.Tokens), c.Answer+1)
	}
	if err != nil {
		return nil, err
	}
	t.answer = res.Tokens[:c.Answer]
	return t, nil
}

// real runs the engine, and gives the prompt and the answer.
func (h *home) real(ctx context.Context, c *Config, t *text) (out [2]Side, err error) {
	o, err := h.options(ctx, c)
	if err != nil {
		return out, err
	}
	e, err := engine.Open(ctx, o)
	if err != nil {
		return out, err
	}
	out, err = runOnce(ctx, e, c, t)
	return out, errors.Join(err, e.Close())
}

// runOnce reads the prompt and generates the answer.
func runOnce(ctx context.Context, e *engine.Engine, c *Config, t *text) (out [2]Side, err error) {
	seq := e.NewSequence()
	var before, after engine.Streaming
	take := func(phase int, steps []time.Duration) {
		e.Streaming(&after)
		now := after
		now.Sub(&before)
		s := &out[phase]
		*s = Side{Counts: now.Experts.Total, Read: now.Drives.Total.Read, Steps: steps}
		for _, d := range steps {
			s.Time += d
		}
		if c.Streamed {
			s.Steps = nil
		}
		e.Streaming(&before)
	}
	e.Streaming(&before)
	var steps []time.Duration
	last := time.Now()
	step := func() {
		now := time.Now()
		steps = append(steps, now.Sub(last))
		last = now
	}
	_, err = e.Prefill(ctx, []engine.Prompt{{Sequence: seq, Tokens: t.prompt}}, engine.Listener{Prefill: func(engine.Progress) { step() }})
	if err != nil {
		return out, err
	}
	take(0, steps)
	steps, last = nil, time.Now()
	res, err := e.Generate(ctx, seq, engine.Request{Tokens: t.prompt, MaxTokens: c.Answer + 1, Stop: []int{}}, engine.Listener{
		Layer: func(int, int) { step() },
		Token: func(engine.Token) error {
			step()
			return nil
		},
	})
	if err != nil {
		return out, err
	}
	take(1, steps)
	for i, id := range t.answer {
		if res.Tokens[i] != id {
			return out, fmt.Errorf("token %d of the answer is %d, from memory it was %d", i, res.Tokens[i], id)
		}
	}
	return out, nil
}

// A memory is an engine that has everything in memory: what it takes is arithmetic.
type memory struct {
	e *engine.Engine
	c Config
	t *text
}

// fromMemory opens the engine of a configuration with room for everything, and has it
// read all that the text needs.
func (h *home) fromMemory(ctx context.Context, c *Config, t *text) (*memory, error) {
	m := &memory{c: *c, t: t}
	m.c.Cache, m.c.NoAhead, m.c.Streamed, m.c.Drives = 2, true, false, []Drive{{}}
	o, err := h.options(ctx, &m.c)
	if err != nil {
		return nil, err
	}
	if m.e, err = engine.Open(ctx, o); err != nil {
		return nil, err
	}
	if _, err := runOnce(ctx, m.e, &m.c, t); err != nil {
		return nil, errors.Join(err, m.e.Close())
	}
	return m, nil
}

// run takes the times of prompt and answer.
func (m *memory) run(ctx context.Context) ([2]Side, error) { return runOnce(ctx, m.e, &m.c, m.t) }

// scaled is the recorded arithmetic, adding up to what the engine took from memory:
// its parts were timed without the engine around them.
func (r *recording) scaled(prompt, answer time.Duration) *simulate.Arithmetic {
	out := &simulate.Arithmetic{Passes: map[int]*simulate.PassCost{}}
	for rows, c := range r.cost.Passes {
		by := prompt.Seconds() / r.total(r.prompt).Seconds()
		if rows == 1 {
			by = answer.Seconds() / r.total(r.answer).Seconds()
		}
		out.Passes[rows] = c.Times(by)
	}
	return out
}

// total is what the recorded parts add up to with everything in memory and no guesses:
// then the experts of a layer are one wave.
func (r *recording) total(passes []simulate.Pass) time.Duration {
	sum := time.Duration(0)
	for i := range passes {
		p := &passes[i]
		c := r.cost.Passes[p.Rows]
		sum += c.Head
		for l := range p.Layers {
			x := &c.Layers[l]
			sum += x.Attention + x.Beside + x.After
			if want := p.Layers[l].Want; len(want) > 0 {
				sum += c.Wave + time.Duration(len(want))*c.Expert
				for _, w := range want {
					sum += time.Duration(w.Rows) * c.Row
				}
			}
		}
	}
	return sum
}

// simulated replays the recording in virtual time.
func (h *home) simulated(ctx context.Context, c *Config, rec *recording, cost *simulate.Arithmetic, lag time.Duration, mistake simulate.Mistake) (out [2]Side, err error) {
	layout, err := h.layout(ctx, c)
	if err != nil {
		return out, err
	}
	memory := int64(0)
	if c.Streamed {
		if memory, err = h.leastTrunk(); err != nil {
			return out, err
		}
	}
	res, err := simulate.Replay(ctx, h.machine(c, lag), h.model, [][]simulate.Pass{rec.prompt, rec.answer}, simulate.Options{
		Cache: h.cache(c), NoAhead: c.NoAhead, Layout: layout, Trunk: memory, Unmeasured: true, Arithmetic: cost, Mistake: mistake,
	})
	if err != nil {
		return out, err
	}
	for i, r := range res {
		out[i] = Side{Time: r.Elapsed, Counts: r.Counts, Read: r.Read}
	}
	return out, nil
}

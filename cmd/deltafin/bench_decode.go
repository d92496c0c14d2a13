package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// benchModelFlags are the flags of bench decode and bench prefill.
type benchModelFlags struct {
	model  modelFlags
	prompt int
	tokens int // generated after the prompt; bench prefill: 0
	repeat int
	seed   uint64
	json   bool
	pairs  bool // decode: against no cache
}

// newBenchDecode measures generating tokens with experts read from drives.
func newBenchDecode(s streams) *cobra.Command {
	var f benchModelFlags
	c := &cobra.Command{
		Use:   "decode",
		Short: "Generating tokens with experts read from drives, against its bounds",
		Long: `Reads a prompt of random tokens, generates, and says what a token cost: time, bytes
read, how uses of experts fared, and how long the arithmetic had nothing to do but
wait. Before it, the drives are read plainly to find their ceiling; of drives whose
speed is emulated the ceiling is the sum of their limits. A folder with less than
256 MiB of large files gets a test file of that size for a moment.

Two bounds hold a token up: its bytes at the ceiling, and its arithmetic, which is the
time not spent waiting. The efficiency of overlap is the larger of them over the time
that it took: 100 % when the smaller one hides completely behind it.`,
		Example: `  deltafin bench decode --model /mnt/a/synth --cache 6GiB
  deltafin bench decode --cache 2MiB --drive /tmp/a,limit=200MB/s --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.tokens < 1 {
				return usage("--tokens %d: at least 1 is needed", f.tokens)
			}
			return f.run(c.Context(), c, s, "decode")
		},
	}
	f.add(c, 16)
	c.Flags().IntVar(&f.tokens, "tokens", 32, "tokens to measure, in each repetition")
	c.Flags().BoolVar(&f.pairs, "against-no-cache", false, "measure each repetition without a cache too: with no more memory than one layer of one token needs")
	return c
}

func (f *benchModelFlags) add(c *cobra.Command, prompt int) {
	f.model.add(c)
	f.model.routes.add(c)
	fl := c.Flags()
	fl.IntVar(&f.prompt, "prompt", prompt, "random tokens of the prompt")
	fl.IntVar(&f.repeat, "repeat", 1, "how often to measure; the cache stays as it is between")
	fl.Uint64Var(&f.seed, "seed", 1, "of the prompt")
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
}

func (f *benchModelFlags) run(ctx context.Context, c *cobra.Command, s streams, name string) error {
	set := c.Flags().Changed
	if f.prompt < 1 || f.repeat < 1 {
		return usage("--prompt %d and --repeat %d: at least 1 of each is needed", f.prompt, f.repeat)
	}
	if !set("cache") && !set("memory") {
		return usage("bench %s needs --cache SIZE or --memory SIZE: without one no expert need be read from a drive", name)
	}
	if dir := modelDir(f.model.dir); dir != "" {
		ck, err := checkpoint.Open(dir) // before the drives are measured: it takes no time
		if err != nil {
			return err
		}
		if err := ck.Close(); err != nil {
			return err
		}
	}
	ceiling, how, err := f.ceiling(ctx)
	if err != nil {
		return stopped(ctx, s, err)
	}
	e, err := f.model.open(ctx, c, s)
	if err != nil {
		return err
	}
	defer f.model.routes.close(s)
	defer e.Close()
	info := e.Info()
	if !info.Streams {
		return usage("the model fits in memory and is mapped, nothing is read from drives: name a smaller --cache")
	}
	r := newBenchReport(name, map[string]any{
		"model": info.Name, "fingerprint": info.Fingerprint, "kernel": info.Kernel, "threads": info.Threads,
		"trunk": f.model.trunk, "prefill_rows": info.PrefillRows, "slots": info.Slots, "drives": f.model.drives,
		"prompt": f.prompt, "tokens": f.tokens, "repeat": f.repeat, "seed": f.seed,
	})
	measure := func(i int) (*benchMeasure, error) {
		if f.pairs {
			return f.pair(ctx, e, uint64(i))
		}
		return f.measure(ctx, e, uint64(i))
	}
	for i := range f.repeat {
		m, err := measure(i)
		if err != nil {
			return stopped(ctx, s, err)
		}
		m.ceiling, m.how = ceiling, how
		if f.repeat > 1 {
			m.suffix = fmt.Sprintf(", run %d", i+1)
		}
		m.report(r, f.tokens > 0)
	}
	if f.json {
		return writeJSON(s.out, r)
	}
	return r.print(s.out)
}

// stopped says what ended a benchmark: a person, or a drive.
func stopped(ctx context.Context, s streams, err error) error {
	if ctx.Err() != nil {
		fmt.Fprintln(s.err, "interrupted")
		return errReported
	}
	return ofDrive(err)
}

// ceiling is what the drives give in plain reads, in bytes per second, and how that
// is known. It is 0 for the demonstration model on drives without limits, which lies
// in memory.
func (f *benchModelFlags) ceiling(ctx context.Context) (float64, string, error) {
	specs := f.model.drives
	if len(specs) == 0 {
		if modelDir(f.model.dir) == "" {
			return 0, "", nil
		}
		specs = []string{modelDir(f.model.dir)}
	}
	var fleet emulate.Fleet
	defer fleet.Release()
	var drives []*ssdio.Drive
	limits := 0.0
	limited := true
	for _, text := range specs {
		spec, err := emulate.ParseSpec(text)
		if err != nil {
			return 0, "", usage("%v", err)
		}
		limits += float64(spec.Limit)
		limited = limited && spec.Limit > 0
		d, err := fleet.OpenSpec(spec, &ssdio.DriveOptions{ReadOnly: true})
		if err != nil {
			return 0, "", ofDrive(err)
		}
		drives = append(drives, d)
	}
	if limited {
		return limits, "the sum of the emulated limits", nil
	}
	if modelDir(f.model.dir) == "" {
		return 0, "", nil
	}
	o := ssdio.MeasureOptions{Sizes: []int{1 << 20, 4 << 20}, Depths: []int{8, 16, 32}, Bytes: 256 << 20}
	profiles, err := ssdio.Measure(ctx, drives, &o, nil)
	if err != nil {
		return 0, "", ofDrive(err)
	}
	rate := 0.0
	for _, p := range profiles {
		if len(profiles) > 1 {
			rate += p.Together
		} else {
			rate += p.Best.Rate
		}
	}
	return rate, "plain reads of the same folders just before", nil
}

// A benchMeasure is what one prompt, or the tokens after it, cost.
type benchMeasure struct {
	n       int // tokens
	took    time.Duration
	io      engine.Streaming // difference
	ceiling float64          // bytes per second, 0: unknown
	how     string           // it is known
	suffix  string           // of names of rows
	without time.Duration    // what it took without a cache, 0: not measured
}

// pair measures the same tokens without and with the cache, which is filled before:
// what is compared is how fast the two are, not how fast one fills.
func (f *benchModelFlags) pair(ctx context.Context, e *engine.Engine, run uint64) (*benchMeasure, error) {
	var st engine.Streaming
	e.Streaming(&st)
	full := st.Experts.Bytes
	if err := e.ResizeCache(e.LeastCache()); err != nil {
		return nil, err
	}
	without, err := f.measure(ctx, e, run)
	if err != nil {
		return nil, err
	}
	if err := e.ResizeCache(full); err != nil {
		return nil, err
	}
	if _, err := f.measure(ctx, e, run); err != nil {
		return nil, err
	}
	m, err := f.measure(ctx, e, run)
	if err == nil {
		m.without = without.took
	}
	return m, err
}

// measure reads a prompt and generates, and returns the part that is asked for. The
// first generated token comes from the prompt, so one more is generated than measured.
func (f *benchModelFlags) measure(ctx context.Context, e *engine.Engine, run uint64) (*benchMeasure, error) {
	rng := rand.New(rand.NewPCG(f.seed, run))
	ids := make([]int, f.prompt)
	for i := range ids {
		ids[i] = rng.IntN(e.Info().Config.Vocab)
	}
	var before engine.Streaming
	m := &benchMeasure{}
	seq := e.NewSequence()
	e.Streaming(&before)
	res, err := e.Prefill(ctx, []engine.Prompt{{Sequence: seq, Tokens: ids}}, engine.Listener{})
	if err != nil {
		return nil, err
	}
	m.n, m.took = res.Prefilled, res.PrefillTime
	if f.tokens > 0 {
		e.Streaming(&before)
		// Random tokens end nothing: an empty list of stops, not the model's own.
		res, err = e.Generate(ctx, seq, engine.Request{Tokens: ids, MaxTokens: f.tokens + 1, Stop: []int{}}, engine.Listener{})
		if err != nil {
			return nil, err
		}
		m.n, m.took = len(res.Tokens)-1, res.DecodeTime
		if m.n < 1 {
			return nil, errors.New("the context is full after the prompt: give a shorter --prompt")
		}
	}
	e.Streaming(&m.io)
	m.io.Sub(&before)
	return m, nil
}

// report adds the rows. Reading is everything that came from drives, a trunk that is
// streamed included; useful and wasted are of experts.
func (m *benchMeasure) report(r *benchReport, decode bool) {
	x := &m.io.Experts.Total
	n := float64(m.n)
	add := func(name string, v float64, unit string, limit, ratio float64, note string) {
		r.add(benchRow{Name: name + m.suffix, Value: v, Unit: unit, Limit: limit, Ratio: ratio, Note: note})
	}
	read := float64(m.io.Drives.Total.Read)
	if decode {
		limit, ratio, note := 0.0, 0.0, ""
		if m.without > 0 {
			limit, ratio, note = n/m.without.Seconds(), m.without.Seconds()/m.took.Seconds(), "limit: without a cache, the same tokens"
		}
		add("speed", n/m.took.Seconds(), "tokens/s", limit, ratio, note)
		add("time of a token", 1e3*m.took.Seconds()/n, "ms", 0, 0, "")
	} else {
		add("time to first token", m.took.Seconds(), "s", 0, 0, "")
		add("speed", n/m.took.Seconds(), "tokens/s", 0, 0, "")
	}
	add("read per token", read/1e6/n, "MB", 0, 0, "")
	add("experts read per token, useful", float64(x.Useful)/1e6/n, "MB", 0, 0, "")
	wasted := 0.0
	if total := x.Useful + x.Wasted; total > 0 {
		wasted = 100 * float64(x.Wasted) / float64(total)
	}
	add("experts read, wasted", wasted, "%", 0, 0, "share of the bytes read of experts")
	m.uses(add, x, decode)
	add("stall per token", 1e3*x.Stall.Seconds()/n, "ms", 0, 0, "the arithmetic had nothing to do but wait")
	m.bounds(add, read)
}

// uses adds how uses of experts fared.
func (m *benchMeasure) uses(add func(string, float64, string, float64, float64, string), x *expert.Counts, decode bool) {
	per := float64(x.Uses())
	for _, c := range []struct {
		name  string
		count int64
	}{{"hit", x.Hit}, {"in time", x.InTime}, {"late", x.Late}, {"missed", x.Missed}, {"unused", x.Unused}} {
		add(c.name, float64(c.count), "experts", per, float64(c.count)/max(per, 1), "")
	}
	if loads := x.InTime + x.Late + x.Missed; !decode && loads > 0 {
		// Every use that was no hit was loaded once, so this is the size of one.
		size := float64(x.Useful) / float64(loads)
		need := size * per
		got := float64(x.Useful + x.Wasted)
		add("read of the experts needed", got/1e9, "GB", need/1e9, got/need, "limit: each expert once in every layer and pass")
	}
}

// busyRate is what the drives gave together while they had work, in bytes per second.
func (m *benchMeasure) busyRate() (rate float64) {
	for i := range m.io.Drives.Drives {
		if d := &m.io.Drives.Drives[i]; d.Busy > 0 {
			rate += float64(d.Read) / d.Busy.Seconds()
		}
	}
	return rate
}

// bounds adds what holds a token up and how well the two overlap.
func (m *benchMeasure) bounds(add func(string, float64, string, float64, float64, string), read float64) {
	n, took := float64(m.n), m.took.Seconds()
	arithmetic := took - m.io.Experts.Total.Stall.Seconds()
	add("bound of arithmetic per token", 1e3*arithmetic/n, "ms", 1e3*took/n, arithmetic/took, "the time without the stall; checking what was read shares the cores with it")
	bound := arithmetic
	if busy := m.busyRate(); m.ceiling > 0 && busy > m.ceiling {
		m.ceiling, m.how = busy, "what the drives gave in this run while they had work, more than plain reads before it"
	}
	if m.ceiling > 0 {
		add("rate of reading", read/took, "B/s", m.ceiling, read/took/m.ceiling, "limit: "+m.how)
		reading := read / m.ceiling
		add("bound of reading per token", 1e3*reading/n, "ms", 1e3*took/n, reading/took, "")
		bound = max(bound, reading)
		add("overlap efficiency", 100*bound/took, "%", 0, 0, "the larger bound over the time")
	}
	if peak, ok := peakResident(); ok {
		add("peak resident", float64(peak)/1e6, "MB", 0, 0, "of the process so far")
	}
}

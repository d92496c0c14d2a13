package simulate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"deltafin/engine/expert"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// ErrMemory: a machine has too little memory for the model.
var ErrMemory = errors.New("not enough memory")

// Options are the options of a run. The zero value of each field is its default.
type Options struct {
	Tokens  int     // to decode and count; default 100
	Warm    int     // to decode before, so that the cache is as it is after a while; default 0
	Rows    int     // of a prompt that share a pass; default: 512, less where memory is short
	Context int     // tokens of the conversation; default 4096
	Cache   int64   // bytes for experts; default: what memory leaves
	Trunk   int64   // bytes for the trunk; default: what the plan gives it
	Recall  float64 // of the lookahead's first candidates; default 0.6
	NoAhead bool    // no reading ahead
	Router  Router  // default: a Generator with the Published fit
	Layers  int     // with experts that stand for all; default: all
	Passes  int     // over a long prompt that stand for all; default: all
	Slice   int     // bytes of the largest single read; default 2 MiB
	Seed    uint64

	// Layout is where the experts lie, on as many drives as the machine has; default:
	// a range of each on every drive, as place would put them.
	Layout *ssdio.Layout
	// Unmeasured drives have no profile: the scheduler learns their rates as it goes.
	Unmeasured bool
	// Arithmetic is what it costs where it was measured; default: by the machine's
	// figures.
	Arithmetic *Arithmetic

	// Mistake makes the simulated engine wrong on purpose, for tests of those who
	// compare it with the real one.
	Mistake Mistake

	// Progress is told after each token or layer of a prompt.
	Progress func(done, of int)
}

func (o Options) ensure(s expert.Shape, rows int) (Options, error) {
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	def(&o.Tokens, 100)
	def(&o.Rows, rows)
	def(&o.Slice, 2<<20)
	if o.Recall == 0 {
		o.Recall = 0.6
	}
	if o.Tokens < 0 || o.Warm < 0 || o.Rows < 0 || o.Context < 0 || o.Cache < 0 || o.Trunk < 0 || o.Layers < 0 || !(o.Recall > 0 && o.Recall <= 1) {
		return o, fmt.Errorf("options %+v of a simulation: counts are 0 or more and recall is above 0 up to 1: %w", o, ErrMachine)
	}
	if o.Router == nil {
		g, err := NewGenerator(s, Published, o.Seed)
		if err != nil {
			return o, err
		}
		o.Router = g
	}
	return o, nil
}

// defaultContext is the length of the conversation.
const defaultContext = 4096

// A Result is what a run would have done. Times are virtual, and of the whole model
// also where a sample of its layers was run.
type Result struct {
	Tokens      int
	Elapsed     time.Duration
	Compute     time.Duration // time bound by arithmetic
	Memory      time.Duration // time bound by the memory's bandwidth
	Streaming   time.Duration // time for the part of the trunk that memory has no room for
	Stall       time.Duration // time waiting for experts
	Counts      expert.Counts // of the layers that were run
	Read        int64         // bytes from drives, per layers that were run
	Drives      []ssdio.DriveCounters
	Trunk       int64   // bytes of the trunk in memory
	Streamed    int64   // bytes of the trunk that are read again in each pass
	Cache       int64   // bytes for experts
	Factor      float64 // share of the layers that was run
	Assumptions []string
}

// Rate is tokens per second.
func (r *Result) Rate() float64 {
	if r.Elapsed <= 0 {
		return 0
	}
	return float64(r.Tokens) / r.Elapsed.Seconds()
}

// PerToken is the bytes from drives for a token, over all layers.
func (r *Result) PerToken() float64 {
	return float64(r.Read) / r.Factor / float64(max(r.Tokens, 1))
}

// run is a simulated engine.
type run struct {
	opt    Options
	whole  *Model
	model  *Model // of the layers that are run
	factor float64
	split  Split
	clock  *clock
	cost   *cost
	set    *ssdio.Set
	store  *expert.Store
	turn   *expert.Turn
	cancel context.CancelCauseFunc
	ctx    context.Context
	guess  guesser
	trunk  ring

	recorded *Pass   // the pass that is replayed; nil: routing is drawn
	drawn    int     // layer that was drawn beforehand, -1: none
	ids      []int32 // [rows][TopK] of the open layer
	want     []expert.Want
	rows     []int32 // [Experts]
	taken    []int
}

// start builds a machine around the engine's own store and set.
func start(ctx context.Context, m *Machine, whole *Model, o Options) (*run, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	if o.Context == 0 {
		o.Context = defaultContext
	}
	split, err := Divide(m, whole, o.Context)
	if err != nil {
		return nil, err
	}
	model, factor := whole.sample(o.Layers)
	if o.Cache > 0 {
		split.Cache = o.Cache
	}
	if o.Trunk > 0 {
		split = split.withTrunk(m, whole, o.Trunk)
	}
	if n := least(model, m); split.Cache < n {
		return nil, fmt.Errorf("a cache of %d bytes does not hold the %d experts of one layer, %d bytes: %w", split.Cache, model.Experts.TopK, n, ErrMemory)
	}
	if o.Mistake == Uncached {
		split.Cache = least(model, m)
	}
	if o, err = o.ensure(model.Experts, split.Rows); err != nil {
		return nil, err
	}
	cat, err := expert.Describe(model.Experts)
	if err != nil {
		return nil, err
	}
	r := &run{opt: o, whole: whole, model: model, factor: factor, split: split, clock: &clock{}, drawn: -1, rows: make([]int32, model.Experts.Experts)}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	r.clock.idle = func() { r.cancel(errIdle) }
	r.cost = newCost(m, whole, r.clock, o.Arithmetic)
	r.guess.init(model.Experts, o.Recall, o.Seed)
	drives, err := r.drives(m)
	if err != nil {
		return nil, err
	}
	layout, err := r.layout(m)
	if err != nil {
		return nil, err
	}
	r.set, err = ssdio.Open(drives, layout, &ssdio.Options{Timeline: r.clock, Slice: o.Slice, HedgeFactor: -1})
	if err != nil {
		return nil, err
	}
	epoch := time.Unix(0, 0)
	r.store, err = expert.NewStore(cat, r.set, layout, expert.Options{
		Budget: budget(split.Cache, model.Experts, factor, expert.Spares(len(m.Drives))), Drives: len(m.Drives),
		NoAhead: o.NoAhead, Reserve: true,
		Now: func() time.Time { return epoch.Add(r.clock.now) },
	})
	if err == nil {
		err = r.trunk.open(r, layout)
	}
	if err != nil {
		return nil, errors.Join(err, r.set.Close())
	}
	r.turn = r.store.NewTurn(r.clock.wait)
	return r, nil
}

// least is the smallest cache that works.
func least(model *Model, m *Machine) int64 {
	return int64(model.Experts.TopK+expert.Spares(len(m.Drives))) * int64(ssdio.SlotBytes(int(model.Experts.Bytes)))
}

// budget is the cache of a sample of the layers. What the store keeps free for reads
// is as large for a sample as for all; the rest is in proportion.
func budget(cache int64, s expert.Shape, factor float64, spare int) int64 {
	if factor == 1 {
		return cache
	}
	slot, k := int64(ssdio.SlotBytes(int(s.Bytes))), int64(s.TopK)
	rest := max(cache/slot-int64(spare)-k, 0)
	rest -= min(k, rest/8) // slots that experts stay in
	part := int64(float64(rest) * factor)
	if part < 7*k {
		part += part / 7
	} else {
		part += k
	}
	return (k + part + int64(spare)) * slot
}

// close ends what start began.
func (r *run) close() error {
	r.abandon()
	r.cancel(nil)
	return errors.Join(r.set.Close(), r.store.Close(), r.trunk.close())
}

// drives makes the drives of the machine, measured ones.
func (r *run) drives(m *Machine) ([]*ssdio.Drive, error) {
	var fleet emulate.Fleet
	hubs := map[string]float64{}
	for _, h := range m.Hubs {
		hubs[h.Name] = h.Rate
	}
	var out []*ssdio.Drive
	shares := m.shares()
	for i, d := range m.Drives {
		spec := emulate.Spec{
			Path: "/", Limit: int64(d.Rate), Latency: time.Duration(d.Latency * float64(time.Second)), Hub: d.Hub, HubRate: int64(hubs[d.Hub]),
		}
		model, err := fleet.Model(spec)
		if err != nil {
			return nil, err
		}
		r.clock.drives = append(r.clock.drives, model)
		r.clock.limits = append(r.clock.limits, shares[i])
		r.clock.busy = append(r.clock.busy, 0)
		drive := &ssdio.Drive{ID: fmt.Sprintf("%032d", i), Name: d.Name, Emulated: "simulated"}
		if !r.opt.Unmeasured {
			drive.Profile = &ssdio.Profile{Best: ssdio.Point{Size: r.opt.Slice, Depth: 8, Rate: d.Rate}, Together: shares[i]}
		}
		out = append(out, drive)
	}
	return out, nil
}

// layout is where everything lies: the experts as the options say, and what is
// streamed of the trunk on the first drive, which holds the model's own files.
func (r *run) layout(m *Machine) (*ssdio.Layout, error) {
	streams := r.trunk.plan(r, m)
	if r.opt.Layout != nil && r.opt.Mistake != Unspread {
		if streams {
			return nil, fmt.Errorf("experts lie where the caller says, and %d bytes of trunk would have to lie somewhere too: give the machine more memory: %w", r.split.Streamed, ErrMemory)
		}
		return r.opt.Layout, nil
	}
	var b ssdio.Builder
	on := m
	if r.opt.Mistake == Unspread {
		on = &Machine{Drives: m.Drives[:1]}
	}
	if err := spread(&b, on, r.model.Experts); err != nil {
		return nil, err
	}
	if err := r.trunk.place(&b); err != nil {
		return nil, err
	}
	return b.Layout(), nil
}

// spread gives each drive a range of every expert in the proportion of its speed,
// wider by the overlap, so that neighbours can help each other.
func spread(b *ssdio.Builder, m *Machine, s expert.Shape) error {
	n := int64(s.Layers-s.Dense) * int64(s.Experts)
	blocks := int64(ssdio.Blocks(s.Bytes))
	at, shares, total := 0.0, m.shares(), m.Rate()
	for i := range m.Drives {
		share := shares[i] / total
		wider := share * m.Overlap / 2
		from := max(0, int64(float64(blocks)*(at-wider)))
		to := min(blocks, int64(float64(blocks)*(at+share+wider))+1)
		at += share
		size := min(to*ssdio.BlockSize, s.Bytes) - from*ssdio.BlockSize
		file, err := b.File(i, "experts", n*size)
		if err != nil {
			return err
		}
		for k := range n {
			key := ssdio.Key{Layer: int32(int64(s.Dense) + k/int64(s.Experts)), Expert: int32(k % int64(s.Experts))}
			if err := b.Object(key, s.Bytes, nil); err != nil {
				return err
			}
			h := ssdio.Holding{Key: key, From: from * ssdio.BlockSize, To: from*ssdio.BlockSize + size, File: file, Offset: k * size}
			if err := b.Hold(h); err != nil {
				return err
			}
		}
	}
	return nil
}

// Decode runs a machine through tokens, one after the other.
func Decode(ctx context.Context, m *Machine, model *Model, o Options) (*Result, error) {
	r, err := start(ctx, m, model, o)
	if err != nil {
		return nil, err
	}
	var begin mark
	for i := range r.opt.Warm + r.opt.Tokens {
		if i == r.opt.Warm {
			begin = r.mark()
		}
		if err := r.pass(1, true); err != nil {
			return nil, errors.Join(err, r.close())
		}
		if p := r.opt.Progress; p != nil {
			p(i+1, r.opt.Warm+r.opt.Tokens)
		}
	}
	res := r.result(begin, r.opt.Tokens, m)
	return res, r.close()
}

// Prefill runs a machine through a prompt, to the first token of the answer.
func Prefill(ctx context.Context, m *Machine, model *Model, tokens int, o Options) (*Result, error) {
	if tokens < 1 {
		return nil, fmt.Errorf("a prompt of %d tokens: %w", tokens, ErrMachine)
	}
	o.Context = max(o.Context, tokens)
	r, err := start(ctx, m, model, o)
	if err != nil {
		return nil, err
	}
	begin := r.mark()
	passes := (tokens + r.opt.Rows - 1) / r.opt.Rows
	run := passes
	if r.opt.Passes > 0 {
		run = min(run, r.opt.Passes)
	}
	rows := 0
	for i := range run {
		// Where fewer passes stand for all, their places are spread evenly.
		done := (2*i + 1) * passes / (2 * run) * r.opt.Rows
		n := min(r.opt.Rows, tokens-done)
		r.opt.Context = done + n/2 // what a row of this pass looks back on
		if err := r.pass(n, i == run-1); err != nil {
			return nil, errors.Join(err, r.close())
		}
		rows += n
		if p := r.opt.Progress; p != nil {
			p(i+1, run)
		}
	}
	res := r.result(begin, rows, m)
	res.stretch(float64(tokens)/float64(rows), tokens)
	return res, r.close()
}

// stretch makes a part of a prompt stand for all of it.
func (r *Result) stretch(by float64, tokens int) {
	for _, d := range []*time.Duration{&r.Elapsed, &r.Compute, &r.Memory, &r.Streaming, &r.Stall} {
		*d = time.Duration(float64(*d) * by)
	}
	r.Read, r.Tokens = int64(float64(r.Read)*by), tokens
}

package simulate

import (
	"slices"
	"time"
)

// cost is the arithmetic of a machine on a model: by the machine's figures, or as it
// was measured.
type cost struct {
	m        *Machine
	model    *Model // whole
	clock    *clock
	trunk    float64 // bytes that are read of one byte of BF16
	measured *Arithmetic
	flops    time.Duration // time bound by arithmetic
	memory   time.Duration // time bound by memory
	disk     time.Duration // time waiting for layers of the trunk that are streamed
}

func newCost(m *Machine, whole *Model, clock *clock, measured *Arithmetic) *cost {
	_, held := whole.trunkSizes(m.Int8)
	return &cost{m: m, model: whole, clock: clock, measured: measured, trunk: float64(held) / float64(whole.Trunk())}
}

// weights lets a product over trunk weights of so many bytes pass, for rows of
// activations; extra is other traffic of memory in bytes.
func (c *cost) weights(bytes int64, rows int, extra int64) {
	b := float64(bytes)
	c.pass(b*float64(rows), b*c.trunk+float64(extra))
}

// pass lets an operation pass. Drives that are busy write to memory meanwhile, at
// rates that change, so it passes in small steps.
func (c *cost) pass(ops, bytes float64) {
	const (
		least = 0.25 // of the bandwidth that drives leave to the processor
		step  = time.Millisecond
	)
	compute := seconds(ops / (c.m.Gflops * 1e9))
	took := time.Duration(0)
	for bytes > 0 {
		free := max(c.m.Bandwidth-c.clock.load(), least*c.m.Bandwidth)
		d := min(seconds(bytes/free)+1, step)
		c.clock.advance(d)
		took += d
		bytes -= free * d.Seconds()
	}
	if compute <= took {
		c.memory += took
		return
	}
	c.flops += compute
	c.clock.advance(compute - took)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Arithmetic is what the arithmetic of a model costs on a machine, as it was measured
// with everything in memory: by the number of rows of a pass.
type Arithmetic struct {
	Passes map[int]*PassCost
}

// A PassCost is the arithmetic of one pass. A wave, in which the experts that are
// there are computed together, takes Wave + Expert for each of them + Row for each
// of their rows.
type PassCost struct {
	Layers []LayerCost // [layers of the model]
	Head   time.Duration

	Wave, Expert, Row time.Duration
}

// A LayerCost is the arithmetic of one layer besides its experts.
type LayerCost struct {
	Guess     time.Duration // the router asked beforehand, where it is
	Attention time.Duration // up to the router's choice; of a dense layer, all of it
	Beside    time.Duration // while the experts come
	After     time.Duration // what needs all of them
}

// Times is the same arithmetic, so many times as slow.
func (p *PassCost) Times(by float64) *PassCost {
	out := *p
	out.Layers = slices.Clone(p.Layers)
	scale := func(ds ...*time.Duration) {
		for _, d := range ds {
			*d = time.Duration(float64(*d) * by)
		}
	}
	for i := range out.Layers {
		l := &out.Layers[i]
		scale(&l.Guess, &l.Attention, &l.Beside, &l.After)
	}
	scale(&out.Head, &out.Wave, &out.Expert, &out.Row)
	return &out
}

// of is the measured cost of a pass, nil if it was not measured.
func (c *cost) of(rows int) *PassCost {
	if c.measured == nil {
		return nil
	}
	return c.measured.Passes[rows]
}

// spend lets measured arithmetic pass.
func (c *cost) spend(d time.Duration) {
	c.flops += d
	c.clock.advance(d)
}

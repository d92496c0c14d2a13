package simulate

import (
	"time"

	"deltafin/engine/expert"
)

// A Model is the sizes of a model: all that a run depends on besides the routing.
// Trunk bytes are those of BF16, in which a weight has two bytes and costs two
// operations per row: bytes are also operations.
type Model struct {
	Name    string
	Experts expert.Shape
	Layers  []Layer // [Experts.Layers]
	Head    int64   // bytes of the output head, used for one row of a pass
	Embed   int64   // bytes of the embeddings, of which a row is read

	ExpertOps float64 // of one expert for one row
	AttendOps float64 // of one row for each token before it, over all layers
	Cached    int64   // bytes of a conversation per token, over all layers
}

// A Layer is the trunk of one layer in bytes, in the order in which it is used.
type Layer struct {
	Attention int64
	State     int64 // of the conversation, fp32: read and written for each row
	Router    int64 // speaks after the attention; 0 in a dense layer
	Beside    int64 // what runs while the experts come: shared experts, down to the latent
	After     int64 // what needs all experts: up from the latent
	Attends   bool  // reads the conversation's tokens
}

// Of the specification's section 2.4: bytes of BF16.
const (
	k3KDA    = 887_800_832 // attention of one of 69 layers
	k3MLA    = 464_392_192 // attention of one of 24
	k3Shared = 24_310_185_984 / 92
	k3Latent = 9_454_620_672 / 92 / 2 // down, and as much up
	k3Router = 1_182_074_880 / 92
	k3Dense  = 1_453_326_336
	k3Head   = 2_348_810_240
	k3State  = 434_000_000 / 69 // matrices of one KDA layer
)

// K3 is Kimi K3: 93 layers of which the first is dense, 896 experts of 17,547,264
// bytes in each of the others, 16 of them for a token.
func K3() *Model {
	m := &Model{
		Name:    "Kimi K3",
		Experts: expert.Shape{Layers: 93, Dense: 1, Experts: 896, TopK: 16, Bytes: 17_547_264},
		Head:    k3Head, Embed: k3Head,
		ExpertOps: 2 * 3 * 3584 * 3072,
		AttendOps: 24 * 2 * 96 * (576 + 512), // absorbed: scores over 576, values over 512, 96 heads
		Cached:    27_648,
	}
	for i := range m.Experts.Layers {
		l := Layer{Attention: k3KDA, State: k3State, Router: k3Router, Beside: k3Shared + k3Latent, After: k3Latent}
		if i%4 == 3 || i == m.Experts.Layers-1 {
			l.Attention, l.State, l.Attends = k3MLA, 0, true
		}
		if i == 0 {
			l.Router, l.Beside, l.After = 0, k3Dense, 0
		}
		m.Layers = append(m.Layers, l)
	}
	return m
}

// Trunk is the bytes of all weights but the routed experts.
func (m *Model) Trunk() int64 {
	n := m.Head + m.Embed
	for _, l := range m.Layers {
		n += l.Attention + l.Router + l.Beside + l.After
	}
	return n
}

// state is the bytes of a conversation of so many tokens.
func (m *Model) state(tokens int) int64 {
	n := m.Cached * int64(tokens)
	for _, l := range m.Layers {
		n += l.State
	}
	return n
}

// sample is the model with so many of its layers with experts, at even distances,
// and the factor by which its times and its cache are smaller. Layers are alike, so
// little is lost but the time it takes.
func (m *Model) sample(layers int) (*Model, float64) {
	moe := m.Experts.Layers - m.Experts.Dense
	if layers <= 0 || layers >= moe {
		return m, 1
	}
	out := *m
	out.Experts.Layers, out.Experts.Dense = layers, 0
	out.Layers = nil
	for i := range layers {
		out.Layers = append(out.Layers, m.Layers[m.Experts.Dense+i*moe/layers])
	}
	// The head and the dense layers are part of the sample by their bytes.
	out.Head, out.Embed = m.Head, m.Embed*int64(layers)/int64(moe)
	for _, l := range m.Layers[:m.Experts.Dense] {
		out.Head += l.Attention + l.Beside
	}
	out.Head = out.Head * int64(layers) / int64(moe)
	return &out, float64(layers) / float64(moe)
}

// int8Share is the bytes of a weight as int8 with its scales, of those as BF16.
const int8Share = 0.504

// cost is the arithmetic of a machine on a model.
type cost struct {
	m      *Machine
	model  *Model
	clock  *clock
	trunk  float64       // bytes in memory of one byte of BF16
	stream float64       // seconds per byte of trunk that memory has no room for
	flops  time.Duration // time bound by arithmetic
	memory time.Duration // time bound by memory
	disk   time.Duration // time for streaming the trunk
}

// weights lets a product over trunk weights of so many bytes pass, for rows of
// activations; extra is other traffic of memory in bytes.
func (c *cost) weights(bytes int64, rows int, extra int64) {
	b := float64(bytes)
	c.pass(b*float64(rows), b*c.trunk+float64(extra))
	if d := seconds(b * c.stream); d > 0 {
		c.disk += d
		c.clock.advance(d)
	}
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

package simulate

import (
	"fmt"
	"strings"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/trunk"
)

// A Model is the sizes of a model: all that a run depends on besides the routing.
// Trunk bytes are those of BF16, in which a weight has two bytes and costs two
// operations per row: bytes are also operations.
type Model struct {
	Name    string
	Config  *checkpoint.Config // of the whole model
	Experts expert.Shape
	Layers  []Layer // [Experts.Layers]
	Head    int64   // bytes of the output head, used for one row of a pass
	Embed   int64   // bytes of the embeddings, of which a row is read

	ExpertOps float64 // of one expert for one row
	AttendOps float64 // of one row for each token before it, over all layers
}

// A Layer is the trunk of one layer in bytes, in the order in which it is used.
type Layer struct {
	Attention int64
	State     int64 // of the conversation, fp32: read and written for each row
	Router    int64 // speaks after the attention; 0 in a dense layer
	Beside    int64 // what runs while the experts come: shared experts, down to the latent
	After     int64 // what needs all experts: up from the latent
	Exact     int64 // of all that, what an int8 trunk keeps as it is: router and gates
	Attends   bool  // reads the conversation's tokens
}

// k3Config has the numbers of the specification's section 1 that sizes follow from.
func k3Config() *checkpoint.Config {
	c := &checkpoint.Config{
		Layers: 93, Hidden: 7168, Vocab: 163_840, MaxContext: 1 << 20, DenseIntermediate: 33_792, FirstDense: 1, MoEFreq: 1,
		Heads: 96, QLoRA: 1536, KVLoRA: 512, QKNope: 128, QKRope: 64, VHead: 128, KDAHeads: 96, KDAHeadDim: 128, ConvKernel: 4,
		Experts: 896, TopK: 16, SharedExperts: 2, ExpertIntermediate: 3072, Latent: 3584, LatentNorm: true, ResBlock: 12,
		Quantized: true, DType: checkpoint.BF16,
	}
	c.MLALayer = make([]bool, c.Layers)
	for l := range c.MLALayer {
		c.MLALayer[l] = l%4 == 3 || l == c.Layers-1
	}
	return c
}

// K3 is Kimi K3: 93 layers of which the first is dense, 896 experts of 17,547,264
// bytes in each of the others, 16 of them for a token.
func K3() *Model { return newModel("Kimi K3", k3Config()) }

// NewModel is the sizes of any model of the architecture whose dense layers come
// first. The config is kept, and must not change.
func NewModel(name string, c *checkpoint.Config) (*Model, error) {
	if c.MoELayers() == 0 || c.FirstDense+c.MoELayers() != c.Layers {
		return nil, fmt.Errorf("%s has experts in %d of %d layers, the first of them is layer %d: they must be in all from there on: %w",
			name, c.MoELayers(), c.Layers, c.FirstDense, ErrRouting)
	}
	return newModel(name, c), nil
}

func newModel(name string, c *checkpoint.Config) *Model {
	account := c.Account()
	m := &Model{
		Name: name, Config: c,
		Experts: expert.Shape{Layers: c.Layers, Dense: c.Layers - c.MoELayers(), Experts: c.Experts, TopK: c.TopK, Bytes: account.ExpertBytes},
		Layers:  make([]Layer, c.Layers),
		// Of three matrices a multiplication and an addition for each weight.
		ExpertOps: 2 * 3 * float64(c.Latent) * float64(c.ExpertIntermediate),
		// Absorbed: scores over the whole latent row, values over the part without
		// positions, for every head.
		AttendOps: 2 * float64(c.MLALayers()*c.Heads) * float64(2*c.KVLoRA+c.QKRope),
	}
	c.Each(func(s checkpoint.Spec) bool {
		n := int64(2)
		for _, d := range s.Shape {
			n *= int64(d)
		}
		if s.Class == checkpoint.Embeddings {
			m.Embed = n
		}
		if !trunk.IsMatrix(&s) {
			return true
		}
		if s.Layer < 0 {
			m.Head = n
			return true
		}
		l := &m.Layers[s.Layer]
		if exact(s.Name) {
			l.Exact += n
		}
		switch {
		case s.Class == checkpoint.KDA || s.Class == checkpoint.MLA:
			l.Attention += n
		case s.Class == checkpoint.Router:
			l.Router += n
		case strings.HasSuffix(s.Name, "routed_expert_up_proj.weight"):
			l.After += n
		default: // dense, shared experts, down to the latent
			l.Beside += n
		}
		return true
	})
	for i := range m.Layers {
		if m.Layers[i].Attends = c.MLALayer[i]; !c.MLALayer[i] {
			m.Layers[i].State = 4 * int64(c.KDAHeads*c.KDAHeadDim*c.KDAHeadDim)
		}
	}
	return m
}

// Trunk is the bytes of all matrices that every token uses.
func (m *Model) Trunk() int64 {
	n := m.Head
	for _, l := range m.Layers {
		n += l.bytes()
	}
	return n
}

// int8Share is the bytes of a weight in an int8 trunk, of its two as BF16: one, and a
// part of its group's scale.
const int8Share = (1 + 4.0/trunk.Int8Group) / 2

// exact says whether an int8 trunk keeps a matrix as it is.
func exact(name string) bool {
	for _, s := range []string{"block_sparse_moe.gate.weight", ".f_a_proj.weight", ".f_b_proj.weight", ".b_proj.weight"} {
		if strings.HasSuffix(name, s) {
			return true
		}
	}
	return false
}

// held is the bytes of the layers and of the head in one of the forms.
func (m *Model) held(int8 bool) (layers []int64, head int64) {
	in := func(bytes, exact int64) int64 {
		if !int8 {
			return bytes
		}
		return exact + int64(float64(bytes-exact)*int8Share)
	}
	for i := range m.Layers {
		layers = append(layers, in(m.Layers[i].bytes(), m.Layers[i].Exact))
	}
	return layers, in(m.Head, 0)
}

func (l *Layer) bytes() int64 { return l.Attention + l.Router + l.Beside + l.After }

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
	out.Head = m.Head
	for _, l := range m.Layers[:m.Experts.Dense] {
		out.Head += l.Attention + l.Beside
	}
	out.Head = out.Head * int64(layers) / int64(moe)
	return &out, float64(layers) / float64(moe)
}

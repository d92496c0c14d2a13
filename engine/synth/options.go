package synth

import (
	"fmt"
	"math"

	"deltafin/engine/checkpoint"
)

// Options say what to make. The zero value of a field means its default.
type Options struct {
	// Like names the dimensions: "k3" (the default), or for tests "small", which has
	// everything K3 has at a hundredth of the width, or "wide", which is small but for
	// experts of several blocks, so that drives can share them.
	Like string
	// Layers of the model, the first of them dense. Default 8.
	Layers int
	// Experts per layer. Default 128.
	Experts int
	// Vocab is the vocabulary: single bytes and pairs and triples of them, then 256
	// special tokens. Default 512, which keeps embedding and head small.
	Vocab int
	// Seed of everything.
	Seed uint64
	// Skew is how wide the biases of the router are spread, in units of the spread
	// of its scores: 0 is flat, 1 favours some experts clearly.
	Skew float64
}

const (
	minVocab = 512
	maxVocab = 1 << 18
)

// config is the model that the options describe.
func (o *Options) config() (*checkpoint.Config, error) {
	if o.Like == "" {
		o.Like = "k3"
	}
	def(&o.Layers, 8)
	def(&o.Experts, 128)
	def(&o.Vocab, minVocab)
	c := &checkpoint.Config{
		Layers: o.Layers, Vocab: o.Vocab, Experts: o.Experts, MaxContext: 1 << 20,
		FirstDense: 1, MoEFreq: 1, SharedExperts: 2, TopK: 16, ConvKernel: 4,
		GateLowerBound: -5, HasGateLowerBound: true,
		RoutedScale: 1, Renormalize: true, LatentNorm: true,
		SituBeta: 4, SituLinearBeta: 25, ResBlock: 12, Eps: 1e-5,
		BOS: o.Vocab - 256, EOS: o.Vocab - 254, Pad: o.Vocab - 1, Quantized: true, DType: checkpoint.BF16,
	}
	switch o.Like {
	case "k3": // spec section 1
		c.Hidden, c.DenseIntermediate, c.Latent, c.ExpertIntermediate = 7168, 33792, 3584, 3072
		c.Heads, c.QLoRA, c.KVLoRA, c.QKNope, c.QKRope, c.VHead = 96, 1536, 512, 128, 64, 128
		c.KDAHeads, c.KDAHeadDim = 96, 128
	case "small", "wide":
		c.Hidden, c.DenseIntermediate, c.Latent, c.ExpertIntermediate = 128, 320, 64, 64
		c.Heads, c.QLoRA, c.KVLoRA, c.QKNope, c.QKRope, c.VHead = 4, 48, 32, 16, 8, 16
		c.KDAHeads, c.KDAHeadDim, c.TopK, c.ResBlock = 4, 32, 4, 4
		if o.Like == "wide" {
			c.Latent, c.ExpertIntermediate = 1024, 1024
		}
	default:
		return nil, fmt.Errorf("there is no model like %q to be like: k3, small or wide", o.Like)
	}
	switch {
	case o.Layers < 2 || o.Layers > 1000:
		return nil, fmt.Errorf("%d layers: 2 to 1000, the first is dense and the others have experts", o.Layers)
	case o.Experts < c.TopK || o.Experts > 16384:
		return nil, fmt.Errorf("%d experts: %d to 16384, each token uses %d", o.Experts, c.TopK, c.TopK)
	case o.Vocab < minVocab || o.Vocab > maxVocab:
		return nil, fmt.Errorf("a vocabulary of %d: %d to %d", o.Vocab, minVocab, maxVocab)
	case !(o.Skew >= 0 && o.Skew <= 100):
		return nil, fmt.Errorf("a skew of %g: 0 to 100", o.Skew)
	}
	// Three KDA layers, then one MLA; the last layer is MLA as well.
	c.MLALayer = make([]bool, o.Layers)
	for l := range c.MLALayer {
		c.MLALayer[l] = l%4 == 3 || l == o.Layers-1
	}
	return c, nil
}

func def(v *int, d int) {
	if *v == 0 {
		*v = d
	}
}

// stream is the seed of all tensors. Models that differ in the skew differ in every
// tensor and not in the router's biases alone, or they would pass for each other.
func (o *Options) stream() uint64 {
	if o.Skew == 0 {
		return o.Seed
	}
	return mix(o.Seed ^ mix(math.Float64bits(o.Skew)))
}

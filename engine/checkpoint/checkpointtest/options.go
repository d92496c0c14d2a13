package checkpointtest

import "deltafin/engine/checkpoint"

// ALogForm is how A_log of a KDA layer is stored; the values are the same.
type ALogForm int

// The forms of A_log that occur.
const (
	Padded ALogForm = iota // [KDAHeadDim], zeros beyond the heads, as the official files do
	Bare                   // [KDAHeads]
	Nested                 // [1, 1, KDAHeads, 1]
)

// Options describe a checkpoint. The zero value of everything but Config is the
// official form.
type Options struct {
	Config checkpoint.Config       // sizes and switches; start from Small
	Format checkpoint.ExpertFormat // MXFP4, or Plain for the unquantised twins
	ALog   ALogForm
	// NoPrefix leaves "language_model." away.
	NoPrefix bool
	// Single writes one model.safetensors without an index.
	Single bool
	// Vision adds two shards with tensors of the vision tower and projector.
	Vision bool
	// Scatter puts other tensors between those of each expert.
	Scatter bool
}

// Small is a config with everything in it: five layers, MLA in the second and the
// last two of them, a dense layer 0, residual blocks of 2, two KDA heads of 32 and
// three MLA heads, top 2 of 5 experts. It makes about 300 KB.
func Small() checkpoint.Config {
	return checkpoint.Config{
		Layers: 5, Hidden: 48, Vocab: 512, MaxContext: 4096,
		DenseIntermediate: 80, FirstDense: 1, MoEFreq: 1,
		Heads: 3, QLoRA: 24, KVLoRA: 20, QKNope: 16, QKRope: 8, VHead: 12,
		KDAHeads: 2, KDAHeadDim: 32, ConvKernel: 4, GateLowerBound: -5, HasGateLowerBound: true,
		MLALayer: []bool{false, true, false, true, true},
		Experts:  5, TopK: 2, SharedExperts: 2, ExpertIntermediate: 32, Latent: 32,
		RoutedScale: 1, Renormalize: true, LatentNorm: true,
		SituBeta: 4, SituLinearBeta: 25, ResBlock: 2, Eps: 1e-5,
		BOS: 256, EOS: 258, Pad: 511, Quantized: true, DType: checkpoint.BF16,
	}
}

// Twin is Small in the manner of the public trained twins: no lower bound of
// the forget gate (softplus form), float32, one shared expert.
func Twin() checkpoint.Config {
	c := Small()
	c.HasGateLowerBound, c.GateLowerBound = false, 0
	c.DType, c.Quantized, c.SharedExperts = checkpoint.F32, false, 1
	return c
}

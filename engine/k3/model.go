package k3

import (
	"context"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// A Model is the weights of one checkpoint, ready for Runners. Matrices are views
// of the mapped files; small vectors (norms, gates, convolution taps) are float32
// copies. It is immutable and safe for concurrent use.
type Model struct {
	cfg     *checkpoint.Config
	embed   kernel.Matrix // [Vocab, Hidden]
	head    kernel.Matrix // [Vocab, Hidden]
	norm    []float32     // [Hidden]
	outRes  []float32     // [Hidden]: output_attn_res norm * proj, folded
	layers  []layer
	experts Experts
}

// layer holds the weights of one layer. Of kda and mla, and of dense and moe, one
// is nil.
type layer struct {
	attnRes, mlpRes   []float32 // [Hidden]: *_res_norm * *_res_proj, folded (spec 3.2)
	attnNorm, mlpNorm []float32 // [Hidden]: input and post-attention norms
	kda               *kdaWeights
	mla               *mlaWeights
	dense             *mlpWeights
	moe               *moeWeights
}

// Config is the shape of the model.
func (m *Model) Config() *checkpoint.Config { return m.cfg }

// An Expert is the three matrices of one routed expert: W1 (gate) and W3 (up) are
// [ExpertIntermediate, Latent], W2 (down) is [Latent, ExpertIntermediate].
type Expert struct{ W1, W3, W2 kernel.Matrix }

// Experts gives access to the routed experts. A Runner asks for the experts of a
// layer as soon as the router has spoken, and uses each before it asks for those
// of the next layer.
type Experts interface {
	// Expert returns expert e of a layer, when its bytes are in memory. The
	// matrices stay valid until the next layer's experts are asked for.
	Expert(ctx context.Context, layer, e int) (Expert, error)
}

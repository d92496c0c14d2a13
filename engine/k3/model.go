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
	trunk   Trunk            // nil: matrices are views of the mapped files
	names   map[*byte]string // of matrices, by where they begin
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

// Experts gives access to the routed experts. It is shared by the Runners of a
// Model.
type Experts interface {
	// NewFeed returns what one Runner takes experts from.
	NewFeed() Feed
}

// A Feed gives a Runner the experts of one layer after the other, each as soon as
// its bytes are in memory. It serves one call at a time.
type Feed interface {
	// Streams says that experts may have to be read. The Runner then asks for
	// them as early as it can, and has other work done meanwhile.
	Streams() bool
	// Ahead says whether a guess of what a layer will need is worth the work; early
	// is as in Guess.
	Ahead(layer int, early bool) bool
	// Guess names the experts that a layer to come, of a pass of so many rows, is
	// likely to need, the most likely first. Early guesses are made a layer sooner
	// than others, and followed by another. It may be wrong in any way. The slice is
	// not kept. The next Begin, or End, takes the guess back.
	Guess(layer, rows int, early bool, likely []Want)
	// Begin names the experts that a layer needs, each once and the most wanted
	// first. It does not wait. The slice stays unchanged until End.
	Begin(ctx context.Context, layer int, want []Want) error
	// Next gives an expert that is in memory: its index in want and its matrices,
	// which stay valid until Done. If none is, it waits, or without wait returns
	// at once. ok is false if none is there, or if the rest can only come after a
	// Done.
	Next(wait bool) (i int, x Expert, ok bool, err error)
	// Done says that an expert's matrices are no longer used.
	Done(i int)
	// End closes the layer, after an error too.
	End()
}

// A Want is an expert that a layer needs, and the number of rows it is for.
type Want struct{ Expert, Rows int32 }

// A Trunk has the matrices of the layers, and of the head, in memory of its own, not
// all of them at all times. It is shared by the Runners of a Model.
type Trunk interface {
	// Resident says that the matrices of a layer stay; the number behind the last
	// layer is the head, which always does.
	Resident(layer int) bool
	// Layer waits until the matrices of a layer are there, which they are until Done.
	// Layers follow each other from 0 on; an error ends the pass.
	Layer(ctx context.Context, layer int) error
	// Matrix gives a matrix by its name in the checkpoint, with the same content for
	// every call: of a resident layer, or of the one that Layer gave.
	Matrix(layer int, name string) (kernel.Matrix, error)
	// Done says that a layer's matrices are no longer used.
	Done(layer int)
}

// WithExperts returns the same model with its experts from elsewhere.
func (m *Model) WithExperts(x Experts) *Model {
	c := *m
	c.experts = x
	return &c
}

// WithTrunk returns the same model with the matrices of its layers and head from
// elsewhere. What the model has mapped of them is not touched any more.
func (m *Model) WithTrunk(t Trunk) *Model {
	c := *m
	c.trunk = t
	return &c
}

package k3

import "deltafin/engine/checkpoint"

// A Pass is the size of a forward pass, for PassBytes.
type Pass struct {
	Rows      int // tokens of all parts together
	Parts     int // sequences
	Workers   int // of the pool
	Positions int // longest sequence at its end
}

// PassBytes is the memory of a Runner that did its largest pass: the buffers stay.
// The kernels' scratch, some hundred kilobytes per worker, comes on top, and so
// does what the collector has not taken back of buffers that grew.
func PassBytes(c *checkpoint.Config, p Pass) int64 {
	const word = 4 // float32, int32
	n, parts, workers := int64(p.Rows), int64(p.Parts), int64(p.Workers)
	hidden, latent, topK := int64(c.Hidden), int64(c.Latent), int64(c.TopK)

	// The stream: p, h, x, u; one bank per block; ids of rows and the logits.
	banks := int64((c.Layers + c.ResBlock - 1) / c.ResBlock)
	total := n*hidden*(4+banks) + n + parts*int64(c.Vocab)

	if c.MLALayers() < c.Layers { // kdaBuffers
		inner, old := int64(c.KDAInner()), int64(c.ConvKernel-1)
		total += 3*n*inner + n*int64(c.KDAHeadDim+c.KDAHeads) + 3*(n+parts*old)*inner
		if parts > 1 {
			total += 3 * n * inner
		}
	}
	total += workers * 5 * int64(c.KDAHeadDim)

	if c.MLALayers() > 0 { // mlaBuffers
		width, heads := int64(c.KVLoRA+c.QKRope), int64(c.Heads)
		total += n*int64(c.QLoRA) + n*width + n*heads*int64(c.QKNope+c.QKRope) + 2*n*int64(c.MLAInner()) +
			n*heads*width + n*heads*int64(c.KVLoRA) +
			workers*int64(headsPerItem(c.Heads, p.Workers))*int64(scoreRoom(p.Positions))
	}

	if c.MoELayers() > 0 { // moeBuffers
		inner, experts := int64(c.ExpertIntermediate), int64(c.Experts)
		pairs := n * topK
		wave := min(pairs, waveRows-1+n)
		total += n*experts + experts + // logits, score
			3*pairs + // ids, weight, pairs
			2*n*latent + n*hidden + // z, sum, back
			pairs*latent + // slot
			wave*(2*latent+2*inner) +
			2*n*int64(c.SharedIntermediate())
	}
	if c.MoELayers() < c.Layers { // mlpBuffers
		total += 2 * n * int64(c.DenseIntermediate)
	}
	return word * total
}

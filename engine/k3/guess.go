package k3

import (
	"cmp"
	"slices"

	"deltafin/engine/kernel"
)

// The router of a layer speaks when the attention of that layer is done; until then
// the drives would have nothing to do. The residual stream changes little from one
// sub-layer to the next, so the router is asked beforehand, about the stream as it
// is. Its answer is a guess: it decides what is read early, never what is computed.

// guess is called at the beginning of layer i. It names what the layer is likely to
// need or, where it has no experts, what the next layer is: the time of a dense
// layer is not to be lost either. It uses buffers that the layer fills anew.
func (b *moeBuffers) guess(i int) {
	r, c, n := b.r, b.r.m.cfg, b.r.n
	w, early := &r.trunk.layers[i], false
	if w.moe == nil && i+1 < len(r.m.layers) {
		i, early = i+1, true
		w = &r.trunk.layers[i]
		if !r.trunk.here(i) {
			return // its router is not in memory yet
		}
	}
	if w.moe == nil || !b.feed.Streams() || !b.feed.Ahead(i, early) {
		return
	}
	// What the router will read, without the attention's part of it.
	r.mixRows(r.h, w.mlpRes, 0, n)
	r.normRows(r.x, r.h, w.mlpNorm, n)
	b.logits = sized(b.logits, n*c.Experts)
	b.score = sized(b.score, c.Experts)
	r.pool.MatMul(b.logits, &w.moe.router, r.x, n)
	if n == 1 {
		b.rank(w.moe)
	} else {
		b.vote(w.moe)
	}
	b.feed.Guess(i, n, early, b.likely)
}

// rank lists the experts of one row by the router's order, half as many again as
// it will choose.
func (b *moeBuffers) rank(w *moeWeights) {
	r, c := b.r, b.r.m.cfg
	var ids [maxTopK]int32
	k := min(c.TopK+c.TopK/2, maxTopK, c.Experts)
	r.pool.Sigmoid(b.score, b.logits)
	kernel.TopK(ids[:k], b.score, w.bias)
	b.likely = b.likely[:0]
	for _, e := range ids[:k] {
		b.likely = append(b.likely, Want{e, 1})
	}
}

// vote lists the experts by how many rows would choose them.
func (b *moeBuffers) vote(w *moeWeights) {
	r, c := b.r, b.r.m.cfg
	var ids [maxTopK]int32
	if len(b.votes) < c.Experts {
		b.votes = make([]int32, c.Experts)
	}
	clear(b.votes)
	for i := range r.n {
		r.pool.Sigmoid(b.score, b.logits[i*c.Experts:(i+1)*c.Experts])
		kernel.TopK(ids[:c.TopK], b.score, w.bias)
		for _, e := range ids[:c.TopK] {
			b.votes[e]++
		}
	}
	b.likely = b.likely[:0]
	for e, n := range b.votes {
		if n > 0 {
			b.likely = append(b.likely, Want{int32(e), n})
		}
	}
	slices.SortFunc(b.likely, func(x, y Want) int {
		return cmp.Or(cmp.Compare(y.Rows, x.Rows), cmp.Compare(x.Expert, y.Expert))
	})
}

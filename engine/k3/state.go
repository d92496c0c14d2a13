package k3

import (
	"errors"
	"slices"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// A State is one conversation up to a position: all that the model carries from
// token to token (spec 4). It belongs to one Runner call at a time.
type State struct {
	pos    int
	broken bool
	layers []layerState
}

// layerState is the memory of one layer; a KDA layer has s and conv, an MLA layer
// has latent.
type layerState struct {
	// s is the delta-rule state, [KDAHeads][KDAHeadDim key][KDAHeadDim value].
	s []float32
	// conv is the last ConvKernel-1 raw projections, oldest first, of q, k and v:
	// [3][ConvKernel-1][KDAInner].
	conv []float32
	// latent is the cache of MLA, [pos][KVLoRA+QKRope]: the normalised latent,
	// then the key part shared by all heads.
	latent []float32
}

// ErrBroken is returned for a State whose last pass was interrupted between
// layers: some layers have seen a token that others have not. It cannot be
// continued; build it again from the token ids, or from a clone.
var ErrBroken = errors.New("the state was interrupted in the middle of a token and cannot be continued")

// NewState returns the state before the first token.
func (m *Model) NewState() *State {
	c := m.cfg
	st := &State{layers: make([]layerState, c.Layers)}
	for i := range st.layers {
		if !c.MLALayer[i] {
			st.layers[i].s = kernel.Floats(c.KDAHeads * c.KDAHeadDim * c.KDAHeadDim)
			st.layers[i].conv = make([]float32, 3*(c.ConvKernel-1)*c.KDAInner())
		}
	}
	return st
}

// Pos is the number of tokens the state has seen.
func (st *State) Pos() int { return st.pos }

// Broken reports whether the last pass was interrupted; see ErrBroken.
func (st *State) Broken() bool { return st.broken }

// Break marks a state whose content is not to be trusted: it cannot be continued.
func (st *State) Break() { st.broken = true }

// Clone returns an independent copy.
func (st *State) Clone() *State {
	out := &State{pos: st.pos, broken: st.broken, layers: make([]layerState, len(st.layers))}
	for i, l := range st.layers {
		out.layers[i] = layerState{s: slices.Clone(l.s), conv: slices.Clone(l.conv), latent: slices.Clone(l.latent)}
	}
	return out
}

// Bytes is the memory the state holds now.
func (st *State) Bytes() int64 {
	var n int64
	for _, l := range st.layers {
		n += 4 * int64(cap(l.s)+cap(l.conv)+cap(l.latent))
	}
	return n
}

// StateBytes is the memory of a state at a position, without slack for growth.
func StateBytes(c *checkpoint.Config, pos int) int64 {
	kda := int64(c.Layers - c.MLALayers())
	perKDA := c.KDAHeads*c.KDAHeadDim*c.KDAHeadDim + 3*(c.ConvKernel-1)*c.KDAInner()
	return 4 * (kda*int64(perKDA) + int64(c.MLALayers())*int64(pos)*int64(c.KVLoRA+c.QKRope))
}

// grow makes room for n more latent rows of the width. Doubling keeps the copying
// of a long conversation to one pass over it in all.
func (l *layerState) grow(n, width int) []float32 {
	l.latent = slices.Grow(l.latent, n*width)
	at := len(l.latent)
	l.latent = l.latent[:at+n*width]
	return l.latent[at:]
}

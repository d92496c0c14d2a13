package engine

import (
	"slices"

	"deltafin/engine/k3"
)

// A Sequence is one conversation as the model has seen it: token ids, the state
// after them, and the logits of the last one. It belongs to one call at a time.
type Sequence struct {
	model  *k3.Model
	state  *k3.State
	tokens []int
	logits []float32 // [Vocab], of the last token; empty before the first
	ahead  *ahead    // while tokens of a draft pass are told; else nil
}

// NewSequence returns a sequence that has seen nothing.
func (e *Engine) NewSequence() *Sequence {
	return &Sequence{model: e.model, state: e.model.NewState()}
}

// Len is the number of tokens the state has seen.
func (s *Sequence) Len() int { return len(s.tokens) }

// Whole says that the sequence can be continued: nothing interrupted it in the middle
// of a token and its state can be trusted. One that is not is read anew, from its first
// token on, by whoever is given it.
func (s *Sequence) Whole() bool { return !s.state.Broken() }

// Tokens are the ids the state has seen.
func (s *Sequence) Tokens() []int { return slices.Clone(s.tokens) }

// Bytes is the memory the sequence holds.
func (s *Sequence) Bytes() int64 {
	return s.state.Bytes() + 8*int64(cap(s.tokens)) + 4*int64(cap(s.logits))
}

// Clone returns an independent copy: the cheap way to keep a point to come back
// to, since a recurrent state cannot be cut back.
func (s *Sequence) Clone() *Sequence {
	// What cannot be settled is a broken state, and so is its copy.
	_ = s.settle()
	return &Sequence{model: s.model, state: s.state.Clone(), tokens: slices.Clone(s.tokens), logits: slices.Clone(s.logits)}
}

// saw adds a token that the state has seen, and the logits after it.
func (s *Sequence) saw(id int, logits []float32) {
	s.tokens = append(s.tokens, id)
	s.logits = append(s.logits[:0], logits...)
}

// Reset forgets everything.
func (s *Sequence) Reset() {
	s.state = s.model.NewState()
	s.tokens = s.tokens[:0]
	s.logits = s.logits[:0]
}

// reuse returns how many of the ids the sequence has already seen, and starts it
// over when it has seen anything else.
func (s *Sequence) reuse(ids []int) int {
	n := len(s.tokens)
	if !s.state.Broken() && n <= len(ids) && slices.Equal(s.tokens, ids[:n]) && len(s.logits) > 0 {
		return n
	}
	s.Reset()
	return 0
}

// stateBytes is the size of the state after n tokens.
func (e *Engine) stateBytes(n int) int64 { return k3.StateBytes(e.model.Config(), n) }

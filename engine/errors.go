package engine

import (
	"errors"
	"fmt"
)

// Errors a caller decides on; test with errors.Is and errors.As.
var (
	// ErrPause is what Listener.Token returns to stop after the token it was
	// given. Generate then ends with Paused and no error; handing over the same
	// ids and those generated goes on exactly there.
	ErrPause = errors.New("pause after this token")
	// ErrEmptyPrompt: there is nothing to continue.
	ErrEmptyPrompt = errors.New("the prompt is empty: give at least one token")
	// ErrClosed: the engine was closed.
	ErrClosed = errors.New("the engine is closed")
)

// A UsageError is a request that cannot be honoured as it was put.
type UsageError struct {
	Field  string // what was asked for
	Reason string // why it cannot be, with the values
}

// Error names the field and the reason.
func (e *UsageError) Error() string { return e.Field + ": " + e.Reason }

// A ContextError is a sequence longer than the model's context.
type ContextError struct {
	Tokens int // tokens of the prompt
	Limit  int // max_position_embeddings of the model
}

// Error names both numbers.
func (e *ContextError) Error() string {
	return fmt.Sprintf("the prompt has %d tokens, the context of this model is %d: shorten it by at least %d",
		e.Tokens, e.Limit, e.Tokens-e.Limit)
}

// An IDError is a token id that the model does not have.
type IDError struct {
	ID, Position, Vocab int
}

// Error names the id, where it stands, and the range.
func (e *IDError) Error() string {
	return fmt.Sprintf("token id %d at position %d is out of range: this model has ids 0 to %d", e.ID, e.Position, e.Vocab-1)
}

package engine

import (
	"context"
	"errors"
	"fmt"

	"deltafin/engine/sample"
	"deltafin/ssdio"
)

// A MemoryError is experts that were read and checked, and changed in memory
// afterwards. They were thrown out and will be read again. What was generated since
// they changed, which nobody knows, may be wrong.
type MemoryError struct {
	Experts []ssdio.Key
	Err     error // how it was noticed
}

// Error names the first expert and what to do.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%v: %d experts changed in this machine's memory after they had been checked, the first is %s; they were thrown out and will be read again: ask again, and test the memory if this happens twice",
		e.Err, len(e.Experts), e.Experts[0])
}

// Unwrap gives how it was noticed.
func (e *MemoryError) Unwrap() error { return e.Err }

// distrust follows logits that are no numbers: the state that gave them is not
// continued, and the experts in memory are compared with their checksums, since a cache
// of many gigabytes is used for days and memory does change.
func (e *Engine) distrust(ctx context.Context, seq *Sequence, err error) error {
	if !errors.Is(err, sample.ErrNotNumbers) {
		return err
	}
	seq.state.Break()
	if e.stream == nil {
		return err
	}
	if f := e.opts.Notify; f != nil {
		f(Notice{Text: "The model gave no number for the next token. The experts in memory are being compared with their checksums."})
	}
	changed, failed := e.stream.store.Recheck(ctx)
	if len(changed) > 0 {
		err = &MemoryError{Experts: changed, Err: err}
	}
	return errors.Join(err, failed)
}

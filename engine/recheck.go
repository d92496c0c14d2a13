package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"deltafin/engine/sample"
	"deltafin/ssdio"
)

// A MemoryError is weights that were read and checked, and changed in memory
// afterwards. They have been read again, or are when they are needed. What was
// generated since they changed, which nobody knows, may be wrong.
type MemoryError struct {
	Experts []ssdio.Key
	Trunk   []int // layers, counted from 0; their number stands for the output matrix
	Err     error // how it was noticed
}

// What says which weights changed: how many, and the first.
func (e *MemoryError) What() string {
	var all []string
	if n := len(e.Experts); n > 0 {
		all = append(all, fmt.Sprintf("%d experts, first %s", n, e.Experts[0]))
	}
	if n := len(e.Trunk); n > 0 {
		all = append(all, fmt.Sprintf("the trunk of %d layers, first %d", n, e.Trunk[0]))
	}
	return strings.Join(all, "; ")
}

// Error says what changed and what to do.
func (e *MemoryError) Error() string {
	return fmt.Sprintf("%v: weights changed in this machine's memory after they had been checked (%s) and are read again: go on, and test the memory if this happens twice", e.Err, e.What())
}

// Unwrap gives how it was noticed.
func (e *MemoryError) Unwrap() error { return e.Err }

// distrust follows logits that are no numbers: the state that gave them is not
// continued, and the weights in memory are compared with their checksums, since
// hundreds of gigabytes are used for days and memory does change. Weights that are
// mapped have none. The caller computes: nobody else does meanwhile.
func (w *lane) distrust(ctx context.Context, seq *Sequence, err error) error {
	if !errors.Is(err, sample.ErrNotNumbers) {
		return err
	}
	seq.state.Break()
	s := w.e.stream
	if s == nil {
		return err
	}
	if f := w.e.opts.Notify; f != nil {
		f(Notice{Text: "The model gave no number for the next token. The weights in memory are being compared with their checksums."})
	}
	changed := &MemoryError{Err: err}
	var failed, trunkFailed error
	changed.Experts, failed = s.store.Recheck(ctx)
	if s.trunk != nil {
		changed.Trunk, trunkFailed = s.trunk.Recheck(ctx)
	}
	slices.Sort(changed.Trunk)
	if len(changed.Experts)+len(changed.Trunk) > 0 {
		err = changed
	}
	return errors.Join(err, failed, trunkFailed)
}

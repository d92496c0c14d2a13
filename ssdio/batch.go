package ssdio

import (
	"context"
)

// A Class is the right of a read. A drive takes work of a higher class first,
// always; within a class in the order in which it was asked for.
type Class uint8

// The classes, highest right first.
const (
	Demand   Class = iota // the arithmetic waits for it
	Trunk                 // will be needed for certain, soon
	Prefill               // needed, but the prompt's rows hide the wait
	Prefetch              // a guess
	classes  = 4
)

// String names the class.
func (c Class) String() string {
	return [...]string{"demand", "trunk", "prefill", "prefetch"}[c]
}

// A Request asks for one object or a part of it.
type Request struct {
	Key Key
	// From and To bound the part in bytes of the object; both zero: all of it.
	// Blocks that the part covers only in part are read whole, to be checked,
	// and copied from.
	From, To int64
	// Into is where the bytes land. Its length must be that of the part. It
	// belongs to the Set until the result arrives.
	Into Buffer
}

// A Result tells that a request is over. Every request gets exactly one.
type Result struct {
	Index int // of the request in its batch
	Key   Key
	// Into holds the bytes. It is another slot than the request's if the read
	// had to be moved away from a stuck one: always use this one, and give this
	// one back. Its content is undefined if Err is not nil.
	Into Buffer
	// Stuck says that a read may still write into Into at any time: until
	// Set.Close has returned nil it must be neither used nor given back. It
	// happens only for fixed memory or where the spare slots ran out, always
	// with an Err that wraps ErrStuck.
	Stuck bool
	// Arrived is how many bytes of the request had come from drives; less than all
	// of them with an Err, and then for nothing.
	Arrived int64
	// Err is nil, or a *ReadError, or the context's error, or ErrClosed.
	Err error
}

// A Batch is a set of requests that were made together. Its methods may be
// called from any goroutine.
type Batch struct {
	set     *Set
	reqs    []request
	results chan Result
	owned   bool        // results is of this batch alone, and closed after the last
	stop    func() bool // takes the batch off its context
	left    int         // requests without a result; the set's lock guards it
}

// Results gives each result as it lands, in no fixed order, and is closed after
// the last. It has room for all, so nobody waits for a slow reader. It is not for
// batches of ReadTo.
func (b *Batch) Results() <-chan Result { return b.results }

// Wait waits for all requests and returns the results in the order of the
// requests. It must not be mixed with Results.
func (b *Batch) Wait() []Result {
	out := make([]Result, len(b.reqs))
	for r := range b.results {
		out[r.Index] = r
	}
	return out
}

// Err waits for all requests and returns the first error in their order.
func (b *Batch) Err() error {
	for _, r := range b.Wait() {
		if r.Err != nil {
			return r.Err
		}
	}
	return nil
}

// Cancel gives up a request. If nothing of it has started it costs nothing;
// otherwise what is in flight comes back first. Its result carries
// context.Canceled, unless it was complete already.
func (b *Batch) Cancel(i int) { b.set.cancel(&b.reqs[i], context.Canceled) }

// Promote gives a request a higher right, such as when a prefetch turns out to
// be needed. What is in flight goes on; lowering is not done.
func (b *Batch) Promote(i int, c Class) { b.set.promote(&b.reqs[i], c) }

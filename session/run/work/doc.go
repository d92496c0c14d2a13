// Package work drives a run.Runner for somebody who watches: one goroutine
// answers questions one after the other, takes the queue's when it has nothing
// else, and publishes what it does in a mailbox.
//
//	d := work.New(store, runner, work.Options{})
//	err := d.Offer(ctx)                // what an earlier process left unfinished
//	go d.Run(ctx)                      // ends with ctx at once, with d.Stop() after the token in hand
//	queued, err := d.Ask(ctx, work.Question{Text: "Why?"})
//	st := d.State()                    // at any time, from any goroutine, without a lock
//
// # The mailbox
//
// State is a value that never changes once it was published; a newer one replaces
// it. Reading it is one atomic load, so a screen, a socket and a test may look as
// often as they like, and none of them can hold the model up. Only what is in the
// journal gets into a State: the tokens of an answer appear there once they are on
// the disk.
//
// # The order of work
//
// A question that is asked while an answer is under way joins the queue of the
// store. When an answer has ended by itself the next question of the queue follows
// after Options.Gap. What a person paused stays paused, and holds the queue, until
// Resume; so does an answer that an error stopped. Questions that were left in the
// queue by an earlier process wait until Resume or the end of an answer: a start
// begins no work by itself.
//
// # What it never does
//
// It draws nothing and listens nowhere. It keeps no thread locked between answers.
// It loses nothing when it is killed: what it knows is in the store.
package work

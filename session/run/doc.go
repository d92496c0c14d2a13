// Package run joins the threads of package session with the model of package
// engine: it is the one place that knows both. A question goes in, the answer is
// journalled token by token and then published.
//
//	r, err := run.New(store, eng, run.Options{Snapshots: dir})
//	w, err := store.Lock(ctx, thread)
//	res, err := r.Ask(ctx, w, session.NewTurn{Role: session.User, Text: question},
//		run.How{Settings: r.Defaults()}, run.Request{Pause: pause}, run.Listener{Token: show})
//	res, err = r.Continue(ctx, w, 0, run.Request{}, listener) // later, in another process
//
// # The life of an answer
//
//	path of turns -> token ids: those stored are used as they are, so that the
//	     prefix is the same to the bit; only what was never fed is rendered
//	-> the longest prefix there is a state for: the sequence in memory, else the
//	     best snapshot of any thread; the rest is prefilled, pass by pass
//	-> the engine picks a token -> journal (synced) -> published -> fed back
//	-> the answer is finished or paused, its state is kept as a snapshot
//
// # What it promises
//
// Journal before publish: Listener.Token hears of a token only when it is on the
// disk. An answer that was paused, killed or ended by an error goes on to the
// same text: settings and seed are those stored with its turn, and a choice
// depends on logits, seed and position alone.
//
// Snapshots are a cache. One that is missing, damaged or of another model is
// reported, dropped from the books, and the text is read again. A snapshot that
// cannot be written is reported and costs nothing else.
//
// A full disk ends the run with session.ErrFull. What was published is on the
// disk; the token in flight is chosen again, the same, when there is room.
//
// # What it never does
//
// It knows of no screen. It locks no thread by itself, except for questions of
// the queue: who calls holds the Writer, and with it the right to write. It
// deletes no turn.
//
// # Caveats
//
// The instruction about how much to think stands before everything else in the
// prompt. A question with another effort than the one before it therefore makes
// the model read the whole thread again; a notice says so.
//
// A Runner runs one answer at a time; further calls wait for their turn. The
// functions of a Listener are called one at a time, but not always on the
// goroutine of the caller, and must not block for long.
package run

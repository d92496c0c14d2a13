// Package session keeps threads: conversations as trees of turns, with their
// token ids, text, settings, sources, timings and events; the queue of
// questions that wait; and the books of the engine's snapshots. All of it lies
// in one SQLite database.
//
//	s, err := session.Open(ctx, dir, nil)
//	info, err := s.Create(ctx, "", folder)
//	w, err := s.Lock(ctx, info.ID)          // one writer a thread, among all processes
//	w.Append(ctx, "", session.NewTurn{Role: session.User, Text: question})
//	a, err := w.Begin(ctx, session.AnswerOptions{Settings: set, Seed: seed})
//	durable, err := a.Append(ctx, token)    // publish tokens up to durable
//	a.Finish(ctx, session.Outcome{Status: session.Done, Stop: "end"})
//	w.Close()
//
// # What it promises
//
// Journal before publish: a token that Append or the Durable function counted
// is synced to the disk. After kill -9 or a power cut the thread opens with all
// of them; Writer.Recovered says where the answer stood, and Writer.Continue
// goes on there. Tokens slower than twenty a second are synced one by one.
//
// A full disk loses nothing: the call fails with ErrFull, what was not yet
// written stays in memory, and the next call tries again.
//
// Nothing is deleted before GC, and GC takes only threads that were put in the
// trash and snapshots that no branch reaches. Fork, Edit, Regenerate, Undo and
// Redo only add turns and move branches.
//
// Damage is found, not passed on: every turn and every journal record carries a
// checksum. A damaged turn leaves the others readable.
//
// # What it never does
//
// It never sees a tensor, an engine or a screen. It orders and expires nothing
// by the wall clock, except that a held question waits for one. It never
// changes a file that a newer program wrote.
//
// # Caveats
//
// The folder must be on a local file system: locks over a network are only as
// good as the network's. Other SQLite programs may read the file; to change it
// with them risks the checksums and the index of words.
//
// The format of the file is told by schema.go and tokens.go; the choice of the
// driver by STORE.md.
package session

// Package lookup proposes how a text goes on by looking up where its end stood before.
// It owns an index over the token ids of one conversation; what it proposes is copied
// from there and is a guess, to be verified by whoever takes it.
//
//	x := lookup.New(1 << 18)
//	x.Add(prompt...)
//	for {
//		draft, match := x.Propose(draft[:0], 8) // match: how many tokens agree
//		...
//		x.Add(id)                               // what the next token really was
//	}
//
// Texts about a source repeat it: names, figures, quotations, code with a change in
// it. The longer the end of the text agrees with an earlier place, the likelier the
// next token agrees too, so the longest match wins, and among equals the latest.
//
// # Cost
//
// A token is added in constant time, and a proposal looks at a bounded number of
// places. Memory is bounded too: of a text longer than the limit the latest tokens
// are known. Whoever finds nothing has spent well under a millisecond.
//
// # What it never does
//
// It knows nothing of models, and does not learn how often it is right: that is the
// caller's to measure, by match length.
package lookup

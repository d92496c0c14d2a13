// Package expert keeps the routed experts of a model that is larger than memory:
// which of them are in memory, which are being read, which are thrown out for
// which. It owns the slots, the cache policy, the reads and the counters; it does
// no arithmetic and knows of no router.
//
//	cat, err := expert.NewCatalog(ck)          // where every expert lies, what it is
//	store, err := expert.NewStore(cat, set, layout, expert.Options{Budget: 32 << 30, Drives: 4})
//	turn := store.NewTurn(nil)             // one user; several share the cache and the reads
//	turn.Guess(layer, rows, false, likely) // before the router of the layer has spoken
//	err = turn.Begin(ctx, layer, want)     // misses go out as reads at once
//	for {
//		i, data, ok, err := turn.Next(true)    // hits first, then as they land
//		if err != nil || !ok { break }
//		w, err := cat.Matrices(layer, int(want[i].Expert), data)
//		...                                    // compute
//		turn.Done(i)
//	}
//	turn.End()
//
// # Slots
//
// One expert lies in one slot of an arena outside the Go heap. An expert is
// absent, being read, ready, or in use; only ready ones are handed out, and one
// that is needed by the open layer is never thrown out before it was used. As
// many slots as a token needs in one layer are kept free of cached experts, so
// that all reads of a layer can be in flight at once; what remains is the cache.
// A layer of a prompt may need more experts than there are slots: then the next
// read goes out whenever a slot is given back, and each expert is still read once.
//
// # Which experts stay
//
// Policy counts every expert's uses, cached or not, and lets them decay. A
// newcomer stays only if it was used more, before now, than the least used
// expert that is cached. Least recently used, the usual choice, gives no hit at
// all if the cache is smaller than one token's experts: each layer throws out
// what the next token needs first.
//
// Replay runs policies over recorded routing (ReadTrace), so that a change of the
// policy is argued with hit rates.
//
// # Reading ahead
//
// A guess of what a layer will need is read while the drives have nothing else to
// do: as many experts as they carry in the time that usually passes until the
// router speaks, in slots that no cached expert has, with the least right of all
// reads. How likely a candidate is right is learnt per layer and class of
// candidate, from guesses that nothing was read for as well. What a wrong one cost
// is charged to a credit that only useful bytes fill, so that waste stays below a
// few percent whatever the guesses are worth; a layer whose guesses are worth
// nothing is left alone, but for a look now and then. A wrong guess that was read
// may stay in the cache, if it is warm enough.
//
// # Size and heat
//
// Store.Resize makes the cache smaller or larger while it is used (resize.go): the
// coldest experts go, and their memory goes back to the system. Heat is what Policy
// has counted, as a file between runs (heat.go): a cache that starts with it knows
// from the first token what deserves to stay.
//
// # Exactness
//
// Order of arrival, size of the cache and company change when an expert is handed
// out, never its bytes: what a drive returned was checked by package ssdio, and
// what failed the check is an Error. Whoever sums expert outputs must do so in an
// order of its own.
//
// # Several turns
//
// A Turn is one user with one layer open at a time. Turns share slots, cache and
// reads: what one has asked for serves the other, and a read is cancelled when
// nobody waits for it any more. Turn.Next runs its wait inside a function of the
// caller, who can let somebody else compute meanwhile.
package expert

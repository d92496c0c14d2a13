// Package expert keeps the routed experts of a model that is larger than memory:
// which of them are in memory, which are being read, which are thrown out for
// which. It owns the slots, the cache policy, the reads and the counters; it does
// no arithmetic and knows of no router.
//
//	cat, err := expert.NewCatalog(ck)          // where every expert lies, what it is
//	store, err := expert.NewStore(cat, set, layout, expert.Options{Budget: 32 << 30, Drives: 4})
//	err = store.Begin(ctx, layer, want)        // misses go out as reads at once
//	for {
//		i, data, ok, err := store.Next(true)   // hits first, then as they land
//		if err != nil || !ok { break }
//		w, err := cat.Matrices(layer, int(want[i].Expert), data)
//		...                                    // compute
//		store.Done(i)
//	}
//	store.End()
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
// # Exactness
//
// Order of arrival, size of the cache and company change when an expert is handed
// out, never its bytes: what a drive returned was checked by package ssdio, and
// what failed the check is an Error. Whoever sums expert outputs must do so in an
// order of its own.
//
// # Caveats
//
// A Store serves one layer at a time and one goroutine, apart from Stats. It
// issues no read before it is asked, so in its counters InTime and Late stay
// zero and every wait is for a missed expert.
package expert

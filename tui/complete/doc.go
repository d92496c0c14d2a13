// Package complete lists the paths that an unfinished one may become.
//
//	dir, base := complete.Split("docs/re")
//	l, err := complete.List(ctx, dir)         // may wait for the disk
//	names := l.Match(base)                    // never does
//
// A listing is bounded: Most entries, and what comes within Limit. What it did not
// get to it says (Listing.Partial), so that nobody takes a slow disk for an empty
// folder.
//
// What the package never does: it follows no link into a folder, opens no file and
// starts nothing.
//
// Caveats: a disk that does not answer at all holds List up for as long as the
// system does; call it where that hurts nobody.
package complete

// Package overlay draws what lies over the screen for a moment: lists to choose
// from (commands, help, threads) and a line to fill in (a title, a path).
//
//	l := overlay.List{Title: "commands", Items: items}
//	done, chosen := l.Key("enter", "")
//	lines := l.Draw(look, 60, 12) // exactly 12 lines of 60 cells
//
// An overlay takes every key while it is open; Escape closes it and does nothing
// else.
//
// What the package never does: it performs nothing. What was chosen is the caller's
// to do.
//
// Caveats: the filter matches letters in their order, whatever lies between.
package overlay

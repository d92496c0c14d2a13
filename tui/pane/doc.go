// Package pane draws the panels beside the text: drives, prefetch, experts, the
// token in hand, speed, queue and threads.
//
//	for _, p := range pane.All() {
//		lines := p.Draw(look, &sample, 42, 8, false) // exactly 8 lines of 42 cells
//	}
//
// A panel is a pure function of the theme, a Sample and a rectangle. Its title
// carries the answer in one line, its scales are fixed, and what is not known is
// said in words: a panel draws no zero for a value it does not have. At rest the
// figures are those of the end of the work, in grey.
//
// What the package never does: it keeps no state, starts nothing, asks nobody.
// The Sample is filled in by the backend of package tui.
//
// Caveats: text of a Sample (names, questions) is cleaned here, so it may come from
// anywhere.
package pane

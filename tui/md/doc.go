// Package md draws Markdown that is still being written.
//
// A [Doc] takes source as it arrives ([Doc.Append]) and gives rows of at most the
// set width ([Doc.Slice], [Doc.Tail]). The source is divided, line by line, into
// top-level blocks; goldmark parses a block, chroma colours its code, the layout
// is ours. A block that a following line has closed never changes again: its rows
// are the stable prefix, kept until the width changes, and a token costs the
// layout of the open block only. Division looks at lines from the top alone, so a
// text that came byte by byte gives the same rows as the same text in one piece.
//
// Blocks are laid out when their rows are asked for. Tail works from the end and
// Slice from the beginning, so that opening a long text at either end costs one
// screen. Rows lays everything out, without colours; [Doc.Estimate] does not.
// Code is coloured once its block is closed and visible.
//
// Every row knows its block, and a block its source: what is copied is what was
// written, not what was drawn.
//
// Nothing in the source reaches the terminal as a control: text.Clean goes over
// every piece. HTML is shown as text. Links show their text and, dimmed, where
// they lead.
//
// What the package never does: it starts nothing, reads nothing, keeps nothing
// outside a Doc. A Doc belongs to one goroutine.
//
// Caveats: reference links resolve only within the block that defines them, for
// a definition at the end would change rows above it. Footnotes are not known.
// Where only the inside of a list tells whether a paragraph is open (an empty item
// or a fence left by an unindented line) and around HTML that has no blank line
// behind it, division may differ from CommonMark: a blank row or a number more.
// chroma reads the definitions of all its languages when the program starts, about
// 11 ms; they are private to its one package of lexers, so that none can be had alone.
// A list is one block however long, laid out again for each piece that is drawn
// while it grows.
package md

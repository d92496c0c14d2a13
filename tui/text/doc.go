// Package text is the only place of the screen that measures, cuts, pads, wraps
// and sanitises text.
//
// The unit is the cell. A string is a sequence of grapheme clusters, and a
// cluster takes 0, 1 or 2 cells as x/ansi counts them, which is also how the
// renderer below the screen cuts its lines: two opinions about width would tear
// a frame. Escape sequences that select graphic rendition (colours, bold) take
// no cells and survive cutting.
//
// Text that the program did not write itself (model output, file names, titles,
// errors of the system) goes through [Clean] before anything else: what would
// steer a terminal then stands there as letters. The other functions trust their
// input to hold no escape sequences but colours.
//
// Right-to-left text is kept in its logical order and measured cluster by
// cluster; putting it in visual order is the terminal's work. Override and
// isolate characters, which can make a line read differently from what it says,
// are made visible.
//
// What the package never does: it keeps no state, starts nothing, and knows no
// theme.
//
// Caveats: a terminal whose font or tables disagree about the width of a new
// emoji shows that line shifted; no program can learn that without asking the
// terminal for every cluster. A cluster wider than the room it is given (a wide
// letter in one column) is left out.
package text

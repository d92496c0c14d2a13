// Package chart turns numbers into cells: sparklines, gauges, strips, plots and
// heat maps, all pure functions.
//
// Each takes the theme (its glyph set decides how fine the picture is, its
// colours only add to it), the numbers, and the room, and returns a line or lines
// of exactly that width. Scales are fixed by the caller, never fitted to the data:
// four drives side by side can be compared, and a panel does not jump when a value
// does.
//
// NaN means "no value": it is drawn as a gap, which a zero is not. Before there is
// any value the caller shows [Empty] with words of its own. Negative values count
// as zero, values above the scale fill it.
//
// What the package never does: it keeps no history, samples nothing, and does not
// put numbers into words; the value beside a picture is the caller's.
package chart

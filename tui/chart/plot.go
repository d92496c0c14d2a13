package chart

import (
	"math"
	"strings"

	"deltafin/tui/theme"
)

// Plot draws values over h rows of w cells on a scale from 0 to top, the newest
// at the right. Where there are more values than columns, each column shows the
// span from its least to its greatest: a short stall stays visible however long
// the history. With braille a cell holds two columns of four dots, otherwise one
// column of steps. Columns without a value are blank.
func Plot(t *theme.Theme, values []float64, w, h int, top float64) []string {
	if w <= 0 || h <= 0 {
		return nil
	}
	if t.Glyphs.Dots {
		return dots(values, w, h, top)
	}
	return columns(t.Glyphs, values, w, h, top)
}

// span returns the least and the greatest share of column c among n, or NaN. With
// fewer values than columns a value takes one column and the left stays empty.
func span(values []float64, c, n int, top float64) (lo, hi float64) {
	lo, hi = math.NaN(), math.NaN()
	from, to := 0, 0
	if len(values) <= n {
		from = c - (n - len(values))
		to = from + 1
		if from < 0 {
			return lo, hi
		}
	} else {
		from, to = c*len(values)/n, (c+1)*len(values)/n
	}
	for _, v := range values[from:to] {
		f := share(v, top)
		if math.IsNaN(f) {
			continue
		}
		if !(lo <= f) {
			lo = f
		}
		if !(hi >= f) {
			hi = f
		}
	}
	return lo, hi
}

// The bits of the dots of a braille cell, [row][column] (Unicode 10.0, chapter
// 21.1).
var dotBits = [4][2]rune{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

func dots(values []float64, w, h int, top float64) []string {
	cells := make([]rune, w*h)
	height := 4 * h
	for c := range 2 * w {
		lo, hi := span(values, c, 2*w, top)
		if math.IsNaN(lo) {
			continue
		}
		a, b := dotRow(lo, height), dotRow(hi, height)
		for y := a; y <= b; y++ {
			row := height - 1 - y
			cells[row/4*w+c/2] |= dotBits[row%4][c%2]
		}
	}
	out := make([]string, h)
	for r := range out {
		var b strings.Builder
		for _, bits := range cells[r*w : (r+1)*w] {
			if bits == 0 {
				b.WriteByte(' ')
				continue
			}
			b.WriteRune(0x2800 + bits)
		}
		out[r] = b.String()
	}
	return out
}

// dotRow returns the row of dots, counted from the bottom, of a share.
func dotRow(f float64, height int) int {
	return min(int(math.Round(f*float64(height-1))), height-1)
}

// columns fills each column up to its greatest value; the part above its least is
// lighter where the set has shades to tell it by.
func columns(g *theme.Glyphs, values []float64, w, h int, top float64) []string {
	n := len(g.Steps)
	grid := make([]string, w*h)
	for i := range grid {
		grid[i] = " "
	}
	light := g.Shades[len(g.Shades)/2]
	for c := range w {
		lo, hi := span(values, c, w, top)
		if math.IsNaN(hi) || hi <= 0 {
			continue
		}
		full := level(hi, n*h)
		least := 0
		if lo > 0 {
			least = level(lo, n*h)
		}
		for r := range h {
			at := r * n // steps below this row
			cell := &grid[(h-1-r)*w+c]
			switch {
			case full <= at:
			case full < at+n:
				*cell = g.Steps[full-at-1]
			case least < at+n:
				*cell = light
			default:
				*cell = g.Steps[n-1]
			}
		}
	}
	out := make([]string, h)
	for r := range out {
		out[r] = strings.Join(grid[r*w:(r+1)*w], "")
	}
	return out
}

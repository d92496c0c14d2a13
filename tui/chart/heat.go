package chart

import (
	"math"
	"strings"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// HeatStrip draws values from left to right over w cells, each cell the greatest
// of those it stands for, as shades on a scale from 0 to top. It shows which layer
// of a token took the time.
func HeatStrip(t *theme.Theme, values []float64, w int, top float64) string {
	if w <= 0 {
		return ""
	}
	var b strings.Builder
	n := min(len(values), w)
	for c := range n {
		worst := math.NaN()
		for _, v := range values[c*len(values)/n : (c+1)*len(values)/n] {
			if f := share(v, top); !(worst >= f) {
				worst = f
			}
		}
		shade(&b, t, worst)
	}
	return b.String() + text.Spaces(w-n)
}

// HeatMap draws rows of shares from 0 to 1 over h lines of w cells: layers from
// top to bottom, a layer's parts from left to right. Where there are more rows or
// columns than room, a cell is the mean of those it stands for; less data than
// room leaves the rest blank. NaN is a blank, unlike the lowest shade only where
// the rest of the row shows it: say it in words as well.
func HeatMap(t *theme.Theme, rows [][]float64, w, h int) []string {
	if w <= 0 || h <= 0 {
		return nil
	}
	out := make([]string, h)
	lines := min(len(rows), h)
	for y := range out {
		if y >= lines {
			out[y] = text.Spaces(w)
			continue
		}
		group := rows[y*len(rows)/lines : (y+1)*len(rows)/lines]
		width := 0
		for _, r := range group {
			width = max(width, len(r))
		}
		n := min(width, w)
		var b strings.Builder
		for x := range n {
			shade(&b, t, mean(group, x, n, width))
		}
		out[y] = b.String() + text.Spaces(w-n)
	}
	return out
}

// mean returns the mean share of column x of n over rows of up to width values.
func mean(rows [][]float64, x, n, width int) float64 {
	sum, count := 0.0, 0
	for _, r := range rows {
		for i := x * width / n; i < (x+1)*width/n && i < len(r); i++ {
			if f := share(r[i], 1); !math.IsNaN(f) {
				sum += f
				count++
			}
		}
	}
	if count == 0 {
		return math.NaN()
	}
	return sum / float64(count)
}

// shade appends the glyph of a share: the first shade is 0 alone, the others
// divide the rest evenly.
func shade(b *strings.Builder, t *theme.Theme, f float64) {
	shades := t.Glyphs.Shades
	if !(f > 0) {
		b.WriteString(shades[0])
		return
	}
	style := t.Heat[level(f, len(t.Heat))-1]
	b.WriteString(style.Render(shades[level(f, len(shades)-1)]))
}

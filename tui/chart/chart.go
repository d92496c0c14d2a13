package chart

import (
	"math"
	"strings"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// Empty returns w cells that say why there is no picture.
func Empty(t *theme.Theme, words string, w int) string {
	return t.Dim.Render(text.Pad(text.CleanLine(words), w))
}

// Sparkline draws the last w values, one a cell, newest at the right, on a scale
// from 0 to top. A value above 0 is always seen; a 0 is a blank, a NaN a blank
// too. Fewer values than cells leave the left blank.
func Sparkline(t *theme.Theme, values []float64, w int, top float64) string {
	if w <= 0 {
		return ""
	}
	if len(values) > w {
		values = values[len(values)-w:]
	}
	var b strings.Builder
	b.WriteString(text.Spaces(w - len(values)))
	steps := t.Glyphs.Steps
	for _, v := range values {
		f := share(v, top)
		if !(f > 0) {
			b.WriteByte(' ')
			continue
		}
		b.WriteString(steps[level(f, len(steps))-1])
	}
	return b.String()
}

// share returns v/top limited to 0..1, NaN where there is no value or no scale.
func share(v, top float64) float64 {
	if math.IsNaN(v) || math.IsNaN(top) || top <= 0 {
		return math.NaN()
	}
	if math.IsInf(v, 1) {
		return 1
	}
	return min(max(v/top, 0), 1)
}

// level returns which of n levels (1..n) a share above 0 reaches, rounding up so
// that a small value does not vanish.
func level(f float64, n int) int {
	return min(max(int(math.Ceil(f*float64(n)-1e-9)), 1), n)
}

// Bar draws a gauge of w cells filled to a share of 0 to 1, in eighths of a cell
// where the glyph set has them. It is full only at 1 and empty only at 0: the
// first and the last step are seen. NaN is an empty gauge.
func Bar(t *theme.Theme, f float64, w int) string {
	if w <= 0 {
		return ""
	}
	g := t.Glyphs
	n := len(g.Eighths)
	f = share(f, 1)
	filled := 0
	if f > 0 {
		filled = min(int(math.Round(f*float64(w*n))), w*n)
		filled = max(filled, 1)
		if f < 1 && filled == w*n {
			filled--
		}
	}
	var b strings.Builder
	b.WriteString(strings.Repeat(g.Eighths[n-1], filled/n))
	used := filled / n
	if part := filled % n; part > 0 {
		b.WriteString(g.Eighths[part-1])
		used++
	}
	return b.String() + t.Border.Render(strings.Repeat(g.Empty, w-used))
}

// A Part is one share of a strip.
type Part struct {
	// Value is any number of the same unit as the other parts'.
	Value float64
	// Letter tells the part apart without colour. It must be one cell wide.
	Letter rune
	Style  theme.Style
}

// Strip divides w cells among parts in proportion to their values, each cell
// showing its part's letter. A part above 0 gets at least one cell as long as
// there are cells, taken from the largest. Without any value the strip is blank.
func Strip(t *theme.Theme, parts []Part, w int) string {
	if w <= 0 {
		return ""
	}
	cells := divide(parts, w)
	var b strings.Builder
	used := 0
	for i, n := range cells {
		if n > 0 {
			b.WriteString(parts[i].Style.Render(strings.Repeat(string(parts[i].Letter), n)))
			used += n
		}
	}
	return b.String() + t.Border.Render(strings.Repeat(t.Glyphs.Empty, w-used))
}

// divide gives each part its cells by largest remainder: the sum is exactly w,
// or 0 if there is nothing to divide.
func divide(parts []Part, w int) []int {
	cells := make([]int, len(parts))
	rest := make([]float64, len(parts))
	sum, top := 0.0, 0.0
	value := func(i int) float64 {
		v := parts[i].Value
		if !(v > 0) || math.IsInf(v, 0) {
			return 0
		}
		return v
	}
	for i := range parts {
		top = max(top, value(i))
	}
	if top == 0 {
		return cells
	}
	// Divided by the largest first: the sum of huge values stays finite.
	for i := range parts {
		sum += value(i) / top
	}
	used := 0
	for i := range parts {
		exact := value(i) / top / sum * float64(w)
		cells[i] = int(exact)
		rest[i] = exact - float64(cells[i])
		used += cells[i]
	}
	for ; used < w; used++ {
		best := 0
		for i := range rest {
			if rest[i] > rest[best] {
				best = i
			}
		}
		cells[best]++
		rest[best] = -1
	}
	for i := range parts {
		if value(i) > 0 && cells[i] == 0 {
			big := 0
			for j := range cells {
				if cells[j] > cells[big] {
					big = j
				}
			}
			if cells[big] > 1 {
				cells[big]--
				cells[i]++
			}
		}
	}
	return cells
}

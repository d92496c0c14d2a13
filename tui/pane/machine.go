package pane

import (
	"fmt"
	"math"

	"deltafin/tui/chart"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// Totals returns what all drives give now and could give, in bytes a second.
func (s *Sample) Totals() (now, ceiling float64) {
	for i := range s.Drives {
		now += s.Drives[i].Now
		ceiling += s.Drives[i].Ceiling
	}
	return now, ceiling
}

func drivesTitle(s *Sample) string {
	if len(s.Drives) == 0 {
		return ""
	}
	if s.AtRest() {
		return "idle"
	}
	now, ceiling := s.Totals()
	u := UnitFor(Fastest(s.Drives))
	if ceiling <= 0 {
		return u.Of(now) + " " + u.Name + "/s"
	}
	return fmt.Sprintf("%s %s/s  %s of ceiling", u.Of(now), u.Name, Percent(now/ceiling))
}

// drivesLines gives each drive a line on the scale of the fastest, so that four
// drives compare. Where they are too many, those that fit are shown and the rest
// is counted.
func drivesLines(t *theme.Theme, s *Sample, w, h int) []string {
	if len(s.Drives) == 0 && s.opening() {
		return []string{chart.Empty(t, "no model is open", w)}
	}
	if len(s.Drives) == 0 {
		return []string{chart.Empty(t, "nothing is read from drives here", w)}
	}
	rows, c := len(s.Drives), columnsFor(s.Drives, w)
	if rows > h {
		rows = max(0, h-1) // the last row counts the others
	}
	var out []string
	var sum Drive // the slowest p99 and its depth, and what all have met
	for i := range s.Drives {
		d := &s.Drives[i]
		sum.Errors += d.Errors
		sum.Retries += d.Retries
		if d.P99 > sum.P99 {
			sum.P99, sum.Depth = d.P99, d.Depth
		}
		if i < rows {
			out = append(out, c.line(t, d, w))
		}
	}
	if rows < len(s.Drives) {
		return append(out, fmt.Sprintf("and %d more drives  errors %d", len(s.Drives)-rows, sum.Errors))
	}
	if rows == h {
		return out // the drives themselves say more than what they have in common
	}
	if c.full && h >= rows+2 {
		out = append([]string{c.head(w)}, out...)
	}
	if room := h - len(out) - 2; room >= 3 {
		if sum, top := together(s.Drives); len(sum) > 60 {
			out = append(out, text.Elide(fmt.Sprintf("all drives, 0 to %s %s/s, last %d min", c.u.Of(top), c.u.Name, (len(sum)+59)/60), w, t.Glyphs.Ellipsis))
			out = append(out, chart.Plot(t, sum, w, min(room, 8), top)...)
		}
	}
	last := fitting(w, "p99 "+millis(sum.P99)+" ms", "errors "+Count(sum.Errors), "mended "+Count(sum.Retries), fmt.Sprint("depth ", sum.Depth))
	if c.full && !c.warm {
		last = fitting(w, last, "temperature not known")
	}
	return append(out, last)
}

// fitting joins those parts from the first on that fit in w cells.
func fitting(w int, parts ...string) string {
	out := text.Cut(parts[0], w)
	for _, p := range parts[1:] {
		if text.Width(out)+2+text.Width(p) > w {
			break
		}
		out += "  " + p
	}
	return out
}

// together adds up the drives' histories, the newest values one above the other,
// and their ceilings.
func together(ds []Drive) (sum []float64, top float64) {
	for i := range ds {
		top += ds[i].Ceiling
		h := ds[i].History
		if len(h) > len(sum) {
			sum = append(make([]float64, len(h)-len(sum), len(h)), sum...)
		}
		for j, v := range h {
			if !math.IsNaN(v) {
				sum[len(sum)-len(h)+j] += v
			}
		}
	}
	if top <= 0 {
		top = 1e9
	}
	return sum, top
}

// Fastest is the highest ceiling, 0 if none is known.
func Fastest(ds []Drive) (top float64) {
	for i := range ds {
		top = max(top, ds[i].Ceiling)
	}
	return top
}

func prefetchTitle(s *Sample) string {
	if s.Prefetch.Uses() == 0 {
		return ""
	}
	return "hit " + Percent(s.Prefetch.HitRate())
}

func prefetchLines(t *theme.Theme, s *Sample, w, _ int) []string {
	p := s.Prefetch
	if s.inMemory() {
		return []string{chart.Empty(t, "all experts are in memory", w)}
	}
	if p.Uses() == 0 {
		return []string{chart.Empty(t, "waiting for the first token", w)}
	}
	share := func(n int64) string { return Percent(float64(n) / float64(p.Uses())) }
	out := []string{
		chart.Strip(t, []chart.Part{
			{Value: float64(p.Hit), Letter: 'H', Style: t.Series[0]}, {Value: float64(p.InTime), Letter: 'p', Style: t.Series[1]},
			{Value: float64(p.Late), Letter: 'l', Style: t.Series[2]}, {Value: float64(p.Missed), Letter: 'm', Style: t.Series[3]},
		}, w),
		fmt.Sprintf("H cache %s  p in time %s", share(p.Hit), share(p.InTime)),
		fmt.Sprintf("l late %s  m missed %s  unused %s", share(p.Late), share(p.Missed), share(p.Unused)),
	}
	if len(s.Times) > 0 { // it is known per token
		out = append(out, stalls(&p, w))
	}
	return out
}

// stalls says how long tokens wait for drives, and in which layer most.
func stalls(p *Prefetch, w int) string {
	line := fmt.Sprintf("stall %d ms/tok", p.Stall.Milliseconds())
	if p.WorstStall <= 0 {
		return line
	}
	worst := fmt.Sprintf("%d %s ms", p.WorstLayer, millis(p.WorstStall))
	if long := line + "  worst layer " + worst; text.Width(long) <= w {
		return long
	}
	return fitting(w, line, "worst L"+worst)
}

func expertsTitle(s *Sample) string {
	if s.Experts.Budget <= 0 {
		return ""
	}
	u := UnitFor(float64(s.Experts.Budget))
	return fmt.Sprintf("%s / %s %s", u.Of(float64(s.Experts.Held)), u.Of(float64(s.Experts.Budget)), u.Name)
}

func expertsLines(t *theme.Theme, s *Sample, w, h int) []string {
	e := s.Experts
	if s.opening() {
		return []string{chart.Empty(t, "no model is open", w)}
	}
	if e.Budget <= 0 {
		return []string{chart.Empty(t, "all experts are in memory", w)}
	}
	out := []string{chart.Bar(t, float64(e.Held)/float64(e.Budget), w)}
	if room := h - 3; room >= 3 && len(e.Share) > 0 {
		out = append(out, chart.HeatMap(t, e.Share, w, room-1)...)
		out = append(out, text.Elide("layers down, share held across", w, t.Glyphs.Ellipsis))
	}
	held := "held " + Count(int64(e.Count))
	if e.All > 0 {
		held += " of " + Count(int64(e.All))
	}
	last := fmt.Sprintf("evict %.0f/s", e.Evictions)
	if e.Reuse > 0 {
		last += "  newest token reused " + Percent(e.Reuse)
	}
	return append(out, held, last)
}

func tokenTitle(s *Sample) string {
	if s.Token.Took <= 0 {
		return ""
	}
	return Each(s.Token.Took)
}

func tokenLines(t *theme.Theme, s *Sample, w, h int) []string {
	if s.Layers <= 0 {
		return []string{chart.Empty(t, "waiting for the first token", w)}
	}
	at := fmt.Sprintf("layer %d/%d", s.Layer, s.Layers)
	if s.Token.Took > 0 && s.Token.Read+s.Token.Math > 0 {
		at += fmt.Sprintf("  read %s  math %s", Percent(s.Token.Read), Percent(s.Token.Math))
	}
	out := []string{chart.Bar(t, float64(s.Layer)/float64(s.Layers), w), at}
	if h >= 4 && len(s.Token.Stall) > 0 {
		ms, top := make([]float64, len(s.Token.Stall)), 10.0
		for i, d := range s.Token.Stall {
			ms[i] = float64(d.Microseconds()) / 1e3
		}
		out = append(out, "stall by layer, 0 to 10 ms", chart.HeatStrip(t, ms, w, top))
	}
	return out
}

func speedTitle(s *Sample) string {
	if s.Rate <= 0 {
		return ""
	}
	return Speed(s.Rate) + " tok/s"
}

// speedLines shows seconds per token. The scale is the next power of two above
// the slowest, so that it moves seldom.
func speedLines(t *theme.Theme, s *Sample, w, h int) []string {
	if len(s.Times) == 0 {
		return []string{chart.Empty(t, "waiting for the first token", w)}
	}
	times := s.Times[max(0, len(s.Times)-120):]
	v, sum, worst := make([]float64, len(times)), 0.0, 0.0
	for i, d := range times {
		v[i] = d.Seconds()
		sum += v[i]
		worst = max(worst, v[i])
	}
	last := fmt.Sprintf("%.2f s/tok, worst %.2f", sum/float64(len(v)), worst)
	if h < 2 || worst <= 0 {
		return []string{last}
	}
	return append(chart.Plot(t, v, w, h-1, math.Exp2(math.Ceil(math.Log2(worst)))), last)
}

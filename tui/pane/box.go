package pane

import (
	"fmt"
	"math"
	"strings"
	"time"

	humanize "github.com/dustin/go-humanize"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// A Panel is a titled box. Lines draws what is within, w cells wide and at most h
// lines.
type Panel struct {
	Name  string
	Title func(s *Sample) string // the panel's answer, behind its name
	Lines func(t *theme.Theme, s *Sample, w, h int) []string
}

// All returns the panels from top to bottom. The first stays longest when the
// window gets lower.
func All() []Panel {
	return []Panel{
		{"drives", drivesTitle, drivesLines},
		{"prefetch", prefetchTitle, prefetchLines},
		{"experts", expertsTitle, expertsLines},
		{"this token", tokenTitle, tokenLines},
		{"speed", speedTitle, speedLines},
		{"queue", queueTitle, queueLines},
	}
}

// Draw draws a panel as exactly h lines of w cells.
func (p Panel) Draw(t *theme.Theme, s *Sample, w, h int, focused bool) []string {
	var lines []string
	if w >= 6 && h >= 3 { // else there is no room within the frame
		lines = p.Lines(t, s, w-4, h-2)
	}
	if s.AtRest() && p.Name != "queue" {
		for i, l := range lines {
			lines[i] = Freeze(t, l)
		}
	}
	return Box(t, p.Name, p.Title(s), lines, w, h, focused)
}

// Freeze draws a line of figures that no longer move. That a drive is lost stays as
// it is.
func Freeze(t *theme.Theme, line string) string {
	before, behind, lost := strings.Cut(line, lostMark(t))
	if !lost {
		return t.Frozen.Render(text.Plain(line))
	}
	return t.Frozen.Render(text.Plain(before)) + lostMark(t) + t.Frozen.Render(text.Plain(behind))
}

// Box puts lines into a frame with a title, exactly h lines of w cells. A box
// without room for a frame is blank.
func Box(t *theme.Theme, name, answer string, lines []string, w, h int, focused bool) []string {
	if focused {
		return BoxIn(t, t.Accent, name, answer, lines, w, h)
	}
	return BoxIn(t, t.Border, name, answer, lines, w, h)
}

// BoxIn is Box with a frame in a style.
func BoxIn(t *theme.Theme, edge theme.Style, name, answer string, lines []string, w, h int) []string {
	if w < 6 || h < 2 {
		return text.Clamp(nil, max(w, 0), max(h, 0))
	}
	g := t.Glyphs
	title := g.Horizontal + " " + name + " "
	if answer != "" {
		title = g.Horizontal + " " + name + "  " + answer + " "
	}
	title = text.Cut(title, w-2)
	title += strings.Repeat(g.Horizontal, max(0, w-2-text.Width(title)))
	out := make([]string, 0, h)
	out = append(out, edge.Render(g.TopLeft+title+g.TopRight))
	side := edge.Render(g.Vertical)
	for _, l := range text.Clamp(lines, w-4, h-2) {
		out = append(out, side+" "+l+" "+side)
	}
	out = append(out, edge.Render(g.BottomLeft+strings.Repeat(g.Horizontal, w-2)+g.BottomRight))
	return text.Clamp(out, w, h)
}

// Count writes a number with thin groups: 41 203.
func Count(n int64) string {
	return strings.ReplaceAll(humanize.Comma(n), ",", " ")
}

// A Unit is what a panel counts bytes in: one for all its figures, so that they
// compare, chosen by the largest it can show.
type Unit struct {
	Name  string // "GB"
	Bytes float64
}

// UnitFor is GB, unless all a panel can show is smaller.
func UnitFor(top float64) Unit {
	switch {
	case top <= 0 || top >= 1e9:
		return Unit{"GB", 1e9}
	case top >= 1e6:
		return Unit{"MB", 1e6}
	}
	return Unit{"kB", 1e3}
}

// Of writes bytes in the unit, one digit behind the point.
func (u Unit) Of(n float64) string { return fmt.Sprintf("%.1f", n/u.Bytes) }

// Speed writes a rate of tokens with two significant digits.
func Speed(r float64) string {
	switch {
	case r <= 0 || math.IsNaN(r):
		return "--"
	case r < 10:
		return fmt.Sprintf("%.2f", r)
	}
	return fmt.Sprintf("%.0f", r)
}

// Span writes a time in at most two units: 20m41s.
func Span(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// Took writes how long something took that is over, to the tenth if it was short.
func Took(d time.Duration) string {
	if d > 0 && d < 10*time.Second {
		return fmt.Sprintf("%.1fs", max(d.Seconds(), 0.1))
	}
	return Span(d.Round(time.Second))
}

// Each writes the time of one token.
func Each(d time.Duration) string {
	if d < 100*time.Millisecond {
		return millis(d) + " ms"
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// Percent writes a share.
func Percent(f float64) string {
	if math.IsNaN(f) {
		return "--"
	}
	return fmt.Sprintf("%.0f%%", 100*f)
}

package pane

import (
	"fmt"
	"time"

	"deltafin/tui/chart"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// driveColumns is what the lines of the drives have room for.
type driveColumns struct {
	names int     // cells of the name
	top   float64 // bytes a second at the top of the scale
	u     Unit
	share bool // of the ceiling
	full  bool // p99, errors and mended blocks of each drive too
	warm  bool // at least one drive tells its temperature
}

// columnsFor chooses the columns: the picture stays 16 cells wide at least.
func columnsFor(ds []Drive, w int) driveColumns {
	c := driveColumns{names: 3, top: Fastest(ds)}
	ceilings := c.top > 0
	if !ceilings {
		c.top = 1e9
	}
	c.u = UnitFor(c.top)
	for i := range ds {
		c.names = max(c.names, min(text.Width(text.CleanLine(ds[i].Name)), 6, w/4))
		c.warm = c.warm || ds[i].Temperature > 0
	}
	c.full = w >= 56
	c.share = ceilings && (c.full || w >= c.names+16+6+5+5)
	return c
}

// head names the columns.
func (c *driveColumns) head(w int) string {
	tail := text.PadLeft(c.u.Name+"/s", 6)
	if c.share {
		tail += "  max"
	}
	tail += "  p99 ms  err mend"
	if c.warm {
		tail += " temp"
	}
	return text.PadLeft(tail, w)
}

// line draws one drive.
func (c *driveColumns) line(t *theme.Theme, d *Drive, w int) string {
	name := text.Pad(text.CleanLine(d.Name), c.names)
	if d.Lost {
		return name + " " + lostMark(t)
	}
	tail := text.PadLeft(c.u.Of(d.Now), 6)
	if c.share {
		of := "--"
		if d.Ceiling > 0 {
			of = Percent(d.Now / d.Ceiling)
		}
		tail += text.PadLeft(of, 5)
	}
	if c.full {
		tail += text.PadLeft(millis(d.P99), 8) + text.PadLeft(few(d.Errors), 5) + text.PadLeft(few(d.Retries), 5)
	}
	if c.warm {
		degrees := "--"
		if d.Temperature > 0 {
			degrees = fmt.Sprintf("%.0fC", d.Temperature)
		}
		tail += text.PadLeft(degrees, 5)
	}
	room := max(1, w-c.names-text.Width(tail)-1)
	if len(d.History) == 0 {
		return name + " " + text.Pad(chart.Empty(t, "waiting for the first read", room), room) + tail
	}
	return name + " " + chart.Sparkline(t, d.History, room, c.top) + tail
}

// lostMark stands where a lost drive's figures would.
func lostMark(t *theme.Theme) string { return t.Bad.Render("LOST") }

// millis writes a time in milliseconds, "--" for none.
func millis(d time.Duration) string {
	if d <= 0 {
		return "--"
	}
	if d >= 100*time.Millisecond {
		return fmt.Sprintf("%.0f", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.1f", d.Seconds()*1e3)
}

// few writes a count in four cells.
func few(n int64) string {
	if n > 9999 {
		return "10k+"
	}
	return fmt.Sprint(n)
}

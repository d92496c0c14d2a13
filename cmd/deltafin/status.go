package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"
)

// A statusLine shows what is going on: on a terminal one line that is rewritten in
// place, elsewhere a line now and then, so that a log stays readable.
type statusLine struct {
	w     io.Writer
	tty   bool
	shown int // cells of the line on the screen
	begun time.Time
	last  time.Time
	now   func() time.Time
}

const (
	// statusQuiet is how long a piece of work may take before a word is said, on a
	// terminal and in a log.
	statusQuiet, statusQuietLog = 500 * time.Millisecond, 2 * time.Second
	// statusTTY and statusLog are the least times between two updates.
	statusTTY = 100 * time.Millisecond
	statusLog = 10 * time.Second
	// statusWidth is how much of a terminal's line is used: the reference is 80.
	statusWidth = 78
)

func newStatus(s streams) *statusLine {
	l := &statusLine{w: s.err, tty: s.errTTY, now: time.Now}
	l.begun = l.now()
	return l
}

// set shows a text if it is time for one.
func (l *statusLine) set(format string, args ...any) {
	now := l.now()
	quiet, gap := statusQuietLog, statusLog
	if l.tty {
		quiet, gap = statusQuiet, statusTTY
	}
	if now.Sub(l.begun) < quiet || !l.last.IsZero() && now.Sub(l.last) < gap {
		return
	}
	l.last = now
	text := fmt.Sprintf(format, args...)
	if !l.tty {
		fmt.Fprintln(l.w, text)
		return
	}
	text = runewidth.Truncate(printable(text), statusWidth, "…")
	width := runewidth.StringWidth(text)
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(l.shown-width, 0)))
	l.shown = width
}

// clear takes the line off the terminal.
func (l *statusLine) clear() {
	if l.shown > 0 {
		fmt.Fprintf(l.w, "\r%s\r", strings.Repeat(" ", l.shown))
		l.shown = 0
	}
}

// printable makes text of a model safe to print on a terminal: control characters
// are shown, never executed.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case r < 0x20:
			return 0x2400 + r // the control pictures
		case r == 0x7F:
			return 0x2421
		case r >= 0x80 && r < 0xA0: // C1: some terminals take them for escapes
			return 0xFFFD
		}
		return r
	}, s)
}

// duration prints a time for people: two units at most.
func duration(d time.Duration) string {
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < time.Minute:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}

// rate is n per second, 0 when no time has passed.
func rate(n int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}

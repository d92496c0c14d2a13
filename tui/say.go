package tui

import (
	"fmt"
	"strings"
	"time"

	"deltafin/tui/chart"
	"deltafin/tui/pane"
	"deltafin/tui/text"
)

// welcome is what stands where a thread would be.
func (m *model) welcome(w int) []string {
	var s string
	switch m.s.State {
	case pane.Setup:
		s = "No model yet. Give the folder with the model files, or press Enter for the demonstration model, which runs at once.\n\ndeltafin doctor explains what this machine can do."
	case pane.Loading:
		s = fmt.Sprintf("Opening the model: %s, %s so far.", text.CleanLine(m.s.Loading.Step), pane.Span(m.s.Loading.Took))
		return append(text.Wrap(s, max(1, w)), chart.Bar(m.t, m.s.Loading.Share, max(1, min(w, 60))))
	default:
		s = "Nothing asked yet. Type a question; add files with @.\n\nEverything is saved as it is written. Closing the terminal stops nothing."
		if len(m.threads) > 0 {
			s = "A new thread. Type a question; add files with @. f3 opens what was asked before."
		}
	}
	return wrapped(s, w)
}

func wrapped(s string, w int) []string {
	var out []string
	for _, p := range strings.Split(s, "\n") {
		out = append(out, text.Wrap(p, max(1, w))...)
	}
	return out
}

// Notes of a wish that the state says itself once it is fulfilled.
const (
	notePausing  = "stops after this token; ctrl+r goes on"
	noteBreaking = "breaking in after this token"
)

// messages are the lines below the text, w cells wide: how far reading is, what is
// paused, a card, a note. A card that does not fit in room lines goes without its
// frame.
func (m *model) messages(w, room int) []string {
	var out []string
	s := &m.s
	at := pane.Count(int64(len(s.Tokens)))
	switch {
	case s.State == pane.Prefill:
		out = m.reading(w)
	case s.State == pane.Restoring:
		out = []string{"reading the saved state of this thread"}
	case s.State == pane.Saving:
		out = wrapped("saving the state, so that going on needs no reading", w)
	case s.Pausing:
		out = []string{"stops after this token; nothing is lost"}
	case s.State == pane.Paused && s.Notice == "" && m.shownCard() == nil:
		out = wrapped("Paused at token "+at+". ctrl+r goes on; nothing is lost.", w)
	case s.State == pane.Stopped && m.shownCard() == nil:
		out = wrapped("Stopped at token "+at+"; all of it is saved. ctrl+r tries to go on.", w)
	case s.State == pane.Idle && m.shownCard() == nil && m.r.thread != 0 && m.r.thread == s.Thread:
		out = m.ended(w)
	}
	if s.NextIn > 0 && !s.State.Busy() {
		out = append(out, "the next question of the queue begins in "+pane.Span(max(s.NextIn, time.Second)))
	}
	var below []string
	if s.Notice != "" {
		below = append(below, wrapped(text.Clean(s.Notice), w)...)
	}
	if m.note != "" {
		below = append(below, wrapped(text.Clean(m.note), w)...)
	}
	if c := m.shownCard(); c != nil {
		out = append(out, m.card(c, w, room-len(below))...)
	}
	return append(out, below...)
}

// ended sums the newest answer up.
func (m *model) ended(w int) []string {
	s := &m.s
	took := s.Ended.Sub(s.Began)
	if s.Answers == 0 || s.Began.IsZero() || took <= 0 || len(s.Tokens) == 0 {
		return nil
	}
	line := fmt.Sprintf("done: %s tok in %s", pane.Count(int64(len(s.Tokens))), pane.Took(took))
	if s.Rate > 0 {
		line += ", " + pane.Speed(s.Rate) + " tok/s"
	}
	if s.Prefetch.Uses() > 0 {
		line += ", hit " + pane.Percent(s.Prefetch.HitRate())
	}
	return []string{m.t.Dim.Render(text.Elide(line, w, m.t.Glyphs.Ellipsis))}
}

// card draws a card in room lines at most. In a small window the frame goes first,
// then lines from the middle: the title, what to do and the keys stay.
func (m *model) card(c *pane.Card, w, room int) []string {
	style := m.t.Warn
	if c.Grave {
		style = m.t.Bad
	}
	keys := "esc puts this away"
	if len(c.Choices) > 0 {
		var list []string
		for _, k := range c.Choices {
			list = append(list, k.Key+" "+k.Label)
		}
		keys = text.CleanLine(strings.Join(list, "   "))
	}
	title := text.CleanLine(c.Title)
	lines := wrapped(text.Clean(c.Text), w-4)
	lines = append(append(lines, ""), wrapped(keys, w-4)...)
	if len(lines)+2 < room { // one line of the text stays
		return pane.BoxIn(m.t, style, title, "", lines, w, len(lines)+2)
	}
	lines = append(wrapped(text.Clean(c.Text), w), style.Render(text.Elide(keys, w, m.t.Glyphs.Ellipsis)))
	if len(lines) < room {
		lines = append([]string{style.Render(text.Elide(title, w, m.t.Glyphs.Ellipsis))}, lines...)
	}
	if n := len(lines); n > room && room >= 2 {
		lines = append(append(lines[:1:1], m.t.Glyphs.Ellipsis), lines[n-max(room-2, 0):]...)
	}
	return lines
}

// reading shows how far the prompt has been read.
func (m *model) reading(w int) []string {
	r := &m.s.Reading
	bar := func(share float64, tail string) string {
		return chart.Bar(m.t, share, max(1, min(60, w-24-len(tail)))) + " " + tail
	}
	prompt := pane.Count(int64(r.Tokens)) + " tok"
	if r.Reused > 0 {
		prompt += "   reused " + pane.Count(int64(r.Reused)) + " from the saved state"
	}
	out := []string{"reading the prompt", "  prompt      " + prompt,
		"  chunk       " + text.Pad(fmt.Sprintf("%d of %d", r.Pass, r.Passes), 10) + bar(r.Share, pane.Percent(r.Share))}
	if m.s.Layers > 0 {
		out = append(out, "  layer       "+text.Pad(fmt.Sprintf("%d of %d", m.s.Layer, m.s.Layers), 10)+bar(float64(m.s.Layer)/float64(m.s.Layers), ""))
	}
	if r.Rate > 0 {
		out = append(out, "  speed       "+pane.Speed(r.Rate)+" tok/s")
	}
	if r.Left > 0 {
		out = append(out, "  time left   about "+eta(r))
	}
	return append(append(out, ""), wrapped("Safe to close the terminal: the job goes on, reopen with: deltafin attach", w)...)
}

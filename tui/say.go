package tui

import (
	"fmt"
	"strings"

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

// messages are the lines below the text: how far reading is, what is paused, a card,
// a note.
func (m *model) messages(w int) []string {
	var out []string
	switch {
	case m.s.State == pane.Prefill:
		out = m.reading(w)
	case m.s.State == pane.Restoring:
		out = []string{"reading the saved state of this thread"}
	case m.s.State == pane.Saving:
		out = []string{"saving the state, so that going on needs no reading"}
	case m.s.Pausing:
		out = []string{"stops after this token; nothing is lost"}
	case m.s.State == pane.Paused && m.shownCard() == nil:
		out = wrapped(fmt.Sprintf("Paused at token %s. ctrl+r goes on; nothing is lost.", pane.Count(int64(len(m.s.Tokens)))), w)
	case m.s.State == pane.Stopped && m.shownCard() == nil:
		out = wrapped(fmt.Sprintf("Stopped at token %s; all of it is saved. ctrl+r tries to go on.", pane.Count(int64(len(m.s.Tokens)))), w)
	}
	if c := m.shownCard(); c != nil {
		lines := wrapped(text.Clean(c.Text), w-4)
		var keys []string
		for _, k := range c.Choices {
			keys = append(keys, k.Key+" "+k.Label)
		}
		if len(keys) > 0 {
			lines = append(append(lines, ""), wrapped(strings.Join(keys, "   "), w-4)...)
		}
		out = append(out, pane.Box(m.t, text.CleanLine(c.Title), "", lines, w, len(lines)+2, true)...)
	}
	if m.s.Notice != "" {
		out = append(out, wrapped(text.Clean(m.s.Notice), w)...)
	}
	if m.note != "" {
		out = append(out, wrapped(text.Clean(m.note), w)...)
	}
	return out
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

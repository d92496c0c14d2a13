package tui

import (
	"fmt"
	"strings"
	"time"

	"deltafin/tui/pane"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// verb says the state in the header: one or two words, always true.
func verb(s *Sample) string {
	switch {
	case s.Pausing:
		return "PAUSING"
	case s.Verb != "":
		return text.CleanLine(s.Verb)
	case s.State == pane.Loading && s.Loading.Share > 0:
		return "LOADING " + pane.Percent(s.Loading.Share)
	case s.State == pane.Prefill:
		return "PREFILL " + pane.Percent(s.Reading.Share)
	case s.State == pane.Thinking:
		return "THINK " + pane.Speed(s.Rate) + " t/s"
	case s.State == pane.Decoding:
		return "DECODE " + pane.Speed(s.Rate) + " t/s"
	case s.State == pane.Idle && s.Answers > 0:
		if took := s.Ended.Sub(s.Began); took > 0 && !s.Began.IsZero() {
			return "DONE in " + pane.Took(took)
		}
		return "DONE"
	case s.State == "":
		return "IDLE"
	}
	return strings.ToUpper(string(s.State))
}

// verbStyle colours the state: work is as the rest of the header, what waits for the
// user stands out, what is broken most.
func verbStyle(t *theme.Theme, s *Sample) theme.Style {
	switch {
	case s.State == pane.Stopped:
		return t.Bad.With(theme.Bold)
	case s.Pausing, s.State == pane.Paused, s.Verb != "":
		return t.Warn.With(theme.Bold)
	case s.State == pane.Idle && s.Answers > 0:
		return t.Good.With(theme.Bold)
	}
	return t.Heading
}

// A piece is a part of the header at its right.
type piece struct {
	text  string
	style theme.Style
}

// header: the thread at the left, what is being done at the right.
func (m *model) header(w int) string {
	title := text.CleanLine(m.r.title)
	switch {
	case m.r.thread == 0:
		title = "new thread"
	case title == "":
		title = m.r.thread.Short()
	}
	left := " " + title
	if m.r.branch != "" {
		left += " / " + text.CleanLine(m.r.branch)
	}
	pieces := m.headerPieces(w)
	plain := make([]string, len(pieces))
	for i := range pieces {
		plain[i] = pieces[i].text
	}
	right := strings.Join(plain, "   ") + " "
	line := text.Join(left, right, w, m.t.Glyphs.Ellipsis)
	rest, ok := strings.CutSuffix(line, right)
	if !ok { // no room for all of it: the beginning of it, in one style
		return m.t.Heading.Render(line)
	}
	var b strings.Builder
	b.WriteString(m.t.Heading.Render(rest))
	for i := range pieces {
		if i > 0 {
			b.WriteString(m.t.Heading.Render("   "))
		}
		b.WriteString(pieces[i].style.Render(pieces[i].text))
	}
	b.WriteString(m.t.Heading.Render(" "))
	return b.String()
}

// headerPieces are the facts at the right. In a narrow window those that can be read
// elsewhere give way to what is wrong.
func (m *model) headerPieces(w int) []piece {
	s, h := &m.s, m.t.Heading
	var out []piece
	if n := len(s.Queue); n > 0 && (w >= 60 || len(s.Marks) == 0) {
		out = append(out, piece{fmt.Sprintf("q %d", n), h})
	}
	if s.ReadOnly {
		out = append(out, piece{"READ ONLY", m.t.Warn.With(theme.Bold)})
	}
	out = append(out, m.headerMarks(w)...)
	out = append(out, piece{verb(s), verbStyle(m.t, s)})
	if s.State == pane.Prefill && s.Reading.Left > 0 {
		out = append(out, piece{"ETA " + eta(&s.Reading), h})
	} else if n := len(s.Tokens); n > 0 && (w >= 60 || len(s.Marks) == 0) {
		out = append(out, piece{pane.Count(int64(n)) + " tok", h})
	}
	if s.State.Busy() && !s.Began.IsZero() {
		out = append(out, piece{pane.Span(m.now().Sub(s.Began)), h})
	}
	if w >= 110 && s.Context > 0 {
		out = append(out, piece{fmt.Sprintf("ctx %.1fk/%dk", float64(s.Used)/1e3, s.Context/1000), h})
	}
	return out
}

// headerMarks are the conditions that last: all of them in a wide window, else the
// first, what must stay of the others, and their number.
func (m *model) headerMarks(w int) []piece {
	var out []piece
	hidden := 0
	for i, mark := range m.s.Marks {
		word := text.CleanLine(mark.Text)
		if i > 0 && w < 110 {
			if word = mark.Short; word == "" {
				hidden++
				continue
			}
		}
		style := m.t.Warn
		if mark.Bad {
			style = m.t.Bad
		}
		out = append(out, piece{word, style.With(theme.Bold)})
	}
	if hidden > 0 {
		out[0].text += fmt.Sprintf(" +%d", hidden)
	}
	return out
}

// eta writes the time left as a range: 11m (9-14).
func eta(r *pane.Reading) string {
	s := pane.Took(r.Left)
	if r.LeftHigh > r.LeftLow && r.LeftHigh >= 2*time.Minute {
		s = fmt.Sprintf("%.0fm (%.0f-%.0f)", r.Left.Minutes(), r.LeftLow.Minutes(), r.LeftHigh.Minutes())
	}
	return s
}

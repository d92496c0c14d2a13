package pane

import (
	"fmt"

	"deltafin/session"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

func queueTitle(s *Sample) string {
	if len(s.Queue) == 0 {
		return ""
	}
	return fmt.Sprint(len(s.Queue))
}

func queueLines(t *theme.Theme, s *Sample, w, h int) []string { return queueRows(t, s, -1, w, h) }

// Queue draws the queue's panel, focused, with the row chosen marked: exactly h
// lines of w cells.
func Queue(t *theme.Theme, s *Sample, at, w, h int) []string {
	var lines []string
	if w >= 6 && h >= 3 {
		lines = queueRows(t, s, at, w-4, h-2)
	}
	return Box(t, "queue", queueTitle(s), lines, w, h, true)
}

// queueRows lists the questions, those around the row chosen (-1 for none, and then
// from the first on).
func queueRows(t *theme.Theme, s *Sample, at, w, h int) []string {
	n := len(s.Queue)
	if n == 0 {
		return text.Wrap("Questions you send while the model works wait here.", max(w, 1))
	}
	var out []string
	for i := max(0, min(at-h/2, n-h)); i < n; i++ {
		if len(out) >= h {
			if at < 0 {
				out[len(out)-1] = fmt.Sprintf("and %d more", n-i+1)
			}
			break
		}
		q, tail, mark := s.Queue[i], "", ""
		if q.Likely > 0 {
			tail = fmt.Sprintf("~%.0f min", max(1, q.Likely.Minutes()))
		}
		if i == at {
			mark = t.Glyphs.Mark + " "
		}
		row := text.Join(fmt.Sprintf("%s%d %s", mark, i+1, text.CleanLine(q.Text)), tail, w, t.Glyphs.Ellipsis)
		if i == at {
			row = t.Selected.Render(row)
		}
		out = append(out, row)
	}
	return out
}

// Threads draws the list of threads, the row chosen at (-1 for none) marked, that
// of the thread in use with its state.
func Threads(t *theme.Theme, list []session.ThreadInfo, at int, s *Sample, w, h int) []string {
	if len(list) == 0 {
		return text.Wrap("Nothing asked yet. Type a question.", max(w, 1))
	}
	from := max(0, min(at-h/2, len(list)-h))
	var out []string
	for i := from; i < len(list) && len(out) < h; i++ {
		state := string(list[i].Status)
		if list[i].ID == s.Thread && s.State.Busy() {
			state = string(s.State)
		}
		title := text.CleanLine(list[i].Title)
		if title == "" {
			title = list[i].ID.Short()
		}
		row := "  "
		if i == at {
			row = t.Glyphs.Mark + " "
		}
		row = text.Join(row+title, state, w, t.Glyphs.Ellipsis)
		if i == at {
			row = t.Selected.Render(row)
		}
		out = append(out, row)
	}
	return out
}

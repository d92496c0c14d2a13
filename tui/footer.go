package tui

import (
	"slices"
	"strings"

	"deltafin/tui/pane"
)

// A footKey is a key in the footer: what is written, and its place among those that
// stay when there is no room for all.
type footKey struct {
	text string
	rank int
}

// footKeys are the keys that matter now, in the order they are written.
func (m *model) footKeys() []footKey {
	busy, waits := m.s.State.Busy(), m.stands() || m.queueWaits()
	typing := m.in.text != ""
	var out []footKey
	for i := range m.keys {
		k := &m.keys[i]
		switch {
		case k.foot == 0 || !k.fits(busy), k.name == "resume" && !waits, k.name == "queue" && !typing:
			continue
		}
		key, name, rank := k.label(), strings.ReplaceAll(k.name, "-", " "), k.foot
		switch k.name {
		case "resume":
			name = k.help
		case "break-in":
			if typing { // only then there is something to break in with
				rank = 2
			}
		}
		if key, _, _ = strings.Cut(key, ","); k.at >= inPane {
			key = "ctrl+x " + k.lead // its own key works there alone
		}
		out = append(out, footKey{key + " " + name, rank})
		if k.name == "send" && (m.s.State == pane.Setup || m.s.State == pane.Loading) {
			out = append(out, footKey{"ctrl+c quit", 3}) // nothing is there yet to stay for
		}
		if k.name == "commands" {
			out = append(out, footKey{"ctrl+x keys...", 4})
		}
	}
	return out
}

// stands reports whether an answer waits for the user.
func (m *model) stands() bool { return m.s.State == pane.Paused || m.s.State == pane.Stopped }

// queueWaits reports whether questions wait that do not begin by themselves, such as
// those of an earlier run.
func (m *model) queueWaits() bool {
	return m.s.State == pane.Idle && len(m.s.Queue) > 0 && m.s.NextIn == 0 && m.s.Answers == 0
}

// footer names the keys that matter now, as many as fit in w cells.
func (m *model) footer(w int) string {
	if m.focus != "" {
		return m.paneFooter(w)
	}
	keys := m.footKeys()
	order := make([]int, len(keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return keys[a].rank - keys[b].rank })
	shown, n := make([]bool, len(keys)), 0
	for _, i := range order {
		if c := len(keys[i].text) + 2; n+c <= w {
			shown[i], n = true, n+c
		}
	}
	var b strings.Builder
	for i := range keys {
		if shown[i] {
			b.WriteString(" " + keys[i].text + " ")
		}
	}
	return b.String()
}

// paneFooter names the keys of the pane with the focus.
func (m *model) paneFooter(w int) string {
	var b strings.Builder
	b.WriteString(" [" + m.focus + "]  esc input ")
	if m.focus == queuePane { // these two work everywhere, and matter here
		b.WriteString(" ctrl+up/down move ")
	}
	for i := range m.keys {
		k := &m.keys[i]
		if k.at < inPane || !k.at.has(m.focus) {
			continue
		}
		key, _, _ := strings.Cut(k.label(), " (")
		if s := " " + key + " " + k.name + " "; b.Len()+len(s) <= w {
			b.WriteString(s)
		}
	}
	return b.String()
}

// sendHint says at the right of a question's cost what its keys do.
func (m *model) sendHint() string {
	if m.s.State.Busy() {
		return "enter queues  ctrl+s breaks in "
	}
	return "enter sends "
}

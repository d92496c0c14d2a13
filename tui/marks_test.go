package tui

import (
	"strings"
	"testing"

	"deltafin/tui/pane"
	"deltafin/tui/theme"
)

// TestMarksThatStay: what makes a text another one is said at every width, beside
// whatever else has gone wrong.
func TestMarksThatStay(t *testing.T) {
	th, err := theme.New(theme.Mono, theme.NoColour, theme.ASCII())
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(t.Context(), Options{Backend: &still{c: make(chan struct{})}, Theme: th}, nil)
	lost, slow, inexact := pane.Mark{Text: "LOST d1", Bad: true}, pane.Mark{Text: "SLOW d2"}, pane.Mark{Text: "int8 trunk (not exact)", Short: "INEXACT"}
	for _, c := range []struct {
		width int
		marks []pane.Mark
		want  string
	}{
		{120, []pane.Mark{lost, slow, inexact}, "LOST d1|SLOW d2|int8 trunk (not exact)"},
		{80, []pane.Mark{lost, slow, inexact}, "LOST d1 +1|INEXACT"},
		{80, []pane.Mark{lost, inexact}, "LOST d1|INEXACT"},
		{80, []pane.Mark{inexact}, "int8 trunk (not exact)"},
		{80, []pane.Mark{lost, slow}, "LOST d1 +1"},
		{40, nil, ""},
	} {
		m.s.Marks = c.marks
		var got []string
		for _, p := range m.headerMarks(c.width) {
			got = append(got, p.text)
		}
		if s := strings.Join(got, "|"); s != c.want {
			t.Errorf("%d columns, %d marks: %q, want %q", c.width, len(c.marks), s, c.want)
		}
	}
}

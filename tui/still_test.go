package tui_test

import (
	"strings"
	"testing"

	"deltafin/tui"
	"deltafin/tui/tuitest"
)

// TestScrolledUpStandsStill: who has scrolled up reads in peace: text that arrives moves
// nothing, and End shows it.
func TestScrolledUpStandsStill(t *testing.T) {
	s := open(t, "decoding", 80, 20)
	body := func() string { return strings.Join(strings.Split(s.m.View(), "\n")[2:11], "\n") }
	s.press("pgup")
	was := body()
	more := tuitest.Answer
	for range 5 {
		more += "\nAnother line that arrives.\n\n- and an item\n"
		s.f.Set(func(p *tui.Sample) { p.Tokens = tuitest.Tokens(tuitest.Thoughts, more) })
		s.send(tui.TickForTest)
		if got := body(); got != was {
			t.Fatalf("it moved to\n%s\nfrom\n%s", got, was)
		}
	}
	s.press("ctrl+z") // a line below the text takes its last row and moves nothing
	if got := body(); strings.Split(got, "\n")[0] != strings.Split(was, "\n")[0] || !strings.Contains(s.m.View(), "would stop the model") {
		t.Errorf("a note moved it to\n%s\nfrom\n%s", got, was)
	}
	s.press("down", "up")
	if got := body(); got != was {
		t.Errorf("down and up lead to\n%s\nfrom\n%s", got, was)
	}
	s.press("end")
	if v := s.m.View(); !strings.Contains(v, "and an item") {
		t.Errorf("end shows:\n%s", v)
	}
}

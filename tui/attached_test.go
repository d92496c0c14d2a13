package tui_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"deltafin/session"
	"deltafin/tui/tuitest"
)

// TestAttachedFilesAreNamed: a question shows what was typed and which files went
// along; their text, however long, does not push the thread away.
func TestAttachedFilesAreNamed(t *testing.T) {
	s := open(t, "idle", 80, 24)
	list, err := s.f.Threads(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	text := "Where do they differ? @core/*.md"
	var from []session.Source
	for i := range 5 {
		name := fmt.Sprintf("core/part_%d.md", i)
		text += "\n\n--- " + name + " ---\n" + strings.Repeat("a line of the file\n", 200)
		from = append(from, session.Source{Name: name, Kind: "file", Place: name, Bytes: 3800})
	}
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: list[1].ID, Title: "cores", Branch: "main"}, Branches: []session.Branch{{Name: "main", Leaf: 2}},
		Turns: []session.Turn{
			{ID: 1, Role: session.User, Status: session.Done, Created: tuitest.Now, Body: &session.Body{Text: text}, Sources: from},
			{ID: 2, Parent: 1, Role: session.Assistant, Status: session.Done, Created: tuitest.Now, Body: &session.Body{Text: "At the bottom."}}}}
	first, err := s.f.Thread(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	s.f.Put(first, th)
	s.press("f3", "down", "enter")
	v := s.m.View()
	for _, want := range []string{"Where do they differ?", "@ core/part_0.md (3.8 kB)", "@ core/part_2.md (3.8 kB)", "@ 2 more, 19 kB in all", "At the bottom."} {
		if !strings.Contains(v, want) {
			t.Errorf("%q is missing:\n%s", want, v)
		}
	}
	if strings.Contains(v, "a line of the file") {
		t.Errorf("the file is in the thread:\n%s", v)
	}
}

// TestTypedLinesStay: a question shows its lines as they were typed, and code in it
// untouched.
func TestTypedLinesStay(t *testing.T) {
	s := open(t, "idle", 80, 24)
	list, err := s.f.Threads(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	th := &session.Thread{ThreadInfo: session.ThreadInfo{ID: list[1].ID, Title: "lines", Branch: "main"}, Branches: []session.Branch{{Name: "main", Leaf: 1}},
		Turns: []session.Turn{{ID: 1, Role: session.User, Status: session.Done, Created: tuitest.Now, Body: &session.Body{Text: "first\nsecond\n- item\n\n```\na\nb\n```\nlast\nline"}}}}
	first, err := s.f.Thread(t.Context(), list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	s.f.Put(first, th)
	s.press("f3", "down", "enter")
	var rows []string
	for _, r := range strings.Split(ansi.Strip(s.m.View()), "\n")[3:] {
		if r = strings.TrimSpace(r); r != "" {
			rows = append(rows, r)
		}
	}
	if got, want := strings.Join(rows[:7], "|"), "first|second|- item|a|b|last|line"; got != want {
		t.Errorf("shown as %q", got)
	}
}

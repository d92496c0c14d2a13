package main

import (
	"strings"
	"testing"

	"deltafin/session"
	"deltafin/tui"
)

// TestUndoTakesWholeQuestions: a question leaves with its answer and comes back with
// it, as far as there are any; beyond, the refusal says so.
func TestUndoTakesWholeQuestions(t *testing.T) {
	b, ctx := demoBackend(t), t.Context()
	var s tui.Sample
	for i := range 2 {
		if err := b.Ask(ctx, tui.Question{Thread: s.Thread, Text: "hello"}); err != nil {
			t.Fatal(err)
		}
		s = waitFor(t, b, func(s *tui.Sample) bool { return s.Answers == i+1 && !s.State.Busy() })
	}
	for i, c := range []struct {
		redo   bool
		turns  int
		refuse string
	}{
		{false, 2, ""}, {false, 0, ""}, {false, 0, "no question is left"},
		{true, 2, ""}, {true, 4, ""}, {true, 4, "nothing was left out"},
	} {
		do := b.Undo
		if c.redo {
			do = b.Redo
		}
		err := do(ctx, s.Thread, "")
		if c.refuse == "" && err != nil || c.refuse != "" && (err == nil || !strings.Contains(err.Error(), c.refuse)) {
			t.Errorf("step %d: %v", i, err)
		}
		th, err := b.Thread(ctx, s.Thread)
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := th.FindBranch("")
		if err != nil {
			t.Fatal(err)
		}
		if path := th.Path(leaf.Leaf); len(path) != c.turns || len(path) > 0 && path[len(path)-1].Role != session.Assistant {
			t.Errorf("step %d leaves %d turns, want %d", i, len(path), c.turns)
		}
	}
}

package main

import (
	"strings"
	"testing"
)

// TestPipesHaveNoEscapes: what is not a terminal gets text alone, on both streams.
func TestPipesHaveNoEscapes(t *testing.T) {
	for _, args := range [][]string{
		{"ask", "--greedy", "--effort", "low", "hello"}, {"sessions"}, {"status"}, {"keys"}, {"doctor"}, {"--help"}, {"nothing"},
	} {
		_, out, errs := program(t, "", args...)
		if out+errs == "" || strings.Contains(out, "\x1b") || strings.Contains(errs, "\x1b") {
			t.Errorf("%v: %q, %q", args, out, errs)
		}
	}
}

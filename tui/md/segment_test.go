package md

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestDivisionOfShuffledLines: lines that open, close and continue blocks, in any
// order, give the same rows divided as parsed whole. Left out are lines after
// which only the inside of a list tells whether a paragraph is open: empty items,
// code and fences within an item that an unindented line then leaves.
func TestDivisionOfShuffledLines(t *testing.T) {
	lines := []string{
		"", "", "", "text", "  text two", "    four", "\ttab", "- item", "  - nested", "+ plus", "* star",
		"1. one", "2. two", "3) three", "> quote", ">", "> - item", "```", "```go", "~~~",
		"# heading", "***", "| a | b |", "|---|---|", "<!-- c", "-->", "<pre>", "</pre>",
		"<?php", "?>", "      six", "   three", "10. ten", "* * *", "`code", "**b",
	}
	th := mono(t)
	bad := 0
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 7))
		pick := make([]string, 2+r.IntN(9))
		for i := range pick {
			pick[i] = lines[r.IntN(len(lines))]
		}
		src := strings.Join(pick, "\n")
		got, want := all(Parse(src, Options{Theme: th, Width: 60})), whole(src, th, 60)
		if !slices.Equal(got, want) {
			if bad++; bad < 6 {
				t.Errorf("%q:\n got %q\nwant %q", src, got, want)
			}
		}
	}
	if bad > 0 {
		t.Errorf("%d documents differ", bad)
	}
}

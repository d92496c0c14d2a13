package memory

import (
	"fmt"
	"strings"

	"github.com/dustin/go-humanize"
)

// An Error is a plan that cannot work. Sizes are bytes.
type Error struct {
	Need  int64 // what the plan adds up to
	Have  int64 // what it may take
	Named bool  // Have is a budget that was named, not what is free
	Cache int64 // a cache that would fit, 0 if none would
	Plan  Plan  // its parts; Cache is the least or what was asked for
}

// Error says what is needed, what is there, and what can be done.
func (e *Error) Error() string {
	var b strings.Builder
	what := "free are"
	if e.Named {
		what = "allowed are"
	}
	fmt.Fprintf(&b, "this plan needs %s, %s %s", Text(e.Need), what, Text(e.Have))
	if e.Plan.Chosen {
		fmt.Fprintf(&b, " besides the %s left to the system", Text(e.Plan.Margin))
	}
	switch {
	case e.Cache > 0:
		fmt.Fprintf(&b, ": start with --cache %s, or close other programs", flag(e.Cache))
	case !e.Plan.Chosen && e.Need == e.Plan.Budget && !e.Named:
		fmt.Fprintf(&b, ": start with --memory %s, or close other programs", flag(max(e.Have-e.Plan.Margin, 0)))
	default:
		p := &e.Plan
		fmt.Fprintf(&b, ": the program takes %s, the trunk %s, a conversation of %d tokens %s, buffers %s, and experts at least %s; ",
			Text(p.Program), Text(p.Trunk+p.Embed), p.Context, Text(p.State), Text(p.Pass+p.Collector), Text(p.Cache))
		if e.Named {
			b.WriteString("give --memory more")
		} else {
			b.WriteString("close other programs")
		}
		if p.State > p.Pass {
			b.WriteString(", or plan for fewer tokens with --context")
		}
	}
	return b.String()
}

// Text writes a size as drives and memory are sold: 1.2 GB is 1,200,000,000 bytes.
func Text(n int64) string { return humanize.Bytes(uint64(max(n, 0))) }

// flag writes a size for a command line, rounded down.
func flag(n int64) string {
	if n >= 10<<30 {
		return fmt.Sprintf("%dGiB", n>>30)
	}
	return fmt.Sprintf("%dMiB", n>>20)
}

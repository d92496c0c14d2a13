package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"deltafin/engine"
)

// draftFlag is --draft: whether tokens are proposed from the conversation and verified
// several at a time.
type draftFlag struct{ how string }

func (f *draftFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.how, "draft", "off", "auto proposes tokens that stood in the conversation before, and verifies several in one pass, where that is measured to be faster; takes memory for as many states, never changes the text; off does not")
}

// apply sets the option. A command without the flag has no drafts.
func (f *draftFlag) apply(o *engine.Options) error {
	switch f.how {
	case "auto":
		o.Draft = true
	case "off", "":
	default:
		return usage("--draft %q: give auto or off", f.how)
	}
	return nil
}

// draftSummary is what drafts did for an answer, in summary.
type draftSummary struct {
	Passes   int64   `json:"passes"`
	Proposed int64   `json:"proposed"`
	Accepted int64   `json:"accepted"`
	Gain     float64 `json:"gain"` // times as fast, by estimate
}

// of is what was done since a reading of the counters, nil without drafts.
func (f *draftFlag) of(e *engine.Engine, began engine.Stats) *draftSummary {
	if f.how != "auto" {
		return nil
	}
	s := e.Stats().Sub(began)
	return &draftSummary{s.Draft.Passes, s.Draft.Proposed, s.Draft.Accepted, s.Draft.Gain(s.DecodeTime)}
}

// print says it for a person.
func (d *draftSummary) print(w io.Writer) {
	switch {
	case d == nil:
	case d.Passes == 0:
		fmt.Fprintln(w, "drafts: none was worth a try")
	default:
		fmt.Fprintf(w, "drafts: %d of %d proposed tokens were right, in %d passes; about %.2f times as fast\n", d.Accepted, d.Proposed, d.Passes, d.Gain)
	}
}

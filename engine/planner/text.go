package planner

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// span is a range with its unit.
func span(r Range, format, unit string) string {
	return fmt.Sprintf(format+" ("+format+" to "+format+")", r.Expected, r.Low, r.High) + unit
}

// percent is a range of shares.
func percent(r Range) string {
	return span(Range{100 * r.Low, 100 * r.Expected, 100 * r.High}, "%.0f", " %")
}

// Text writes the report for people.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintf(&b, "%s with %s, simulated: expected (low to high)\n\n", r.Machine.Name, r.Model)
	fmt.Fprintf(tab, "tokens/s\t%s\n", span(r.Rate, "%.2f", ""))
	for _, p := range r.Prompts {
		fmt.Fprintf(tab, "first token of %d\t%s\n", p.Tokens, span(p.Seconds, "%.0f", " s"))
	}
	fmt.Fprintf(tab, "experts found in memory\t%s\n", percent(r.Hits))
	fmt.Fprintf(tab, "read for a token\t%s\n", span(r.PerToken, "%.1f", " GB"))
	fmt.Fprintf(tab, "memory\t%.1f GB of trunk, %.1f GB of experts\n", float64(r.Trunk)/1e9, float64(r.Cache)/1e9)
	fmt.Fprintf(tab, "drives together\t%.1f GB/s\n", r.Drives/1e9)
	fmt.Fprint(tab, "\nWhere a token's time goes (expected case)\t\n")
	for _, p := range r.Parts {
		fmt.Fprintf(tab, "  %s\t%.2f s\t%.0f %%\n", p.Name, p.Seconds, 100*p.Share)
	}
	fmt.Fprint(tab, "\nWhat a change would give\ttokens/s\tmore\tfirst token of 512\n")
	for _, c := range r.Changes {
		fmt.Fprintf(tab, "  %s\t%s\t%s\t%s\n", c.What, span(c.Rate, "%.2f", ""), percent(c.Gain), span(c.First, "%.0f", " s"))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	for _, part := range []struct {
		title string
		lines []string
	}{{"Warnings", r.Warnings}, {"Assumptions", r.Assumptions}} {
		if len(part.lines) > 0 {
			fmt.Fprintf(&b, "\n%s\n", part.title)
		}
		for _, l := range part.lines {
			fmt.Fprintf(&b, "  - %s\n", l)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// JSON writes the report for programs.
func (r *Report) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

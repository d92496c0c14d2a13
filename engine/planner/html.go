package planner

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
)

//go:embed page.html
var page string

// bar is one line of a chart: a bar to the expected value and a whisker over the
// range. Positions are parts of 1000 of the widest.
type bar struct {
	Name, Text             string
	Expected, Low, Len, At int
}

// bars places ranges on a common scale.
func bars(names, texts []string, rs []Range) []bar {
	most := 0.0
	for _, r := range rs {
		most = max(most, r.High)
	}
	if most <= 0 {
		most = 1
	}
	var out []bar
	for i, r := range rs {
		x := func(v float64) int { return int(560 * max(v, 0) / most) }
		out = append(out, bar{names[i], texts[i], x(r.Expected), x(r.Low), max(x(r.High)-x(r.Low), 1), 24 * i})
	}
	return out
}

// HTML writes the report as one page that needs nothing else, not even a script.
func (r *Report) HTML(w io.Writer) error {
	t, err := template.New("page").Parse(page)
	if err != nil {
		return err
	}
	type chart struct {
		Title  string
		Height int
		Bars   []bar
	}
	chartOf := func(title string, names, texts []string, rs []Range) chart {
		return chart{title, 24 * len(rs), bars(names, texts, rs)}
	}
	names, texts, rates := []string{"as it is"}, []string{span(r.Rate, "%.2f", "")}, []Range{r.Rate}
	for _, c := range r.Changes {
		names, texts, rates = append(names, c.What), append(texts, span(c.Rate, "%.2f", "")), append(rates, c.Rate)
	}
	charts := []chart{chartOf("Tokens per second, and what a change would give", names, texts, rates)}
	names, texts, rates = nil, nil, nil
	for _, p := range r.Prompts {
		name := fmt.Sprintf("prompt of %d tokens", p.Tokens)
		names, texts, rates = append(names, name), append(texts, span(p.Seconds, "%.0f", " s")), append(rates, p.Seconds)
	}
	charts = append(charts, chartOf("Seconds to the first token", names, texts, rates))
	names, texts, rates = nil, nil, nil
	for _, p := range r.Parts {
		v := Range{p.Seconds, p.Seconds, p.Seconds}
		names, texts, rates = append(names, p.Name), append(texts, fmt.Sprintf("%.2f s, %.0f %%", p.Seconds, 100*p.Share)), append(rates, v)
	}
	charts = append(charts, chartOf("Where a token's time goes (expected case)", names, texts, rates))
	return t.Execute(w, struct {
		*Report
		Charts                 []chart
		HitText, PerTokenText  string
		TrunkGB, CacheGB, GBps float64
	}{r, charts, percent(r.Hits), span(r.PerToken, "%.1f", " GB"), float64(r.Trunk) / 1e9, float64(r.Cache) / 1e9, r.Drives / 1e9})
}

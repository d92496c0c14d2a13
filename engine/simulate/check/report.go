package check

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"text/tabwriter"
)

// Tolerance is how much simulated figures may differ from real ones.
const Tolerance = 0.10

// A Report is what a check found.
type Report struct {
	Agrees    bool    `json:"agrees"`
	Tolerance float64 `json:"tolerance"`
	Rows      []Row   `json:"configurations"`
}

// A Row is one configuration. Bytes and classes are of prompt and answer together.
type Row struct {
	Name       string     `json:"name"`
	Model      string     `json:"model"`
	Drives     int        `json:"drives"`
	Cache      float64    `json:"cache_share"`
	Lookahead  bool       `json:"lookahead"`
	Prompt     int        `json:"prompt_tokens"`
	Answer     int        `json:"answer_tokens"`
	Repeated   int        `json:"repeated"`
	Lag        float64    `json:"read_lag_seconds"`   // how much later than its drive promises a single read is
	Arithmetic [2]float64 `json:"arithmetic_seconds"` // of prompt and answer, with everything in memory
	Agrees     bool       `json:"agrees"`

	Prefill Figure `json:"prefill_seconds"`
	Decode  Figure `json:"tokens_per_second"`
	Read    Figure `json:"read_bytes"`
	Hit     Figure `json:"hit"`
	InTime  Figure `json:"in_time"`
	Late    Figure `json:"late"`
	Missed  Figure `json:"missed"`
}

// A Figure is one of the things that are compared.
type Figure struct {
	Real       float64 `json:"real"`
	Simulated  float64 `json:"simulated"`
	Difference float64 `json:"difference"` // simulated over real, less one; of a class see classFigure
}

func figure(real, simulated float64) Figure {
	f := Figure{Real: real, Simulated: simulated}
	if real != simulated {
		f.Difference = (simulated - real) / max(real, 1e-12)
	}
	return f
}

// smallClass is the share of all uses below which a class is not compared with itself:
// of a handful of uses one more or less says nothing.
const smallClass = 0.2

// classFigure compares a class of uses. Difference is of the class, or of a fifth of
// all uses where it is smaller.
func classFigure(real, simulated, uses int64) Figure {
	f := Figure{Real: float64(real), Simulated: float64(simulated)}
	f.Difference = float64(simulated-real) / max(float64(real), smallClass*float64(uses), 1)
	return f
}

// newRow compares the sides, of a prompt and an answer each.
func newRow(c *Config, h *home, real, sim [2]Side) *Row {
	r := &Row{
		Name: c.Name, Model: h.name, Drives: len(c.Drives), Cache: c.Cache, Lookahead: !c.NoAhead, Prompt: c.Prompt, Answer: c.Answer,
		Prefill: figure(real[0].Time.Seconds(), sim[0].Time.Seconds()),
		Decode:  figure(float64(c.Answer)/real[1].Time.Seconds(), float64(c.Answer)/sim[1].Time.Seconds()),
		Read:    figure(float64(real[0].Read+real[1].Read), float64(sim[0].Read+sim[1].Read)),
	}
	uses := real[0].Counts.Uses() + real[1].Counts.Uses()
	class := func(of func(*Side) int64) Figure {
		return classFigure(of(&real[0])+of(&real[1]), of(&sim[0])+of(&sim[1]), uses)
	}
	r.Hit = class(func(s *Side) int64 { return s.Counts.Hit })
	r.InTime = class(func(s *Side) int64 { return s.Counts.InTime })
	r.Late = class(func(s *Side) int64 { return s.Counts.Late })
	r.Missed = class(func(s *Side) int64 { return s.Counts.Missed })
	r.Agrees = true
	for _, f := range r.figures() {
		r.Agrees = r.Agrees && math.Abs(f.Difference) <= Tolerance
	}
	return r
}

func (r *Row) figures() []Figure {
	return append(r.classes(), r.Prefill, r.Decode, r.Read)
}

func (r *Row) classes() []Figure { return []Figure{r.Hit, r.InTime, r.Late, r.Missed} }

// worst is the class that differs most.
func (r *Row) worst() float64 {
	c := r.classes()
	return slices.MaxFunc(c, func(a, b Figure) int { return cmp.Compare(math.Abs(a.Difference), math.Abs(b.Difference)) }).Difference
}

// Text writes the report for people: real, simulated and difference of each figure.
func (r *Report) Text(w io.Writer) error {
	var b strings.Builder
	tab := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "configuration\ttokens/s\tsim\tdiff\tprompt s\tsim\tdiff\tread MB\tsim\tdiff\tuses diff\t\t")
	for i := range r.Rows {
		x := &r.Rows[i]
		mark := ""
		if !x.Agrees {
			mark = "differs"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%s\t\n", x.Name, x.Decode.text("%.2f", 1), x.Prefill.text("%.2f", 1), x.Read.text("%.2f", 1e6), percent(x.worst()), mark)
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	fmt.Fprint(&b, "\nhit, in time, late and missed uses, real and simulated\n")
	for i := range r.Rows {
		x := &r.Rows[i]
		fmt.Fprintf(&b, "  %s:", x.Name)
		for _, c := range x.classes() {
			fmt.Fprintf(&b, "  %.0f %.0f", c.Real, c.Simulated)
		}
		b.WriteByte('\n')
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// text is real, simulated and difference as cells.
func (f Figure) text(format string, unit float64) string {
	return fmt.Sprintf(format+"\t"+format+"\t%s", f.Real/unit, f.Simulated/unit, percent(f.Difference))
}

func percent(x float64) string { return fmt.Sprintf("%+.1f %%", 100*x) }

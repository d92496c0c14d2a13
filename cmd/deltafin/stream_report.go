package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"deltafin/engine"
	"deltafin/engine/expert"
)

// A streamReport says what reading experts from drives cost, apart for the prompt
// and for the answer.
type streamReport struct {
	e                 *engine.Engine
	start, read, done engine.Streaming // readings at the start, after the prompt, at the end
	begun             bool             // the prompt has been read
}

func newStreamReport(e *engine.Engine) *streamReport {
	r := &streamReport{e: e}
	e.Streaming(&r.start)
	return r
}

// watch takes a reading when the first token is there.
func (r *streamReport) watch(l engine.Listener) engine.Listener {
	token := l.Token
	l.Token = func(t engine.Token) error {
		if t.Index == 0 {
			r.e.Streaming(&r.read)
			r.begun = true
		}
		return token(t)
	}
	return l
}

// print writes the tables. A token that was generated costs a pass when it is fed
// back, so the answer has one pass less than tokens.
func (r *streamReport) print(w io.Writer, res *engine.Result) {
	r.e.Streaming(&r.done)
	if !r.begun {
		r.e.Streaming(&r.read)
	}
	prompt, answer := r.read.Experts, r.done.Experts
	answer.Sub(&r.read.Experts)
	prompt.Sub(&r.start.Experts)

	fmt.Fprintln(w)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "experts\tuses\thit\tin time\tlate\tmissed\tunused\thit rate\tread/token\twasted/token\twait/token\t")
	streamRow(tab, "prompt", &prompt.Total, res.Prefilled)
	streamRow(tab, "answer", &answer.Total, len(res.Tokens)-1)
	tab.Flush()
	x := &r.done.Experts
	fmt.Fprintf(w, "cache: %d experts in %d slots, %s\n", x.Cached, x.Slots, bytesText(x.Bytes))
	r.printTrunk(w)

	elapsed := res.PrefillTime + res.DecodeTime
	io := r.done.Drives
	io.Sub(&r.start.Drives)
	tab = tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(tab, "drive\tread\tmean rate\twhile busy\tp99\tretries\thedges\t")
	for i := range io.Drives {
		d := &io.Drives[i]
		label := d.Name
		if d.Emulated != "" {
			label += " (emulated)"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t\n", label, bytesText(d.Read), speed(d.Mean(elapsed)), speed(d.Mean(d.Busy)),
			readTime(d.Latency.Quantile(0.99)), d.Retries, d.Hedges)
	}
	tab.Flush()
}

// streamRow is the uses of experts over n tokens.
func streamRow(w io.Writer, what string, c *expert.Counts, n int) {
	per := int64(max(n, 1))
	fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%.1f %%\t%s\t%s\t%s\t\n", what, c.Uses(), c.Hit, c.InTime, c.Late, c.Missed, c.Unused,
		100*c.HitRate(), bytesText(c.Useful/per), bytesText(c.Wasted/per), readTime(c.Stall/time.Duration(per)))
}

package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/memory"
	"deltafin/engine/trunk"
	"deltafin/session/paths"
)

// memoryFlags say how much memory may be used.
type memoryFlags struct {
	budget  string // size; "": what the machine can spare
	context int    // tokens to plan for
}

func (f *memoryFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.budget, "memory", "", "most memory of the whole program, e.g. 96GiB; experts are cached in what remains (default: what the machine can spare without swapping)")
	c.Flags().IntVar(&f.context, "context", engine.DefaultContext, "tokens of conversation to plan memory for; longer ones are not refused")
}

// apply sets what the flags say. The demonstration model is small: without a flag
// it needs no plan.
func (f *memoryFlags) apply(c *cobra.Command, o *engine.Options) (err error) {
	set := c.Flags().Changed
	if f.context < 1 {
		return usage("--context %d: at least 1 is needed", f.context)
	}
	o.Context = f.context
	if o.Model != "" || o.ExpertCache > 0 || set("context") {
		o.Memory = engine.SpareMemory
	}
	if set("memory") {
		if o.Memory, err = parseBytes("--memory", f.budget); err != nil {
			return err
		}
		if o.Memory == 0 {
			return usage("--memory %s: give a size above zero, or leave it out to use what the machine can spare", f.budget)
		}
	}
	if o.Memory == 0 {
		return nil // no expert is read from a drive
	}
	if o.DriveState, err = stateFolder(); err != nil {
		return err
	}
	p, err := paths.Default()
	if err != nil {
		return err
	}
	o.HeatDir = filepath.Join(p.State, "heat")
	return nil
}

// settle follows a plan before anything large is read: the garbage collector, and the
// table if experts are read from drives or a budget was named.
func (f *memoryFlags) settle(c *cobra.Command, s streams, p *memory.Plan) {
	// What the person set in the environment stands.
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(memory.GCPercent)
	}
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(p.HeapLimit)
	}
	if !p.Mapped || c.Flags().Changed("memory") || c.Flags().Changed("context") {
		printPlan(s.err, p)
	}
}

// notify writes what the engine has to say while it runs.
func notify(s streams) func(engine.Notice) {
	return func(n engine.Notice) {
		if s.errTTY {
			fmt.Fprintf(s.err, "\r%-*s\n", statusWidth, printable(n.Text)) // over a status line
			return
		}
		fmt.Fprintln(s.err, n.Text)
	}
}

// loading shows how far the trunk has been read while a model is opened. done takes
// the line away.
func loading(s streams) (tell func(trunk.Progress), done func()) {
	line, begun := newStatus(s), time.Now()
	return func(p trunk.Progress) {
		rate := float64(p.Done) / max(time.Since(begun).Seconds(), 1e-3)
		rest := time.Duration(float64(p.Total-p.Done) / max(rate, 1) * float64(time.Second))
		line.set("reading the trunk: %.0f %% of %s, %s, about %s left", 100*float64(p.Done)/float64(max(p.Total, 1)), memory.Text(p.Total), speed(rate), duration(rest))
	}, line.clear
}

// A lockedWriter lets notices come from other goroutines than what they report on.
type lockedWriter struct {
	mu sync.Mutex // guards below
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// newMemory says how memory would be divided.
func newMemory(s streams) *cobra.Command {
	var f modelFlags
	var draft draftFlag
	var asJSON bool
	c := &cobra.Command{
		Use:   "memory",
		Short: "Say how memory would be divided, and whether it suffices",
		Long: `Prints the plan that a run with the same flags would start with: the program, the
weights that every token uses, the conversation, the buffers of the arithmetic, and
the cache of experts in what remains. No large weight is loaded.

The Go runtime is held to the plan: its heap may grow by a quarter between two
collections, and GOMEMLIMIT is what the plan has for it. GOGC and GOMEMLIMIT in the
environment are left alone. While a model runs, the cache gives memory back when
other programs need it, and takes it again later.`,
		Example: "  deltafin memory --model /models/Kimi-K3 --memory 96GiB --context 32768",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			o, err := f.options(c)
			if err != nil {
				return err
			}
			if err := draft.apply(&o); err != nil {
				return err
			}
			p, err := engine.PlanMemory(c.Context(), o)
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(s.out, p)
			}
			printPlan(s.out, p)
			return nil
		},
	}
	f.add(c)
	draft.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return c
}

// printPlan writes a plan as a table.
func printPlan(w io.Writer, p *memory.Plan) {
	from := "named with --memory"
	if p.Chosen {
		from = fmt.Sprintf("free are %s, %s of these are left to the system", memory.Text(p.Free), memory.Text(p.Margin))
	} else if p.Free > 0 {
		from += fmt.Sprintf(", free are %s", memory.Text(p.Free))
	}
	fmt.Fprintf(w, "memory: %s of %s (%s)\n", memory.Text(p.Total()), memory.Text(p.Budget), from)
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "part\tbytes\tshare\thow counted")
	row := func(part string, n int64, how string, args ...any) {
		fmt.Fprintf(tab, "%s\t%15s\t%3.0f %%\t%s\n", part, humanize.Comma(n), 100*float64(n)/float64(max(p.Total(), 1)), fmt.Sprintf(how, args...))
	}
	row("program", p.Program, "measured now, and what is to come")
	trunk := p.TrunkHow
	if p.Streamed > 0 {
		trunk += fmt.Sprintf("; %s more are read for every token", memory.Text(p.Streamed))
	}
	row("trunk", p.Trunk, "%s", trunk)
	row("embedding", p.Embed, "rows of the tokens, mapped")
	conversation := humanize.Comma(int64(p.Context)) + " tokens, set with --context"
	if p.Drafts > 0 {
		conversation += fmt.Sprintf("; %s of it are for --draft", memory.Text(p.Drafts))
	}
	row("conversation", p.State, "%s", conversation)
	rows := fmt.Sprintf("%d prompt tokens at a time", p.Rows)
	if p.Rows < p.RowsAsked {
		rows += fmt.Sprintf(", not %d: so that they fit", p.RowsAsked)
	}
	row("buffers", p.Pass, "%s", rows)
	row("collector", p.Collector, "the Go heap grows by %d %% between collections, to %s at most", memory.GCPercent, memory.Text(p.HeapLimit))
	if p.Mapped {
		row("experts", p.Cache, "all %s, mapped", humanize.Comma(int64(p.Experts)))
	} else {
		row("experts", p.Cache, "%s of %s fit", humanize.Comma(int64(p.Slots)), humanize.Comma(int64(p.Experts)))
	}
	tab.Flush()
}

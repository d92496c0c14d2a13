package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/engine/sample"
)

// demoDrives are the drives of the demonstration: four of unequal speed, slower than
// real ones by as much as the model is smaller, so that what they cost a token is
// about what real ones cost the full model. An expert of the demonstration is one
// block and cannot be split over drives as real ones are; with speeds further apart
// the fastest drive would do nearly all the work.
var demoDrives = [...]struct {
	name  string
	limit int // kB/s
}{{"nvme0", 900}, {"nvme1", 820}, {"nvme2", 760}, {"usb3", 640}}

const (
	// demoCache has room for a quarter of the 448 experts, with what reading takes.
	demoCache = 2_000_000
	// demoPull is when --fault pulls a drive: once the answer has begun.
	demoPull = 2 * time.Second
	// demoQuestion is one that the demonstration model has a long answer to.
	demoQuestion = "Tell me a story about a fox."
)

// newDemo shows the engine at work on a machine that has neither model nor drives.
func newDemo(s streams) *cobra.Command {
	var fault, plain bool
	var themeName string
	c := &cobra.Command{
		Use:   "demo [question]",
		Short: "Watch the demonstration model stream from four emulated drives",
		Long: `Runs the demonstration model inside the program, a toy, as the full model runs: its
experts come from four drives of different speed, emulated in memory, through a cache
with room for a quarter of them. On a terminal the screen shows every drive, the cache
and the reading ahead at work; ask on as you like. Nothing of it is kept.

With --fault one drive is pulled in the middle of the answer; the others take over,
and the text is the same.`,
		Example: `  deltafin demo
  deltafin demo --fault "Tell me a story about a whale."`,
		RunE: func(c *cobra.Command, args []string) error {
			question := demoQuestion
			if len(args) > 0 {
				question = strings.Join(args, " ")
			}
			o := demoOptions(fault, 1)
			if plain && themeName != "" {
				return usage("--theme has no effect with --plain: leave one of them out")
			}
			if !plain {
				if l, err := newLook(s, themeName); err == nil {
					return demoScreen(c.Context(), s, l, question, o)
				} else if !errors.Is(err, errNoScreen) {
					return usage("%v", err)
				} else if themeName != "" {
					return usage("--theme %s: there is no terminal here to draw on", themeName)
				}
			}
			return runDemo(c.Context(), s, question, o)
		},
	}
	c.Flags().BoolVar(&plain, "plain", false, "only add lines, and print a summary at the end")
	c.Flags().StringVar(&themeName, "theme", "", "dark, light or mono (default: what the terminal says)")
	c.Flags().BoolVar(&fault, "fault", false, "pull a drive in the middle of the answer")
	return c
}

// demoOptions open the demonstration model on its drives, times as fast as usual.
func demoOptions(fault bool, times int) engine.Options {
	o := engine.Options{ExpertCache: demoCache}
	// The folder only has to be one: the model lies in the program. A comma in a
	// path is written twice.
	dir := strings.ReplaceAll(os.TempDir(), ",", ",,")
	for i, d := range demoDrives {
		spec := fmt.Sprintf("%s,limit=%dKB/s,latency=80us,name=%s", dir, d.limit*times, d.name)
		if fault && i == 1 {
			spec += fmt.Sprintf(",fault=gone/from=%v", demoPull/time.Duration(times))
		}
		o.Drives = append(o.Drives, spec)
	}
	return o
}

func runDemo(ctx context.Context, s streams, question string, o engine.Options) error {
	start := time.Now()
	o.Notify = notify(s)
	e, err := engine.Open(ctx, o)
	if err != nil {
		return err
	}
	f := &askFlags{maxTokens: defaultMaxTokens, effort: string(chat.EffortLow)}
	fmt.Fprintln(s.err, e.Info().Notice)
	fmt.Fprintf(s.err, "four emulated drives, memory for %d of its experts\n", e.Info().Slots)
	fmt.Fprintf(s.err, "> %s\n", printable(question))
	ids, err := f.prompt(e, question, chat.EffortLow)
	if err != nil {
		return errors.Join(err, e.Close())
	}
	a := newAnswer(e, s, f)
	a.loaded = time.Since(start)
	report := newStreamReport(e)
	req := engine.Request{Tokens: ids, MaxTokens: f.maxTokens, Sampling: sample.Params{}}
	res, err := e.Generate(ctx, e.NewSequence(), req, report.watch(a.listener()))
	err = a.finish(ctx, req, res, err)
	report.print(s.err, &res)
	for _, d := range report.done.Drives.Drives {
		if d.Down || d.Lost > 0 {
			fmt.Fprintf(s.err, "%s was lost; the other drives took over its reads, and the text is what it would have been\n", d.Name)
		}
	}
	return errors.Join(err, e.Close())
}

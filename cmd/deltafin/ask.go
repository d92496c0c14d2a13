package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/engine/sample"
)

// askFlags are the flags of ask.
type askFlags struct {
	model       modelFlags
	maxTokens   int
	timeout     time.Duration
	greedy      bool
	temperature float64
	topP        float64
	seed        uint64
	effort      string
	noThink     bool
	system      string
	raw         bool
	stats       bool
	thinking    bool
	json, jsonl bool

	keep      runFlags
	newThread bool
	last      bool
	thread    string
	branch    string
}

// defaultMaxTokens bounds an answer that nobody bounded: an hour at K3's speed.
const defaultMaxTokens = 4096

func newAsk(s streams) *cobra.Command {
	var f askFlags
	c := &cobra.Command{
		Use:   "ask [question]",
		Short: "Ask one question and print the answer",
		Long: `Asks the model one question. The answer streams to standard output; progress and
the model's thinking, folded to one line, go to standard error. What comes in on
standard input is appended to the question.

The answer is printed and forgotten unless --new, --thread or --last says where to
keep it. A kept answer survives everything: it is written down token by token, can
be continued with deltafin resume, and ends with the same text as if nothing had
happened.

Ctrl+C stops within a token and keeps what has been printed; a kept answer is
paused (exit code 3) rather than interrupted (130).`,
		Example: `  deltafin ask "What is Deltafin?"
  deltafin ask "Summarise this." < notes.txt > summary.txt
  deltafin ask --new "Compare three ways to store heat."
  deltafin ask --last "Which one is the cheapest?"
  deltafin ask --json --greedy "List four fruits."`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.Context(), c, s, strings.Join(args, " "))
		},
	}
	f.model.add(c)
	f.model.routes.add(c)
	f.model.draft.add(c)
	f.keep.add(c)
	f.addThread(c)
	fl := c.Flags()
	fl.BoolVar(&f.newThread, "new", false, "keep question and answer in a new thread")
	f.addAnswer(c)
	fl.StringVar(&f.system, "system", "", "system message before the question")
	fl.BoolVar(&f.stats, "stats", false, "print at the end what reading experts from drives cost; needs --cache or --memory")
	fl.BoolVar(&f.raw, "raw", false, "continue the text as it is, without the chat format; names of special tokens in it count as such")
	return c
}

// addThread adds the flags that name a thread.
func (f *askFlags) addThread(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.thread, "thread", "", "keep question and answer in this thread")
	fl.BoolVar(&f.last, "last", false, "keep question and answer in the thread used last")
	fl.StringVar(&f.branch, "branch", "", "branch of the thread (default: the one used last)")
}

// addAnswer adds the flags that say how an answer is made and shown.
func (f *askFlags) addAnswer(c *cobra.Command) {
	f.addHow(c)
	fl := c.Flags()
	fl.DurationVar(&f.timeout, "timeout", 0, "stop after this time, e.g. 10m (default: none)")
	fl.BoolVar(&f.thinking, "thinking", false, "print the thinking in full to standard error")
	fl.BoolVar(&f.json, "json", false, "print one JSON object when done")
	fl.BoolVar(&f.jsonl, "jsonl", false, "print events as they happen, one JSON object per line")
}

// addHow adds the flags that determine the text of an answer.
func (f *askFlags) addHow(c *cobra.Command) {
	fl := c.Flags()
	fl.IntVarP(&f.maxTokens, "max-tokens", "n", defaultMaxTokens, "most tokens to generate, thinking included")
	fl.BoolVar(&f.greedy, "greedy", false, "always take the likeliest token")
	fl.Float64Var(&f.temperature, "temperature", 0, "0 to 100 (default: the model's own, else 1.0)")
	fl.Float64Var(&f.topP, "top-p", 0, "share of the likeliest tokens to choose from, 0 to 1 (default: the model's own, else 0.95)")
	fl.Uint64Var(&f.seed, "seed", 0, "the same seed gives the same text")
	fl.StringVar(&f.effort, "effort", string(chat.EffortMax), "how much to think: low, high or max")
	fl.BoolVar(&f.noThink, "no-think", false, "answer without thinking")
}

// check refuses flags that contradict each other: none may be inert.
func (f *askFlags) check(c *cobra.Command) error {
	set := c.Flags().Changed
	if f.maxTokens < 1 {
		return usage("--max-tokens %d: nothing would be generated; give at least 1", f.maxTokens)
	}
	if f.stats && !set("cache") && !set("memory") {
		return usage("--stats needs --cache SIZE or --memory SIZE: without one no expert need be read from a drive")
	}
	if set("timeout") && f.timeout <= 0 {
		return usage("--timeout %v: give a time above zero", f.timeout)
	}
	return exclusive(c, [][2]string{{"greedy", "temperature"}, {"greedy", "top-p"}, {"greedy", "seed"}, {"no-think", "effort"},
		{"raw", "effort"}, {"raw", "no-think"}, {"raw", "system"}, {"raw", "thinking"}, {"no-think", "thinking"}, {"json", "jsonl"},
		{"new", "thread"}, {"new", "last"}, {"new", "branch"}, {"thread", "last"}, {"system", "thread"}, {"system", "last"},
		{"stats", "new"}, {"stats", "thread"}, {"stats", "last"}, {"raw", "new"}, {"raw", "thread"}, {"raw", "last"}})
}

// kept reports whether the answer goes to a thread, and refuses flags that only
// make sense there.
func (f *askFlags) kept(c *cobra.Command) (bool, error) {
	if f.newThread || f.last || f.thread != "" {
		return true, nil
	}
	for _, name := range []string{"branch", "snapshots", "snapshot-budget", "other-model"} {
		if c.Flags().Changed(name) {
			return false, usage("--%s needs --new, --thread or --last: nothing is kept without them", name)
		}
	}
	return false, nil
}

func (f *askFlags) sampling(c *cobra.Command, e *engine.Engine) sample.Params {
	if f.greedy {
		return sample.Params{}
	}
	p := e.Sampling()
	if c.Flags().Changed("temperature") {
		p.Temperature = f.temperature
	}
	if c.Flags().Changed("top-p") {
		p.TopP = f.topP
	}
	p.Seed = f.seed
	return p
}

func (f *askFlags) run(ctx context.Context, c *cobra.Command, s streams, question string) error {
	if err := f.check(c); err != nil {
		return err
	}
	effort, err := chat.ParseEffort(f.effort)
	if err != nil {
		return usage("--effort: %v", err)
	}
	question, err = withInput(question, s)
	if err != nil {
		return err
	}
	defer f.model.routes.close(s)
	if kept, err := f.kept(c); err != nil {
		return err
	} else if kept {
		return f.askThread(ctx, c, s, question)
	}
	start := time.Now()
	e, err := f.model.open(ctx, c, s)
	if err != nil {
		return err
	}
	defer e.Close()
	var ids []int
	if f.raw {
		ids = e.Tokenizer().EncodeSpecial(question)
	} else {
		ids, err = f.prompt(e, question, effort)
	}
	if err != nil {
		return err
	}
	run := ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		run, cancel = context.WithTimeoutCause(ctx, f.timeout, errTimeout)
		defer cancel()
	}
	a := newAnswer(e, s, f)
	a.loaded = time.Since(start)
	req := engine.Request{Tokens: ids, MaxTokens: f.maxTokens, Sampling: f.sampling(c, e)}
	report, listen := newStreamReport(e), a.listener()
	if f.stats {
		listen = report.watch(listen)
	}
	res, err := e.Generate(run, e.NewSequence(), req, listen)
	err = a.finish(ctx, req, res, err)
	if f.stats {
		report.print(s.err, &res)
	}
	return err
}

// errTimeout ends a run whose time is up: a clean end, not a failure.
var errTimeout = errors.New("the time given with --timeout is over")

func (f *askFlags) prompt(e *engine.Engine, question string, effort chat.Effort) ([]int, error) {
	p := &chat.Prompt{Thinking: !f.noThink, Generate: true}
	if p.Thinking {
		p.Effort = effort
	}
	if f.system != "" {
		p.Messages = append(p.Messages, chat.Message{Role: chat.System, Content: f.system})
	}
	p.Messages = append(p.Messages, chat.Message{Role: chat.User, Content: question})
	return e.Prompt(p)
}

// withInput appends what comes in on standard input to the question.
func withInput(question string, s streams) (string, error) {
	if !s.inTTY {
		data, err := io.ReadAll(s.in)
		if err != nil {
			return "", fmt.Errorf("reading standard input: %w", err)
		}
		if text := string(data); text != "" {
			if question != "" {
				question += "\n\n"
			}
			question += text
		}
	}
	if strings.TrimSpace(question) == "" {
		return "", usage("nothing was asked: give a question, or text on standard input")
	}
	return question, nil
}

// writeJSON writes one value on one line.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine/chat"
	"deltafin/session"
	threads "deltafin/session/run"
)

// newQueueAdd puts a question at the end of the queue.
func newQueueAdd(s streams) *cobra.Command {
	var f askFlags
	var at string
	c := &cobra.Command{
		Use:   "add question",
		Short: "Put a question at the end of the queue",
		Long: `Puts a question at the end of the queue and prints its id. It is asked in a new thread
unless --thread or --last names one. What comes in on standard input is appended. The
model is opened, not run, to settle what the answer will be made with.`,
		Example: `  deltafin queue add --at tonight "Compare three ways to store heat."`,
		RunE: func(c *cobra.Command, args []string) error {
			return f.enqueue(c.Context(), c, s, strings.Join(args, " "), at)
		},
	}
	f.model.add(c)
	f.addThread(c)
	f.addHow(c)
	c.Flags().StringVar(&at, "at", "", holdHelp)
	return c
}

func (f *askFlags) enqueue(ctx context.Context, c *cobra.Command, s streams, question, at string) error {
	if err := f.check(c); err != nil {
		return err
	}
	if _, err := chat.ParseEffort(f.effort); err != nil {
		return usage("--effort: %v", err)
	}
	if c.Flags().Changed("seed") {
		return usage("--seed: the queue keeps no seed; ask at once, or regenerate the answer with one")
	}
	if c.Flags().Changed("trunk") {
		return usage("--trunk: the queue keeps none; give it to deltafin queue run, or to whatever answers")
	}
	if f.branch != "" && f.thread == "" && !f.last {
		return usage("--branch needs --thread or --last")
	}
	hold, err := parseHold(at, time.Now())
	if err != nil {
		return err
	}
	question, err = withInput(question, s)
	if err != nil {
		return err
	}
	store, err := openThreads(ctx)
	if err != nil {
		return err
	}
	id, err := f.enqueueIn(ctx, c, s, store, session.QueueItem{Text: question, Branch: f.branch, Folder: workingFolder(), Hold: hold})
	if err == nil {
		_, err = fmt.Fprintln(s.out, id.Short())
	}
	return errors.Join(err, store.Close())
}

// enqueueIn completes an item and adds it.
func (f *askFlags) enqueueIn(ctx context.Context, c *cobra.Command, s streams, store *session.Store, q session.QueueItem) (id session.ID, err error) {
	var how threads.How
	switch {
	case f.last:
		q.Thread, err = lastThread(ctx, store)
	case f.thread != "":
		q.Thread, err = store.FindThread(ctx, f.thread)
	}
	if err == nil && q.Thread != 0 {
		how, err = lastHow(ctx, store, q.Thread, f.branch)
	}
	if err != nil {
		return 0, err
	}
	e, err := f.model.open(ctx, c, s)
	if err != nil {
		return 0, err
	}
	defer e.Close()
	if how.Settings == (session.Settings{}) {
		r, err := f.keep.newRunner(store, e)
		if err != nil {
			return 0, err
		}
		how.Settings = r.Defaults()
		how.Settings.MaxTokens = defaultMaxTokens
	}
	q.Settings = f.applyHow(c, how).Settings
	q.Tokens = len(e.Tokenizer().Encode(q.Text))
	return store.Enqueue(ctx, q)
}

// newQueueRun answers the queue.
func newQueueRun(s streams) *cobra.Command {
	var f askFlags
	var wait bool
	c := &cobra.Command{
		Use:   "run",
		Short: "Answer the waiting questions in their order",
		Long: `Goes on with an answer that was cut short, then answers the waiting questions in their
order, each in its thread, and prints the answers. Ctrl+C and SIGTERM pause (exit
code 3); the next run goes on from there. With --wait it stays until questions held
with --at may start.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			return f.runQueue(c.Context(), c, s, wait)
		},
	}
	f.model.add(c)
	f.model.draft.add(c)
	f.keep.add(c)
	fl := c.Flags()
	fl.DurationVar(&f.timeout, "timeout", 0, "pause after this time, e.g. 8h (default: none)")
	fl.BoolVar(&f.thinking, "thinking", false, "print the thinking in full to standard error")
	fl.BoolVar(&f.jsonl, "jsonl", false, "print events as they happen, one JSON object per line")
	fl.BoolVar(&wait, "wait", false, "wait for questions that are held until a time")
	f.maxTokens = defaultMaxTokens
	return c
}

func (f *askFlags) runQueue(ctx context.Context, c *cobra.Command, s streams, wait bool) (err error) {
	store, err := openThreads(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	e, err := f.model.open(ctx, c, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	r, err := f.keep.newRunner(store, e)
	if err != nil {
		return err
	}
	return braked(ctx, f.timeout, func(ctx context.Context, b *brake) error {
		var shown *threadAnswer
		res, err := r.RunQueue(ctx, threads.QueueOptions{
			Wait: wait, Pause: b.c, OtherModel: f.keep.otherModel,
			Start: func(thread session.ID, set session.Settings, question string) threads.Listener {
				what := "going on with its answer"
				if question != "" {
					what, _, _ = strings.Cut(question, "\n")
				}
				fmt.Fprintf(s.err, "thread %s: %s\n", thread.Short(), printable(what))
				look := *f
				look.noThink, look.maxTokens = set.Effort == threads.NoThinking, set.MaxTokens
				shown = &threadAnswer{answer: newAnswer(e, s, &look), brake: b}
				return shown.listener()
			},
			Done: func(res threads.Result, err error) {
				// A pause is told by the queue's own end.
				if err := shown.finish(res, err); err != nil && !errors.Is(err, errReported) {
					shown.note("%v", err)
				}
			},
			Idle: func(wake time.Time) {
				if wake.IsZero() {
					fmt.Fprintln(s.err, "waiting for threads that another process writes")
					return
				}
				fmt.Fprintf(s.err, "waiting until %s\n", wake.Local().Format("2006-01-02 15:04"))
			},
		})
		fmt.Fprintf(s.err, "%d answered, %d failed, %d left to another process\n", res.Answered, res.Failed, res.Skipped)
		switch {
		case errors.Is(err, session.ErrFull), err == nil && res.Paused:
			return errPaused
		case err == nil && res.Failed > 0:
			return errReported
		}
		return err
	})
}

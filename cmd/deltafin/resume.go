package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deltafin/engine/chat"
	"deltafin/session"
	threads "deltafin/session/run"
)

// newResume goes on with a thread.
func newResume(s streams) *cobra.Command {
	var f askFlags
	var regenerate bool
	c := &cobra.Command{
		Use:   "resume ID|--last [question]",
		Short: "Go on with a thread: its answer, or a further question",
		Long: `Without a question, goes on with an answer that was paused, interrupted by a crash or
cut at --max-tokens, at the very token where it stopped, and prints the whole answer.
The text is the one that an uninterrupted run would have given: settings and seed are
those the answer was begun with. With a question, asks it in the thread; an answer
that is still open is then left as it is.

--regenerate makes another answer beside the last one, on a branch of its own.
Ctrl+C and SIGTERM pause (exit code 3) and keep everything.`,
		Example: `  deltafin resume 3fa9c1b
  deltafin resume --last "And what does it cost?"
  deltafin resume --last --regenerate --seed 2`,
		RunE: func(c *cobra.Command, args []string) error {
			if !f.last {
				if len(args) == 0 {
					return usage("which thread? give its id, or --last")
				}
				f.thread, args = args[0], args[1:]
			}
			return f.resume(c.Context(), c, s, strings.Join(args, " "), regenerate)
		},
	}
	f.model.add(c)
	f.model.draft.add(c)
	f.keep.add(c)
	fl := c.Flags()
	fl.BoolVar(&f.last, "last", false, "the thread used last")
	fl.StringVar(&f.branch, "branch", "", "branch of the thread (default: the one used last)")
	fl.BoolVar(&regenerate, "regenerate", false, "make another answer beside the last one (default: with the next seed)")
	f.addAnswer(c)
	return c
}

func (f *askFlags) resume(ctx context.Context, c *cobra.Command, s streams, question string, regenerate bool) error {
	if err := f.check(c); err != nil {
		return err
	}
	if _, err := chat.ParseEffort(f.effort); err != nil {
		return usage("--effort: %v", err)
	}
	// A question may come from a pipe, but a script that only resumes has an
	// input too, and it may never end.
	if regenerate && question != "" {
		return usage("--regenerate answers the last question again: a further question would have no effect")
	}
	k, err := f.openWork(ctx, c, s)
	if err != nil {
		return err
	}
	switch {
	case question != "":
		err = k.ask(ctx, question)
	case regenerate:
		err = k.regenerate(ctx)
	default:
		err = k.goOn(ctx)
	}
	return errors.Join(err, k.close())
}

// leaf is the turn at the end of the branch.
func (k *work) leaf(ctx context.Context) (*session.Turn, error) {
	th, err := k.store.Load(ctx, k.w.Thread(), session.LoadOptions{})
	if err != nil {
		return nil, err
	}
	b, err := th.FindBranch(k.f.branch)
	if err != nil {
		return nil, err
	}
	t := th.Turn(b.Leaf)
	if t == nil {
		return nil, usage("branch %q of thread %s is empty: give a question", b.Name, k.w.Thread().Short())
	}
	return t, nil
}

// goOn continues the answer at the end of the branch, or answers the question
// there.
func (k *work) goOn(ctx context.Context) error {
	leaf, err := k.leaf(ctx)
	if err != nil {
		return err
	}
	if leaf.Role != session.Assistant {
		how, err := k.how(ctx)
		if err != nil {
			return err
		}
		return k.answer(ctx, how.Settings.Effort != threads.NoThinking, func(ctx context.Context, req threads.Request, l threads.Listener) (threads.Result, error) {
			return k.r.Answer(ctx, k.w, how, req, l)
		})
	}
	if leaf.Status == session.Done && leaf.Stop != threads.StopLength {
		return usage("the last answer of thread %s is complete: give a question, or --regenerate", k.w.Thread().Short())
	}
	more := 0
	for _, name := range howFlags {
		if !k.c.Flags().Changed(name) {
			continue
		}
		if name != "max-tokens" {
			return usage("--%s: an answer goes on as it was begun; give a question, or --regenerate", name)
		}
		more = k.f.maxTokens
	}
	return k.answer(ctx, leaf.Settings.Effort != threads.NoThinking, func(ctx context.Context, req threads.Request, l threads.Listener) (threads.Result, error) {
		return k.r.Continue(ctx, k.w, more, req, l)
	})
}

// regenerate answers the last question of the branch again.
func (k *work) regenerate(ctx context.Context) error {
	leaf, err := k.leaf(ctx)
	if err != nil {
		return err
	}
	if leaf.Role != session.Assistant {
		return usage("the last question of thread %s has no answer yet: deltafin resume %s", k.w.Thread().Short(), k.w.Thread().Short())
	}
	how := k.f.applyHow(k.c, threads.How{Settings: leaf.Settings, Seed: leaf.Seed})
	if !k.c.Flags().Changed("seed") && how.Settings == leaf.Settings {
		how.Seed++
	}
	if how.Settings.Temperature == 0 && how.Settings == leaf.Settings {
		return usage("--regenerate: the answer was made greedily, another seed would not change it; give --temperature")
	}
	fmt.Fprintf(k.s.err, "another answer, with seed %d\n", how.Seed)
	return k.answer(ctx, how.Settings.Effort != threads.NoThinking, func(ctx context.Context, req threads.Request, l threads.Listener) (threads.Result, error) {
		req.Branch = "" // the new one gets a name of its own
		return k.r.Regenerate(ctx, k.w, leaf.ID, how, req, l)
	})
}

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/session"
	threads "deltafin/session/run"
)

// A work is a thread, locked for writing, with a model that answers in it.
type work struct {
	s      streams
	f      *askFlags
	c      *cobra.Command
	store  *session.Store
	e      *engine.Engine
	r      *threads.Runner
	w      *session.Writer
	loaded time.Duration
}

// openWork opens threads and model and locks the thread that the flags name.
func (f *askFlags) openWork(ctx context.Context, c *cobra.Command, s streams) (*work, error) {
	k := &work{s: s, f: f, c: c}
	if err := k.open(ctx); err != nil {
		return nil, errors.Join(err, k.close())
	}
	return k, nil
}

// open takes the thread first: to learn that it does not exist must not take a
// model's time.
func (k *work) open(ctx context.Context) (err error) {
	f := k.f
	if k.store, err = openThreads(ctx); err != nil {
		return err
	}
	var id session.ID
	switch {
	case f.newThread:
	case f.last:
		id, err = lastThread(ctx, k.store)
	default:
		id, err = k.store.FindThread(ctx, f.thread)
	}
	if err != nil {
		return err
	}
	if err := f.followTrunk(ctx, k.c, k.store, id); err != nil {
		return err
	}
	start := time.Now()
	if k.e, err = f.model.open(ctx, k.c, k.s); err != nil {
		return err
	}
	k.loaded = time.Since(start)
	if k.r, err = f.keep.newRunner(k.store, k.e); err != nil {
		return err
	}
	if f.newThread {
		info, err := k.store.Create(ctx, "", workingFolder())
		if err != nil {
			return err
		}
		id = info.ID
	}
	if k.w, err = k.store.Lock(ctx, id); err != nil {
		return err
	}
	if rec := k.w.Recovered(); rec != nil {
		fmt.Fprintf(k.s.err, "recovered: %s\n", rec)
	}
	return nil
}

// followTrunk goes on with a thread in the form of the model that its last answer was
// made with, unless the flags name one: an answer ends as it was begun.
func (f *askFlags) followTrunk(ctx context.Context, c *cobra.Command, store *session.Store, thread session.ID) error {
	if f.newThread || c.Flags().Changed("trunk") || f.keep.otherModel {
		return nil
	}
	how, err := lastHow(ctx, store, thread, f.branch)
	if err == nil {
		f.model.trunk = engine.TrunkOf(how.Settings.KernelSet)
	}
	return err
}

// close gives everything back. A writer that cannot be closed because the disk
// is full has been reported by then.
func (k *work) close() error {
	var errs []error
	if k.w != nil {
		if err := k.w.Close(); !errors.Is(err, session.ErrFull) {
			errs = append(errs, err)
		}
	}
	if k.e != nil {
		errs = append(errs, k.e.Close())
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	return errors.Join(errs...)
}

// request gives what goes for every kind of run.
func (k *work) request(b *brake) threads.Request {
	return threads.Request{Branch: k.f.branch, Pause: b.c, OtherModel: k.f.keep.otherModel}
}

// how is how to answer: as the branch was answered last, or by the model's
// defaults in a new one, changed by the flags that were given.
func (k *work) how(ctx context.Context) (threads.How, error) {
	how, err := lastHow(ctx, k.store, k.w.Thread(), k.f.branch)
	if err != nil {
		return how, err
	}
	if how.Settings == (session.Settings{}) {
		how.Settings = k.r.Defaults()
		how.Settings.MaxTokens = defaultMaxTokens
	}
	return k.f.applyHow(k.c, how), nil
}

// lastHow is how the newest answer of a branch was made; zero without one.
func lastHow(ctx context.Context, store *session.Store, thread session.ID, branch string) (how threads.How, err error) {
	th, err := store.Load(ctx, thread, session.LoadOptions{})
	if err != nil {
		return how, err
	}
	b, err := th.FindBranch(branch)
	if err != nil {
		return how, err
	}
	for _, t := range th.Path(b.Leaf) {
		if t.Role == session.Assistant {
			how = threads.How{Settings: t.Settings, Seed: t.Seed}
		}
	}
	return how, nil
}

// applyHow changes what the flags say.
func (f *askFlags) applyHow(c *cobra.Command, how threads.How) threads.How {
	set := c.Flags().Changed
	s := &how.Settings
	if set("max-tokens") {
		s.MaxTokens = f.maxTokens
	}
	if f.greedy {
		s.Temperature, s.TopP, how.Seed = 0, 0, 0
	}
	if set("temperature") {
		s.Temperature = f.temperature
	}
	if set("top-p") {
		s.TopP = f.topP
	}
	if set("seed") {
		how.Seed = f.seed
	}
	if set("effort") {
		s.Effort = f.effort
	}
	if f.noThink {
		s.Effort = threads.NoThinking
	}
	return how
}

// howFlags are those that applyHow reads.
var howFlags = []string{"max-tokens", "greedy", "temperature", "top-p", "seed", "effort", "no-think"}

// answer runs one answer and shows it. thinking says whether it begins with
// thinking.
func (k *work) answer(ctx context.Context, thinking bool, do func(context.Context, threads.Request, threads.Listener) (threads.Result, error)) error {
	return braked(ctx, k.f.timeout, func(ctx context.Context, b *brake) error {
		shown := *k.f
		shown.noThink = !thinking
		a := newAnswer(k.e, k.s, &shown)
		a.loaded = k.loaded
		t := &threadAnswer{answer: a, brake: b}
		res, err := do(ctx, k.request(b), t.listener())
		shown.maxTokens = res.How.Settings.MaxTokens
		return t.finish(res, err)
	})
}

// ask answers a question in the thread.
func (k *work) ask(ctx context.Context, question string) error {
	how, err := k.how(ctx)
	if err != nil {
		return err
	}
	return k.answer(ctx, how.Settings.Effort != threads.NoThinking, func(ctx context.Context, req threads.Request, l threads.Listener) (threads.Result, error) {
		if k.f.system != "" {
			if _, err := k.w.Append(ctx, "", session.NewTurn{Role: session.System, Text: k.f.system}); err != nil {
				return threads.Result{Thread: k.w.Thread()}, err
			}
		}
		return k.r.Ask(ctx, k.w, session.NewTurn{Role: session.User, Text: question}, how, req, l)
	})
}

// askThread is ask for an answer that is kept.
func (f *askFlags) askThread(ctx context.Context, c *cobra.Command, s streams, question string) error {
	k, err := f.openWork(ctx, c, s)
	if err != nil {
		return err
	}
	return errors.Join(k.ask(ctx, question), k.close())
}

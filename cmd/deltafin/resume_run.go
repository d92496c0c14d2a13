package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/sample"
	"deltafin/session"
	threads "deltafin/session/run"
)

// errPaused ends a command whose answer can be continued, which has been said.
var errPaused = fmt.Errorf("paused: %w", errReported)

// termGrace is how long the token or pass in hand may still take after SIGTERM,
// so that the program is gone, with everything saved, within five seconds.
const termGrace = 3500 * time.Millisecond

// runFlags are the flags of every command that writes answers of threads.
type runFlags struct {
	snapshots  string
	budget     string
	otherModel bool
}

func (f *runFlags) add(c *cobra.Command) {
	fl := c.Flags()
	fl.StringVar(&f.snapshots, "snapshots", "", "folder for snapshots (default: in the state folder, see deltafin paths)")
	fl.StringVar(&f.budget, "snapshot-budget", "", "most bytes that all snapshots together may take (default: "+bytesText(threads.DefaultBudget)+")")
	fl.BoolVar(&f.otherModel, "other-model", false, "go on although the thread was made with another model; it is read again from the start")
	_ = c.MarkFlagDirname("snapshots")
}

// newRunner makes what joins the threads and the model.
func (f *runFlags) newRunner(store *session.Store, e *engine.Engine) (*threads.Runner, error) {
	dir, err := snapshotDir(f.snapshots)
	if err != nil {
		return nil, err
	}
	opt := threads.Options{Snapshots: dir}
	if f.budget != "" {
		n, err := humanize.ParseBytes(f.budget)
		if err != nil || n == 0 || n > 1<<60 {
			return nil, usage("--snapshot-budget %q: give a size above zero such as 500MB or 20GB", f.budget)
		}
		opt.Budget = int64(n)
	}
	return threads.New(store, e, opt)
}

// A brake pauses a run: on Ctrl+C, on SIGTERM, when the time is up, or when
// nobody reads the answer any more.
type brake struct {
	mu  sync.Mutex // guards below
	why string     // what pulled it first
	c   chan struct{}
}

func (b *brake) pull(why string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.why == "" {
		b.why = why
		close(b.c)
	}
}

func (b *brake) reason() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.why
}

// braked runs f with a brake and with a context that ends only when SIGTERM
// leaves no more time.
func braked(ctx context.Context, timeout time.Duration, f func(context.Context, *brake) error) error {
	b := &brake{c: make(chan struct{})}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() { b.pull("interrupt") })
	defer stop()
	term, release := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer release()
	over := context.AfterFunc(term, func() {
		b.pull("terminated")
		hard := time.AfterFunc(termGrace, cancel)
		context.AfterFunc(work, func() { hard.Stop() })
	})
	defer over()
	if timeout > 0 {
		t := time.AfterFunc(timeout, func() { b.pull("timeout") })
		defer t.Stop()
	}
	return f(work, b)
}

// A threadAnswer shows one answer of a thread as it is written.
type threadAnswer struct {
	*answer
	brake *brake
	have  []threads.Token // of earlier runs, shown before the first new one
	ids   []int           // of the whole answer
	told  bool            // that a pause was understood
}

func (t *threadAnswer) listener() threads.Listener {
	return threads.Listener{
		Begin: func(_ session.ID, have []threads.Token) { t.have = have },
		Prefill: func(p engine.Progress) {
			if !t.told && t.brake.reason() != "" {
				t.told = true
				t.note("pausing when this pass over the prompt is done; Ctrl+C again ends at once")
			}
			t.prefill(p)
		},
		Token: func(tok threads.Token) {
			t.catchUp()
			t.next(tok)
		},
		Stage: func(s threads.Stage) {
			verb := "reading"
			if s.Kind == threads.StageSave {
				verb = "writing"
			}
			t.status.set("%s the snapshot of %d tokens, %s", verb, s.Tokens, bytesText(s.Bytes))
		},
		Notice: func(n threads.Notice) {
			if n.Kind != threads.NoticePaused && n.Kind != threads.NoticeError { // these are said at the end
				t.note("%s", n.Text)
			}
		},
	}
}

// catchUp shows what the answer had before this run.
func (t *threadAnswer) catchUp() {
	have := t.have
	t.have = nil
	for _, tok := range have {
		t.next(tok)
	}
}

func (t *threadAnswer) next(tok threads.Token) {
	t.ids = append(t.ids, int(tok.ID))
	err := t.token(engine.Token{ID: int(tok.ID), Position: tok.Position, Index: tok.Index, Stop: tok.Stop, Elapsed: tok.Elapsed})
	if err != nil {
		t.brake.pull("output")
	}
}

// finish ends the output and says how it went and how to go on.
func (t *threadAnswer) finish(res threads.Result, err error) error {
	t.catchUp()
	t.close()
	if res.Turn != 0 && (err == nil || errors.Is(err, context.Canceled)) {
		t.report(t.sum(res))
	}
	if werr := t.flush(); werr != nil && err == nil {
		err = werr
	}
	id := res.Thread.Short()
	switch {
	case errors.Is(err, session.ErrFull):
		t.note("the disk with your threads is full; the answer is paused at token %d, nothing is lost.\nFree some space, then: deltafin resume %s", res.Tokens, id)
		return errPaused
	case err != nil && !errors.Is(err, context.Canceled):
		if res.Turn != 0 {
			t.note("kept up to token %d; to go on: deltafin resume %s", res.Tokens, id)
		}
		return err
	case res.Status == session.Paused:
		why := ""
		if t.brake.reason() == "timeout" {
			why = ": " + errTimeout.Error()
		}
		t.note("paused at token %d%s; to go on: deltafin resume %s", res.Tokens, why, id)
		return errPaused
	}
	if !t.f.json && !t.f.jsonl {
		t.sumUp(resultOf(res, t.fresh(res)))
		t.note("thread %s; to ask on: deltafin resume %s \"...\"", id, id)
	}
	return nil
}

// sum is the summary of the whole answer; its timings are those of this run.
func (t *threadAnswer) sum(res threads.Result) summary {
	set := res.How.Settings
	sum := t.summary(engine.Request{
		Tokens:   res.Prompt,
		Sampling: sample.Params{Temperature: set.Temperature, TopP: set.TopP, Seed: res.How.Seed},
	}, resultOf(res, t.fresh(res)))
	sum.Tokens = append([]int{}, t.ids...)
	sum.Thread = &threadSummary{res.Thread.String(), res.Turn.String(), res.Status, res.Stop}
	return sum
}

// fresh are the ids that this run generated.
func (t *threadAnswer) fresh(res threads.Result) []int {
	return t.ids[max(len(t.ids)-res.Timing.Decode, 0):]
}

// finish gives the engine's word for why an answer ended.
func finish(stop string) engine.Finish {
	switch stop {
	case threads.StopEnd:
		return engine.Stopped
	case threads.StopLength:
		return engine.Length
	case threads.StopContext:
		return engine.ContextFull
	case threads.StopCancelled:
		return engine.Cancelled
	}
	return engine.Paused
}

// resultOf gives the engine's view of a run.
func resultOf(res threads.Result, ids []int) engine.Result {
	t := res.Timing
	return engine.Result{Tokens: ids, Finish: finish(res.Stop), Reused: t.Reused, Prefilled: t.Prefill, PrefillTime: t.PrefillT, DecodeTime: t.DecodeT}
}

// workingFolder is noted with a new thread; not knowing it is no error.
func workingFolder() string {
	dir, err := os.Getwd()
	if err != nil {
		return ""
	}
	return dir
}

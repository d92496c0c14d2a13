package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/session"
	"deltafin/session/control"
	"deltafin/session/paths"
	jobs "deltafin/session/run/work"
	"deltafin/ssdio/emulate"
)

// deskFlags are the flags of every command that keeps a model at work for a
// screen.
type deskFlags struct {
	model modelFlags
	keep  runFlags
}

func (f *deskFlags) add(c *cobra.Command) {
	f.model.add(c)
	f.model.draft.add(c)
	f.keep.add(c)
}

// A desk is everything behind a screen: the threads, the model, the goroutine that
// answers, and the socket for other processes. It outlives the screen.
type desk struct {
	own    *control.Ownership
	store  *session.Store
	e      *engine.Engine
	d      *jobs.Driver
	cancel context.CancelFunc // breaks the token in hand off
	done   chan struct{}      // the driver has ended
	failed error              // with this; read after done

	limits   []float64              // of emulated drives, bytes a second
	scratch  string                 // folder to remove at the end, "" for none
	terminal atomic.Pointer[string] // that drives; "" when detached
	notices  *notifier              // told of ends; nil for nobody
	asked    func(control.Request)  // hears of take-over and stop; must return at once

	mu      sync.Mutex // guards below
	stream  engine.Streaming
	screen  *backend     // that samples the work; nil without one
	remote  *sampler     // for watchers in other processes, without a screen; nil before the first
	looks   uint64       // changes that the driver does not know of
	refused time.Time    // when a window that asked for the engine was told no
	heard   func() heard // what the engine said last; nil where nobody kept it
	gone    bool         // the engine is being closed
}

// controlDir is the folder of the control socket.
func controlDir() (string, error) {
	p, err := paths.Default()
	if err != nil {
		return "", err
	}
	return filepath.Join(p.State, "control"), nil
}

// whoAmI is this process as others see it.
func whoAmI(s streams) session.Owner {
	host, _ := os.Hostname() // a name for messages; not knowing it is no error
	return session.Owner{PID: os.Getpid(), TTY: terminalName(s.in), Host: host, Started: time.Now()}
}

// terminalName is the terminal behind a stream, "" if there is none or the system
// does not tell.
func terminalName(r io.Reader) string {
	f, ok := r.(*os.File)
	if !ok || !isTerminal(f) {
		return ""
	}
	name, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return ""
	}
	return strings.TrimPrefix(name, "/dev/")
}

// openDesk takes the ownership, opens everything and begins to answer. Another
// owner is a *control.HeldError. asked hears what other processes want of this
// one; see desk.
func (f *deskFlags) openDesk(ctx context.Context, c *cobra.Command, s streams, asked func(control.Request)) (*desk, error) {
	dir, err := controlDir()
	if err != nil {
		return nil, err
	}
	own, err := control.Acquire(dir, whoAmI(s))
	if err != nil {
		return nil, err
	}
	return f.openOwned(ctx, c, s, own, asked)
}

// openOwned is openDesk for who has the ownership already. An error gives it back.
func (f *deskFlags) openOwned(ctx context.Context, c *cobra.Command, s streams, own *control.Ownership, asked func(control.Request)) (*desk, error) {
	k := newDesk(s)
	k.own, k.asked = own, asked
	if err := k.open(ctx, f, c, s); err != nil {
		return nil, errors.Join(err, k.release())
	}
	return k, nil
}

func newDesk(s streams) *desk {
	k := &desk{done: make(chan struct{})}
	tty := terminalName(s.in)
	k.terminal.Store(&tty)
	return k
}

func (k *desk) open(ctx context.Context, f *deskFlags, c *cobra.Command, s streams) (err error) {
	if k.store, err = openThreads(ctx); err != nil {
		return err
	}
	if k.e, err = f.model.open(ctx, c, s); err != nil {
		return err
	}
	r, err := f.keep.newRunner(k.store, k.e)
	if err != nil {
		return err
	}
	k.d = jobs.New(k.store, r, jobs.Options{OtherModel: f.keep.otherModel, MaxTokens: defaultMaxTokens})
	for _, text := range f.model.drives {
		if spec, err := emulate.ParseSpec(text); err == nil { // the engine has opened it, so it can be read
			k.limits = append(k.limits, float64(spec.Limit))
		}
	}
	if err := k.d.Offer(ctx); err != nil {
		return err
	}
	if _, err := k.own.Serve(k); err != nil {
		return err
	}
	k.begin(ctx)
	return nil
}

// begin lets the driver work.
func (k *desk) begin(ctx context.Context) {
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	k.cancel = cancel
	go func() { // ends with k.d.Stop or cancel; close waits for it
		defer close(k.done)
		k.failed = k.d.Run(run)
	}()
}

// close pauses the answer under way, waits until it is saved, and gives everything
// back. When grace is over, the token in hand is broken off; what was shown is kept
// all the same. Zero means to wait as long as it takes.
func (k *desk) close(grace time.Duration) error {
	err := k.d.Stop(context.Background())
	if grace > 0 {
		hard := time.AfterFunc(grace, k.cancel)
		defer hard.Stop()
	}
	<-k.done
	k.cancel()
	k.notices.close() // while the threads' titles can still be read
	return errors.Join(err, k.failed, k.release())
}

// release gives back what was opened, the ownership last: whoever gets it then
// finds everything at rest.
func (k *desk) release() error {
	k.mu.Lock()
	k.gone = true // a watcher's look is over, or finds this
	k.mu.Unlock()
	var errs []error
	if k.e != nil {
		errs = append(errs, k.e.Close())
	}
	if k.store != nil {
		errs = append(errs, k.store.Close())
	}
	if k.scratch != "" {
		errs = append(errs, os.RemoveAll(k.scratch))
	}
	if k.own != nil {
		errs = append(errs, k.own.Close())
	}
	return errors.Join(errs...)
}

// settled waits until nothing is left to do by itself: no answer under way and no
// question of the queue about to begin.
func (k *desk) settled(ctx context.Context) {
	for {
		changed := k.d.Changed()
		st := k.d.State()
		if !st.Phase.Busy() && !k.more(ctx, st) {
			return
		}
		select {
		case <-changed:
		case <-k.done:
			return
		case <-ctx.Done():
			return
		}
	}
}

// more reports whether the queue goes on by itself.
func (k *desk) more(ctx context.Context, st *jobs.State) bool {
	if st.Phase != jobs.Idle || st.Answers == 0 {
		return false
	}
	items, err := k.store.Queue(ctx)
	return err == nil && len(items) > 0
}

// Status implements control.Job.
func (k *desk) Status(sample bool) control.Status {
	out := k.status()
	if sample {
		k.addSample(&out)
	}
	return out
}

func (k *desk) status() control.Status {
	st := k.d.State()
	layer, layers := k.d.Layer()
	out := control.Status{
		Change: st.Change, State: stateWord(st), Screen: *k.terminal.Load(), Model: k.e.Info().Name,
		Thread: st.Thread, Turn: st.Turn, Branch: st.Branch,
		Tokens: len(st.Answer), Prompt: st.Prefill.Tokens, Read: st.Prefill.Fraction(), Left: st.Prefill.Left.Seconds(),
		Rate: st.Rate(30), Notice: st.Notice.Text,
	}
	if st.Phase.Busy() {
		out.Layer, out.Layers, out.Elapsed = layer, layers, time.Since(st.Began).Seconds()
	}
	if st.Err != nil {
		out.Error = st.Err.Error()
	}
	if items, err := k.store.Queue(context.Background()); err == nil {
		out.Queue = len(items)
	}
	if st.Thread != 0 {
		if info, err := k.store.Info(context.Background(), st.Thread); err == nil {
			out.Title = info.Title
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	out.Change += k.looks
	if time.Since(k.refused) < keptShown {
		out.Notice = keptNotice
	}
	if !k.gone && k.e.Streaming(&k.stream) {
		out.HitRate, out.DriveNow = k.stream.Experts.Total.HitRate(), k.stream.Drives.Total.Now
	}
	return out
}

// stateWord is the state as programs read it.
func stateWord(st *jobs.State) string {
	if st.Pausing {
		return "pausing"
	}
	return string(st.Phase)
}

// Do implements control.Job.
func (k *desk) Do(ctx context.Context, r control.Request) error {
	q := jobs.Question{Thread: r.Thread, Text: r.Text, Folder: workingFolder()}
	switch r.Do {
	case control.Pause:
		return k.d.Pause()
	case control.Resume:
		return k.d.Resume(ctx)
	case control.Ask:
		_, err := k.d.Ask(ctx, q)
		return err
	case control.Enqueue:
		_, err := k.d.Enqueue(ctx, q)
		return err
	case control.BreakIn:
		if q.Thread == 0 {
			q.Thread = k.d.State().Thread
		}
		return k.d.BreakIn(ctx, q)
	case control.TakeOver, control.Stop:
		k.refuse(time.Time{})
		k.asked(r)
		return nil
	}
	return fmt.Errorf("the running deltafin cannot do %q: use the same version of both", r.Do)
}

// keptEnd says where an answer stands, for the last line before leaving.
func keptEnd(st *jobs.State) string {
	if st.Thread == 0 {
		return ""
	}
	id := st.Thread.Short()
	switch {
	case st.Phase == jobs.Paused || st.Phase == jobs.Stopped:
		return fmt.Sprintf("paused at token %d; to go on: deltafin resume %s", len(st.Answer), id)
	case st.Last.Status == session.Done:
		return fmt.Sprintf("thread %s; to ask on: deltafin resume %s \"...\"", id, id)
	}
	return ""
}

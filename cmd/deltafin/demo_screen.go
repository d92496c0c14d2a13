package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"deltafin/engine"
	"deltafin/session"
	"deltafin/session/control"
	answers "deltafin/session/run"
	jobs "deltafin/session/run/work"
	"deltafin/tui"
)

// demoScreen shows the demonstration on the screen: threads of its own that are
// removed at the end, and a question that is asked already.
func demoScreen(ctx context.Context, s streams, l *look, question string, o engine.Options) error {
	hup, term := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	signal.Notify(term, syscall.SIGTERM)
	defer signal.Stop(hup)
	defer signal.Stop(term)
	var b *backend
	b = newBackend(func(ctx context.Context, _ string) (*desk, error) {
		o.Notify = b.tell
		k := newDesk(s)
		if err := k.openDemo(ctx, o); err != nil {
			return nil, errors.Join(err, k.release())
		}
		_, err := k.d.Ask(ctx, jobs.Question{Text: question})
		return k, err
	})
	b.start(ctx, "")
	f := &screenFlags{onHangup: hangupStop}
	return f.show(ctx, s, l, b, fullSignals{hup: hup, term: term, asked: make(chan control.Request)})
}

// openDemo opens the demonstration model on its drives, with threads in a folder
// that release removes.
func (k *desk) openDemo(ctx context.Context, o engine.Options) (err error) {
	if k.scratch, err = os.MkdirTemp("", "deltafin-demo-"); err != nil {
		return err
	}
	if k.store, err = session.Open(ctx, k.scratch, nil); err != nil {
		return err
	}
	if k.e, err = engine.Open(ctx, o); err != nil {
		return err
	}
	r, err := answers.New(k.store, k.e, answers.Options{Snapshots: filepath.Join(k.scratch, "snapshots")})
	if err != nil {
		return err
	}
	k.d = jobs.New(k.store, r, jobs.Options{MaxTokens: defaultMaxTokens})
	for _, d := range demoDrives {
		k.limits = append(k.limits, float64(d.limit)*1e3)
	}
	k.begin(ctx)
	return nil
}

var _ tui.Backend = (*backend)(nil)

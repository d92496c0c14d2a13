package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"

	"github.com/spf13/cobra"

	"deltafin/session/control"
	"deltafin/session/paths"
	jobs "deltafin/session/run/work"
	"deltafin/tui"
	"deltafin/tui/theme"
	_ "deltafin/tui/theme/aterm" // answers the question that bubbletea asks before main
)

// A look is the terminal the screen is drawn on, and how.
type look struct {
	in, out *os.File
	theme   *theme.Theme
	themes  func(name string) (*theme.Theme, error)
}

// look finds the terminal that the screen can be drawn on. The error is errNoScreen
// if there is none or none is wanted.
func (f *screenFlags) look(s streams) (*look, error) {
	if f.plain {
		return nil, errNoScreen
	}
	return newLook(s, f.theme)
}

var errNoScreen = errors.New("no terminal to draw on")

func newLook(s streams, name string) (*look, error) {
	in, ok := s.in.(*os.File)
	out, ok2 := s.out.(*os.File)
	if !ok || !ok2 || !isTerminal(in) || !isTerminal(out) || os.Getenv("TERM") == "dumb" {
		return nil, errNoScreen
	}
	d := theme.Detect(os.Getenv, runtime.GOOS)
	if name == "" {
		name = d.Name
	}
	themes := func(name string) (*theme.Theme, error) { return theme.New(name, d.Profile, d.Glyphs) }
	t, err := themes(name)
	if err != nil {
		return nil, err
	}
	return &look{in: in, out: out, theme: t, themes: themes}, nil
}

// fullSignals are what ends a screen from outside.
type fullSignals struct {
	hup, term <-chan os.Signal
	asked     <-chan control.Request
}

// full is deltafin with the whole screen.
func (f *screenFlags) full(ctx context.Context, c *cobra.Command, s streams, l *look, ask func(control.Request), notices *notifier, sig fullSignals) error {
	dir, err := controlDir()
	if err != nil {
		return err
	}
	own, err := control.Acquire(dir, whoAmI(s))
	if err != nil {
		return err
	}
	// Nothing may be written beside the screen.
	quiet := s
	quiet.out, quiet.err, quiet.errTTY = io.Discard, io.Discard, false
	var b *backend
	b = newBackend(func(ctx context.Context, folder string) (*desk, error) {
		flags := f.desk
		flags.model.heard = b
		switch folder {
		case "": // what the flags say
		case tui.DemoModel:
			flags.model.demo = true
		default:
			flags.model.dir = folder
		}
		k, err := flags.openOwned(ctx, c, quiet, own, ask)
		if err != nil {
			// The ownership went with it; another folder may be tried.
			var again error
			if own, again = control.Acquire(dir, whoAmI(s)); again != nil {
				err = errors.Join(err, again)
			}
			return nil, err
		}
		k.notify(notices, b.say)
		return k, nil
	})
	if modelDir(f.desk.model.dir) != "" || c.Flags().Changed("cache") || c.Flags().Changed("memory") {
		b.start(ctx, "")
	}
	err = f.show(ctx, s, l, b, sig)
	if b.k == nil {
		err = errors.Join(err, own.Close())
	}
	return err
}

// show draws until the user leaves or something from outside ends it, and then does
// what that asks for.
func (f *screenFlags) show(ctx context.Context, s streams, l *look, b *backend, sig fullSignals) error {
	detach := make(chan struct{})
	var why ending
	hand := newHandOver(b)
	draw, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var ends sync.WaitGroup
	ends.Go(func() { // ends with draw
		why = hand.outside(draw, sig)
		switch why {
		case stayed:
		case hungUp:
			close(detach)
		default:
			cancel(errTerminated)
		}
	})
	err := tui.Run(draw, tui.Options{
		Backend: hand, Unsent: unsent(s), Theme: l.theme, Look: l.themes, In: l.in, Out: l.out, Detach: detach, Environ: os.Getenv, Save: saveCopy,
	})
	cancel(nil)
	ends.Wait()
	k := b.close()
	if k == nil {
		if errors.Is(err, errTerminated) {
			err = nil
		}
		return err
	}
	left := err
	switch {
	case errors.Is(err, tui.ErrDetached) && k.own != nil: // a demonstration has nobody to come back
		return f.detached(ctx, s, k, sig, why == hungUp)
	case why == terminated:
		return k.close(termGrace)
	case errors.Is(err, errTerminated), errors.Is(err, tui.ErrDetached):
		err = nil
	}
	if errors.Is(left, tui.ErrDetached) {
		fmt.Fprintln(s.err, "a demonstration ends with its window and keeps nothing")
	}
	if why == handedOver {
		fmt.Fprintln(s.err, "another window has taken over: it goes on from here")
	}
	err = errors.Join(err, k.close(0))
	tellKept(s, k)
	return err
}

// tellKept says how to come back to what was asked last.
func tellKept(s streams, k *desk) {
	last := k.d.State()
	switch text := keptEnd(last); {
	case k.scratch != "": // a demonstration keeps nothing
	case text != "":
		fmt.Fprintln(s.err, text)
	case last.Thread != 0:
		fmt.Fprintf(s.err, "thread %s is kept; deltafin shows it again\n", last.Thread.Short())
	}
}

// detached lets the work go on without a screen. The process stays: the model is in
// its memory, and no other process can have it without loading it again.
func (f *screenFlags) detached(ctx context.Context, s streams, k *desk, sig fullSignals, gone bool) error {
	rest := &lineScreen{s: s, k: k, f: f, status: newStatus(s), hup: sig.hup, term: sig.term, asked: sig.asked, phase: jobs.Idle}
	if gone {
		return rest.hangup(ctx)
	}
	prompt := ""
	if runtime.GOOS != "windows" {
		prompt = "\n  Ctrl+Z, then bg   give this prompt back"
	}
	fmt.Fprintf(s.err, `The work goes on in this process (pid %d) without the screen, and ends when
nothing waits. Closing the window stops nothing.%s
  deltafin attach   shows the screen again
  deltafin status   says how far it is
  Ctrl+C            pauses, saves and ends it
`, os.Getpid(), prompt)
	err := rest.alone(ctx, hangupContinue)
	tellKept(s, k)
	return err
}

var errTerminated = errors.New("ended from outside")

// unsent prints what was typed and not sent when the screen ends, so that it is not
// lost with it.
func unsent(s streams) func(text string) {
	return func(text string) { fmt.Fprintf(s.err, "typed and not sent:\n%s\n", printable(text)) }
}

// saveCopy keeps a text that no clipboard takes.
func saveCopy(text string) (string, error) {
	p, err := paths.Default()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(p.State, 0o700); err != nil {
		return "", err
	}
	name := filepath.Join(p.State, "last-copy.md")
	return name, os.WriteFile(name, []byte(text), 0o600)
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/control"
)

// attachEvery is how often a watcher looks for news: what arrives is one token a
// second, and the eye needs no more.
const attachEvery = 250 * time.Millisecond

// newAttach watches what another process does.
func newAttach(s streams) *cobra.Command {
	var plain bool
	var themeName string
	c := &cobra.Command{
		Use:   "attach",
		Short: "Watch the answer that another deltafin is writing",
		Long: `Shows the screen of the running deltafin: its text and its panels. Pausing, going on
and asking work from here; Ctrl+X d leaves, and the work goes on. Ctrl+X o asks the
other window to hand the engine over; the model is then opened here as deltafin
without flags opens it. To give flags, start deltafin with them: it offers the same.

With --plain, and where the output is no terminal, prints the answer under way as it
is written, from its beginning, and ends with it. Progress and thinking, folded to
one line, go to standard error.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if plain && themeName != "" {
				return usage("--theme has no effect with --plain: leave one of them out")
			}
			l, err := newLook(s, themeName)
			switch {
			case plain || errors.Is(err, errNoScreen):
				return attach(c.Context(), s)
			case err != nil:
				return usage("%v", err)
			}
			return attachOrOpen(c, s, l)
		},
	}
	c.Flags().BoolVar(&plain, "plain", false, "add lines only, for screen readers and simple terminals")
	c.Flags().StringVar(&themeName, "theme", "", "dark, light or mono (default: what the terminal says)")
	return c
}

// attachOrOpen watches, and becomes the owner if the engine was handed over.
func attachOrOpen(c *cobra.Command, s streams, l *look) error {
	hup, term := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	signal.Notify(term, syscall.SIGTERM)
	defer signal.Stop(hup)
	defer signal.Stop(term)
	free, err := attachScreen(c.Context(), s, l, fullSignals{hup: hup, term: term}, nil)
	if err != nil || !free {
		return err
	}
	root := c.Root()
	root.SetContext(c.Context())
	return root.RunE(root, nil) // as without a subcommand: its flags have their defaults
}

// errNobody is said where a running deltafin is needed.
var errNobody = errors.New("no deltafin is running here; deltafin status says what was left unfinished")

// newTell steers another process.
func newTell() *cobra.Command {
	var thread string
	c := &cobra.Command{
		Use:   "tell pause|resume|ask|enqueue|break-in|stop [question]",
		Short: "Steer the running deltafin, whether a screen is attached or not",
		Long: `Sends one request to the running deltafin and returns when it was taken:

  pause      stop after the token in hand; resume goes on with the same text
  resume     go on with what was paused, else with the questions that wait
  ask        answer a question now, or queue it if an answer is under way
  enqueue    put a question at the end of the queue
  break-in   end the answer under way and ask in its thread
  stop       pause, save and end the program`,
		Example: `  deltafin tell pause
  deltafin tell ask "And why is that?"`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("tell needs to know what: pause, resume, ask TEXT, enqueue TEXT, break-in TEXT or stop")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			verb, text := control.Verb(args[0]), strings.Join(args[1:], " ")
			needs, ok := tellVerbs[verb]
			switch {
			case !ok:
				return usage("tell %q: the requests are pause, resume, ask, enqueue, break-in and stop", args[0])
			case needs != (strings.TrimSpace(text) != ""):
				return usage("tell %s takes a question: %v", verb, needs)
			case thread != "" && verb != control.Ask && verb != control.Enqueue:
				return usage("--thread needs ask or enqueue")
			}
			return tell(c.Context(), control.Request{Do: verb, Text: text}, thread)
		},
	}
	c.Flags().StringVar(&thread, "thread", "", "thread to ask in (default: a new one)")
	return c
}

// tellVerbs are the requests for people, and whether they need a question.
var tellVerbs = map[control.Verb]bool{control.Pause: false, control.Resume: false, control.Stop: false,
	control.Ask: true, control.Enqueue: true, control.BreakIn: true}

func tell(ctx context.Context, r control.Request, thread string) error {
	if thread != "" {
		store, err := readThreads(ctx)
		if err == nil && store == nil {
			err = usage("no thread %s: %s", thread, nothingAsked)
		}
		if err == nil {
			r.Thread, err = store.FindThread(ctx, thread)
			err = errors.Join(err, store.Close())
		}
		if err != nil {
			return err
		}
	}
	cl, err := dialOwner(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return errNobody
	}
	if err != nil {
		return err
	}
	return errors.Join(cl.Do(ctx, r), cl.Close())
}

// dialOwner opens the socket of the running deltafin; control.ErrNotRunning if there
// is none.
func dialOwner(ctx context.Context) (*control.Client, error) {
	dir, err := controlDir()
	if err != nil {
		return nil, err
	}
	return control.Dial(ctx, dir)
}

// attach follows the running deltafin until its answer ends.
func attach(ctx context.Context, s streams) error {
	cl, err := dialOwner(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return errNobody
	}
	if err != nil {
		return err
	}
	store, err := readThreads(ctx)
	if err == nil && store == nil {
		err = usage("%s", nothingAsked)
	}
	if err != nil {
		return errors.Join(err, cl.Close())
	}
	w := &watcher{s: s, store: store, status: newStatus(s)}
	fmt.Fprintf(s.err, "watching deltafin (%s); Ctrl+C leaves, the work goes on\n", cl.Owner())
	err = cl.Follow(ctx, attachEvery, func(st control.Status) error { return w.show(ctx, st) })
	err = errors.Join(w.end(err), cl.Close(), store.Close())
	if ctx.Err() != nil {
		fmt.Fprintln(s.err, "left; the work goes on")
		return errReported
	}
	return err
}

// errWatched ends a watch: the answer is over.
var errWatched = errors.New("watched to the end")

// A watcher prints an answer from the journal: the socket only says how far it is.
type watcher struct {
	s       streams
	store   *session.Store
	status  *statusLine
	turn    session.ID
	at      int // tokens of turn that were read
	think   int // of them thinking
	wrote   bool
	newline bool // the output ends with one
}

func (w *watcher) show(ctx context.Context, st control.Status) error {
	if st.Turn != w.turn {
		w.finishTurn()
		w.turn, w.at, w.think = st.Turn, 0, 0
	}
	if st.Turn != 0 && st.Tokens > w.at {
		if err := w.read(ctx, st.Thread); err != nil {
			return err
		}
	}
	switch st.State {
	case "idle", "paused", "stopped":
		w.status.clear()
		if st.Queue > 0 && st.State == "idle" {
			break // the next question follows
		}
		w.finishTurn()
		fmt.Fprintln(w.s.err, statusLineOf(&st))
		if st.Error != "" {
			fmt.Fprintln(w.s.err, printable(st.Error))
		}
		return errWatched
	case "decoding": // the text itself is the progress
	default:
		w.status.set("%s", statusLineOf(&st))
	}
	return nil
}

// read prints what the journal has beyond what was printed.
func (w *watcher) read(ctx context.Context, thread session.ID) error {
	toks, _, err := w.store.Tokens(ctx, thread, w.turn, w.at)
	if err != nil {
		return err
	}
	text := ""
	for _, t := range toks {
		switch t.Channel {
		case session.InThinking:
			w.think++
		case session.InAnswer:
			text += t.Text
		}
	}
	w.at += len(toks)
	if text == "" {
		return nil
	}
	if !w.wrote && w.think > 0 {
		w.status.clear()
		fmt.Fprintf(w.s.err, "thought for %d tokens\n", w.think)
	}
	if w.s.outTTY {
		text = printable(text)
	}
	w.status.clear()
	w.wrote, w.newline = true, text[len(text)-1] == '\n'
	if _, err := fmt.Fprint(w.s.out, text); err != nil {
		return fmt.Errorf("writing the answer: %w", err)
	}
	return nil
}

// finishTurn ends the text of an answer with a line feed.
func (w *watcher) finishTurn() {
	w.status.clear()
	if w.wrote && !w.newline {
		fmt.Fprintln(w.s.out)
	}
	w.wrote, w.newline = false, false
}

func (w *watcher) end(err error) error {
	w.finishTurn()
	if errors.Is(err, errWatched) {
		return nil
	}
	return err
}

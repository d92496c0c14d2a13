package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/control"
	jobs "deltafin/session/run/work"
)

// screenFlags are the flags of deltafin without a subcommand.
type screenFlags struct {
	desk     deskFlags
	onHangup string
	plain    bool
	theme    string
	notify   string
}

// What a closed terminal does to the work.
const (
	hangupContinue = "continue" // the answer and the queue go on, then the program ends
	hangupPause    = "pause"    // the answer pauses; the program stays, with the model loaded
	hangupStop     = "stop"     // pause, save and end
)

func (f *screenFlags) add(c *cobra.Command) {
	f.desk.add(c)
	c.Flags().BoolVar(&f.plain, "plain", false, "a conversation that only adds lines, for screen readers and simple terminals")
	c.Flags().StringVar(&f.theme, "theme", "", "dark, light or mono (default: what the terminal says)")
	c.Flags().StringVar(&f.notify, "notify-command", "", "command to run when an answer has ended; DELTAFIN_TITLE, _STATE, _THREAD, _TOKENS and _SECONDS tell it what (no shell: name one if you need it)")
	c.Flags().StringVar(&f.onHangup, "on-hangup", hangupContinue, "when the terminal is closed: continue, pause or stop")
}

// run is deltafin on a terminal.
func (f *screenFlags) run(ctx context.Context, c *cobra.Command, s streams) error {
	switch f.onHangup {
	case hangupContinue, hangupPause, hangupStop:
	default:
		return usage("--on-hangup %q: give continue, pause or stop", f.onHangup)
	}
	// Signals are caught before the model is opened: a terminal that is closed while
	// it loads must end the program as well.
	hup, term := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	signal.Notify(term, syscall.SIGTERM)
	defer signal.Stop(hup)
	defer signal.Stop(term)
	asked := make(chan control.Request, 4)
	ask := func(r control.Request) {
		select {
		case asked <- r:
		default: // four are waiting already
		}
	}
	notices, err := newNotifier(f.notify)
	if err != nil {
		return err
	}
	if f.plain && f.theme != "" {
		return usage("--theme has no effect with --plain: leave one of them out")
	}
	look, err := f.look(s)
	if err != nil && !errors.Is(err, errNoScreen) {
		return usage("%v", err)
	}
	sig := fullSignals{hup: hup, term: term, asked: asked}
	for {
		if look != nil {
			err = f.full(ctx, c, s, look, ask, notices, sig)
		} else {
			err = f.lines(ctx, c, s, ask, notices, sig)
		}
		var held *control.HeldError
		if !errors.As(err, &held) {
			return err
		}
		free := false
		if look != nil {
			free, err = attachScreen(ctx, s, look, sig, held)
		} else {
			free, err = secondInstance(ctx, s, held)
		}
		if err != nil || !free {
			return err
		}
	}
}

// lines is deltafin on a terminal that lines are only added to.
func (f *screenFlags) lines(ctx context.Context, c *cobra.Command, s streams, ask func(control.Request), notices *notifier, sig fullSignals) error {
	k, err := f.desk.openDesk(ctx, c, s, ask)
	if err != nil {
		return err
	}
	l := &lineScreen{s: s, k: k, f: f, status: newStatus(s), hup: sig.hup, term: sig.term, asked: sig.asked, phase: jobs.Idle, told: make(chan string, 1)}
	k.notify(notices, func(text string) { l.told <- text }) // once, so it never waits
	return l.run(ctx)
}

// secondInstance offers to watch the owner, or to ask it for the engine, where there
// is no screen. free says that the engine can be had now.
func secondInstance(ctx context.Context, s streams, held *control.HeldError) (free bool, err error) {
	fmt.Fprintf(s.err, "Another deltafin (%s) holds this engine. Press a to watch it, t to take over, q to leave.\n", ownerText(held.Owner))
	in := bufio.NewScanner(s.in)
	sure := false
	for in.Scan() {
		switch text := strings.ToLower(strings.TrimSpace(in.Text())); {
		case text == "a":
			return false, attach(ctx, s)
		case text == "q":
			return false, nil
		case text == "y" && sure:
			return askOver(ctx, s)
		case text == "t":
			sure = true
			fmt.Fprintln(s.err, "The answer there pauses, all of it is saved, and that window ends. y and Enter asks for it, q and Enter leaves.")
			continue
		}
		sure = false
		fmt.Fprintln(s.err, "a and Enter watches it, t and Enter takes over, q and Enter leaves.")
	}
	return false, in.Err()
}

// A lineScreen is a conversation that only ever adds lines: it draws nothing over,
// so it is right for every terminal and for screen readers.
type lineScreen struct {
	s      streams
	k      *desk
	f      *screenFlags
	status *statusLine

	hup, term <-chan os.Signal
	asked     <-chan control.Request
	told      chan string      // by other goroutines, to be said
	asking    <-chan time.Time // when the engine is handed over; nil unless somebody asks for it

	thread  session.ID // to ask on in; zero: a new one
	turn    session.ID // of the answer being shown
	shown   int        // tokens of it that were looked at
	wrote   bool       // some of its text is on the screen
	answers int        // ends that were told
	phase   jobs.Phase
	notice  string
}

const lineHelp = `Type a question and press Enter. While an answer is written, further questions wait
in the queue. An empty line goes on with what was paused.
  /pause    stop after the token in hand      /new     the next question begins a thread
  /quit     pause, save and leave             /help    this text
Closing the terminal stops nothing: deltafin attach shows the answer again.`

func (l *lineScreen) run(ctx context.Context) error {
	fmt.Fprintln(l.s.err, "Type a question and press Enter; /help tells the rest.")
	lines := make(chan string)
	left := make(chan struct{})
	defer close(left)
	// Reading a terminal cannot be broken off: this goroutine ends with the next
	// line, or with the process, which follows at once.
	go func() {
		defer close(lines)
		for in := bufio.NewScanner(l.s.in); in.Scan(); {
			select {
			case lines <- in.Text():
			case <-left:
				return
			}
		}
	}()
	l.offer(ctx)
	for {
		changed := l.k.d.Changed()
		st := l.k.d.State()
		l.show(st)
		if lines == nil && !st.Phase.Busy() && !l.k.more(ctx, st) {
			return l.leave(0) // the input has ended, and so has the work
		}
		select {
		case text, ok := <-lines:
			if !ok {
				lines = nil // end of input, or a terminal that hangs up: finish what is under way
			} else if quit := l.line(ctx, text); quit {
				return l.leave(0)
			}
		case <-changed:
		case text := <-l.told:
			l.say("%s", text)
		case <-l.hup:
			return l.hangup(ctx)
		case <-l.term:
			l.say("terminated")
			return errors.Join(l.k.close(termGrace), l.last())
		case <-ctx.Done():
			return l.leave(0)
		case r := <-l.asked:
			if r.Do == control.Stop {
				return l.leave(0)
			}
			if r.Do == control.TakeOver {
				l.say("another deltafin (%s) asks to take over: this one pauses, saves and ends in %.0f s. /keep and Enter keeps the engine here.", printable(r.Text), handOverLag.Seconds())
				l.asking = time.After(handOverLag)
			}
		case <-l.asking:
			l.say("another window takes over")
			return l.leave(0)
		case <-l.k.done:
			return l.leave(0)
		}
	}
}

// offer says what an earlier run left behind.
func (l *lineScreen) offer(ctx context.Context) {
	list, err := l.k.store.Unfinished(ctx)
	if err == nil && len(list) > 0 {
		how := "was paused"
		if list[0].Status == session.Writing {
			how = "was cut off; all of it up to the last token is kept"
		}
		l.say("The answer in \"%s\" %s. Press Enter to go on from there.", printable(list[0].Title), how)
		l.thread = list[0].ID
	}
	if items, err := l.k.store.Queue(ctx); err == nil && len(items) > 0 {
		l.say("%d questions wait in the queue. Press Enter to begin.", len(items))
	}
}

// line obeys a line of input; true leaves.
func (l *lineScreen) line(ctx context.Context, text string) bool {
	var err error
	switch text = strings.TrimSpace(text); {
	case text == "/quit":
		return true
	case text == "/help":
		l.say("%s", lineHelp)
	case text == "/new":
		l.thread = 0
		l.say("the next question begins a new thread")
	case text == "/pause":
		err = l.k.d.Pause()
	case text == "/keep" && l.asking != nil:
		l.asking = nil
		l.k.refuse(time.Now())
		l.say("the engine stays here")
	case text == "":
		err = l.k.d.Resume(ctx)
	case strings.HasPrefix(text, "/"):
		l.say("there is no %s; /help lists what there is", printable(text))
	default:
		var id session.ID
		if id, err = l.k.d.Ask(ctx, jobs.Question{Thread: l.thread, Text: text, Folder: workingFolder()}); err == nil && id != 0 {
			l.say("queued (%s): it follows when this answer has ended", id.Short())
		}
	}
	if err != nil {
		l.say("%v", err)
	}
	return false
}

// show prints what is new.
func (l *lineScreen) show(st *jobs.State) {
	if st.Thread != 0 && st.Phase.Busy() {
		l.thread = st.Thread
	}
	if st.Turn != l.turn {
		l.turn, l.shown, l.wrote = st.Turn, 0, false
		if st.Phase == jobs.Paused {
			l.shown = len(st.Answer) // told by offer; shown when it goes on
		}
	}
	if st.Notice.Text != l.notice {
		if l.notice = st.Notice.Text; l.notice != "" {
			l.say("%s", printable(l.notice))
		}
	}
	l.text(st)
	if st.Phase == l.phase && st.Answers == l.answers {
		l.progress(st)
		return
	}
	ended := l.phase.Busy() && !st.Phase.Busy() || st.Answers != l.answers
	l.phase, l.answers = st.Phase, st.Answers
	switch {
	case ended && st.Err != nil:
		l.say("stopped: %s\nPress Enter to try again; nothing that was shown is lost.", printable(oneLine(st.Err.Error())))
	case ended:
		t := st.Last.Timing
		l.say("%d tokens read in %s, %d written in %s, %.1f tokens/s\n%s", t.Prefill, duration(t.PrefillT), t.Decode, duration(t.DecodeT), rate(t.Decode-1, t.DecodeT), keptEnd(st))
	default:
		l.progress(st)
	}
}

// text prints the words of the answer that are not on the screen yet.
func (l *lineScreen) text(st *jobs.State) {
	text := ""
	for _, t := range st.Answer[min(l.shown, len(st.Answer)):] {
		if t.Channel == session.InAnswer {
			text += t.Text
		}
	}
	l.shown = len(st.Answer)
	if text == "" {
		return
	}
	l.status.clear()
	if !l.wrote && st.Think > 0 {
		fmt.Fprintf(l.s.err, "thought for %s, %d tokens\n", duration(st.Thought), st.Think)
	}
	l.wrote = true
	fmt.Fprint(l.s.out, printable(text))
}

func (l *lineScreen) progress(st *jobs.State) {
	switch st.Phase {
	case jobs.Prefill:
		p := st.Prefill
		l.status.set("reading the question: %.0f %% of %d tokens, layer %d of %d, about %s left", 100*p.Fraction(), p.Tokens, p.Layer, p.Layers, duration(p.Left))
	case jobs.Thinking:
		l.status.set("thinking: %d tokens, %.1f tokens/s", st.Think, st.Rate(30))
	case jobs.Restoring, jobs.Saving:
		if st.Stage.Tokens > 0 {
			l.status.set("%s: the state after %d tokens, %s", st.Phase, st.Stage.Tokens, bytesText(st.Stage.Bytes))
		}
	}
}

// say prints a line that is not of the answer.
func (l *lineScreen) say(format string, args ...any) {
	l.status.clear()
	if l.wrote {
		fmt.Fprintln(l.s.out)
		l.wrote = false
	}
	fmt.Fprintln(l.s.err, strings.TrimRight(fmt.Sprintf(format, args...), "\n"))
}

// leave pauses what is under way, saves, and says how to come back.
func (l *lineScreen) leave(grace time.Duration) error {
	if l.k.d.State().Phase.Busy() {
		l.say("pausing after the token in hand")
	}
	return errors.Join(l.k.close(grace), l.last())
}

// last is the last line: how to come back to an answer that waits.
func (l *lineScreen) last() error {
	st := l.k.d.State()
	l.show(st)
	if st.Phase != jobs.Paused && st.Phase != jobs.Stopped {
		return nil
	}
	l.say("%s", keptEnd(st))
	return nil
}

// hangup goes on without a terminal, as --on-hangup says.
func (l *lineScreen) hangup(ctx context.Context) error {
	if st := l.k.d.State(); st.Thread != 0 && st.Phase.Busy() {
		// For whoever reads the thread later; that it cannot be noted stops nothing.
		_ = l.k.store.AddEvent(context.WithoutCancel(ctx), st.Thread, st.Turn, "detached", "the terminal was closed; the work went on without it")
	}
	l.s.out, l.s.err = io.Discard, io.Discard
	l.status.w = io.Discard
	return l.alone(context.WithoutCancel(ctx), l.f.onHangup)
}

// alone works without a screen until nothing is left to do, or something from outside
// ends it. how is what onHangup says.
func (l *lineScreen) alone(ctx context.Context, how string) error {
	nobody := ""
	l.k.terminal.Store(&nobody)
	settled := make(chan struct{})
	wait, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	switch how {
	case hangupStop:
		return l.k.close(0)
	case hangupPause:
		if err := l.k.d.Pause(); err != nil && !errors.Is(err, jobs.ErrNothing) {
			return errors.Join(err, l.k.close(0))
		}
	default:
		go func() { // ends with the work, or with cancel above
			defer close(settled)
			l.k.settled(wait)
		}()
	}
	for {
		select {
		case <-settled:
			return l.k.close(0)
		case <-l.k.done:
			return l.k.close(0)
		case <-ctx.Done(): // Ctrl+C on a terminal that is still there
			return l.k.close(0)
		case <-l.term:
			return l.k.close(termGrace)
		case r := <-l.asked:
			if r.Do == control.Stop || r.Do == control.TakeOver { // nobody sits here to keep it
				return l.k.close(0)
			}
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"deltafin/session"
	"deltafin/session/control"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// A remote is the work of another process as the screen sees it: the figures come
// through its socket, the text from the journal, and wishes go through the socket.
// What the journal alone can answer is the backend's.
type remote struct {
	*backend
	leave func(cause error) // ends the screen
	owner session.Owner     // of the engine
	who   string            // this window, as the owner is told

	asked  atomic.Bool // it was asked to hand over
	turn   session.ID  // of the answer followed; these two belong to follow
	tokens []session.Token

	mu   sync.Mutex // guards below
	card *pane.Card // of this window, over what the owner shows; nil for none
}

// Why a watching screen ends.
var (
	errLeft     = errors.New("left; the work goes on")
	errTakeOver = errors.New("the engine is free to be taken")
)

// errWatching is said to a wish that only the owner can fulfil.
var errWatching = errors.New("this window only watches: pausing, going on and asking work from here, this does not. Nothing was changed. Ctrl+X o asks the other window to hand over")

func newRemote(store *session.Store, owner session.Owner, who string, leave func(error)) *remote {
	b := newBackend(nil)
	b.k = &desk{store: store}
	return &remote{backend: b, owner: owner, who: who, leave: leave}
}

// What the Choices of a watching screen's cards do. Those with a slash are commands of
// the screen itself.
const (
	doWatch    = "watch"
	doTake     = "take"
	doTakeOver = "/take-over"
	doQuit     = "/quit"
)

// greet tells a second start whom it has met.
func (r *remote) greet() {
	r.put(pane.NewCard("This engine is in use",
		fmt.Sprintf("Another deltafin (%s) holds this engine.", ownerText(r.owner)), "Nothing is disturbed.", "Press a to watch it, t to take over, q to leave.",
		pane.Choice{Key: "a", Label: "watch it", Do: doWatch}, pane.Choice{Key: "t", Label: "take over", Do: doTakeOver}, pane.Choice{Key: "q", Label: "leave", Do: doQuit}))
}

// ownerText is a process as people read it.
func ownerText(o session.Owner) string {
	s := fmt.Sprintf("pid %d, started %s", o.PID, o.Started.Local().Format("15:04"))
	if o.TTY != "" {
		s += " on " + printable(o.TTY)
	}
	return s
}

// put shows a card.
func (r *remote) put(c *pane.Card) {
	r.mu.Lock()
	r.card = c
	r.mu.Unlock()
	again := *r.newest.Load()
	r.publish(&again)
}

// Snapshot implements tui.Backend.
func (r *remote) Snapshot(dst *tui.Sample) {
	r.backend.Snapshot(dst)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.card != nil {
		dst.Card = r.card
	}
}

// follow shows what the owner does until ctx or the owner ends.
func (r *remote) follow(ctx context.Context, cl *control.Client) {
	err := cl.Follow(ctx, attachEvery, func(st control.Status) error {
		r.show(ctx, &st)
		return nil
	})
	switch {
	case ctx.Err() != nil:
		return
	case r.asked.Load():
		r.leave(errTakeOver)
		return
	}
	s := *r.newest.Load()
	s.State, s.Pausing, s.Ended, s.Notice = pane.Idle, false, time.Now(), ""
	r.publish(&s)
	quit := pane.Choice{Key: "q", Label: "leave", Do: doQuit}
	if err != nil && !errors.Is(err, control.ErrNotRunning) {
		r.put(pane.NewCard("The connection broke", "The other deltafin cannot be heard any more: "+oneLine(err.Error())+".", "Its work is not affected.",
			"Press q to leave; deltafin attach comes back.", quit))
		return
	}
	r.put(pane.NewCard("Nothing to watch any more", "The deltafin that was watched has ended.", "All it wrote is saved.",
		"Press t to take the engine here, or q to leave.", pane.Choice{Key: "t", Label: "take the engine", Do: doTake}, quit))
}

// show publishes a status.
func (r *remote) show(ctx context.Context, st *control.Status) {
	s := decodeSample(st, time.Now())
	// The figures may be a moment older or newer; the text must be of the turn it bears.
	s.Thread, s.Turn, s.Branch = st.Thread, st.Turn, st.Branch
	if st.Turn != r.turn {
		r.turn, r.tokens = st.Turn, nil
	}
	if st.Turn != 0 && st.Tokens > len(r.tokens) {
		toks, _, err := r.k.store.Tokens(ctx, st.Thread, st.Turn, len(r.tokens))
		if err != nil {
			s.Notice = "The text cannot be read just now: " + oneLine(err.Error())
		}
		r.tokens = append(r.tokens, toks...)
	}
	s.Tokens = r.tokens
	if st.Notice == keptNotice {
		s.Notice = keptNotice
		r.asked.Store(false)
	}
	switch {
	case r.asked.Load():
		s.Notice = "The other window was asked to hand over: it pauses, saves and ends, unless somebody there keeps it."
	case s.Notice == "":
		s.Notice = r.driver(st.Screen)
	}
	if s.Card != nil {
		s.Card.Choices = nil
		if s.State == pane.Stopped || s.State == pane.Paused {
			s.Card.Choices = []pane.Choice{tryAgain}
		}
	}
	r.publish(s)
}

// driver is the line that says who is in charge; screen is "" for nobody.
func (r *remote) driver(screen string) string {
	if screen == "" {
		return fmt.Sprintf("Pid %d works here without a window; ctrl+x o takes over.", r.owner.PID)
	}
	return fmt.Sprintf("Another window drives this engine (pid %d, %s); ctrl+x o takes over.", r.owner.PID, printable(screen))
}

// do sends the owner a request.
func (r *remote) do(ctx context.Context, req control.Request) error {
	cl, err := dialOwner(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return errNobody
	}
	if err != nil {
		return err
	}
	return errors.Join(cl.Do(ctx, req), cl.Close())
}

func (r *remote) question(ctx context.Context, do control.Verb, q tui.Question) error {
	text, _, err := attachText(q.Text, q.Files)
	if err != nil {
		return err
	}
	return r.do(ctx, control.Request{Do: do, Text: text, Thread: q.Thread})
}

// Ask implements tui.Backend, as do the methods below.
func (r *remote) Ask(ctx context.Context, q tui.Question) error {
	return r.question(ctx, control.Ask, q)
}

// BreakIn asks at once.
func (r *remote) BreakIn(ctx context.Context, q tui.Question) error {
	return r.question(ctx, control.BreakIn, q)
}

// Pause pauses the owner.
func (r *remote) Pause(ctx context.Context) error {
	return r.do(ctx, control.Request{Do: control.Pause})
}

// Resume lets the owner go on.
func (r *remote) Resume(ctx context.Context) error {
	return r.do(ctx, control.Request{Do: control.Resume})
}

// Choose does what a card offers; doWatch needs nothing.
func (r *remote) Choose(ctx context.Context, do string) error {
	switch do {
	case tryAgain.Do:
		return r.Resume(ctx)
	case doTake:
		r.leave(errTakeOver)
	}
	return nil
}

// takeOver asks the owner to hand over.
func (r *remote) takeOver(ctx context.Context) error {
	if err := r.do(ctx, control.Request{Do: control.TakeOver, Text: r.who}); err != nil {
		return err
	}
	r.asked.Store(true)
	return nil
}

// Open is the owner's to do.
func (r *remote) Open(context.Context, string) error { return errWatching }

// Move is the owner's to do.
func (r *remote) Move(context.Context, session.ID, int) error { return errWatching }

// Remove is the owner's to do.
func (r *remote) Remove(context.Context, session.ID) error { return errWatching }

// Rename is the owner's to do.
func (r *remote) Rename(context.Context, session.ID, string) error { return errWatching }

// Fork is the owner's to do.
func (r *remote) Fork(context.Context, session.ID, session.ID) (string, error) {
	return "", errWatching
}

// Regenerate is the owner's to do.
func (r *remote) Regenerate(context.Context, session.ID, session.ID) error { return errWatching }

// Undo is the owner's to do.
func (r *remote) Undo(context.Context, session.ID, string) error { return errWatching }

// Redo is the owner's to do.
func (r *remote) Redo(context.Context, session.ID, string) error { return errWatching }

// Estimate needs the model, which the owner has.
func (r *remote) Estimate(context.Context, tui.Question) (tui.Cost, error) {
	return tui.Cost{}, errWatching
}

// attachScreen watches the owner on the whole screen. met is what a start that wanted
// the engine has met; nil for who came to watch. free says that the engine can be had:
// it was handed over, or its owner has ended and the user wants it here.
func attachScreen(ctx context.Context, s streams, l *look, sig fullSignals, met *control.HeldError) (free bool, err error) {
	cl, err := dialOwner(ctx)
	switch {
	case errors.Is(err, control.ErrNotRunning) && met != nil:
		return false, fmt.Errorf("another deltafin (%s) holds this engine and has no model open yet, so there is nothing to watch: go on there, or end it and start again", ownerText(met.Owner))
	case errors.Is(err, control.ErrNotRunning):
		return false, errNobody
	case err != nil:
		return false, err
	}
	store, err := readThreads(ctx)
	if err == nil && store == nil {
		err = usage("%s", nothingAsked)
	}
	if err != nil {
		return false, errors.Join(err, cl.Close())
	}
	draw, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r := newRemote(store, cl.Owner(), whoAmI(s).String(), cancel)
	// The first frame is the work with its figures, not an empty screen.
	if err := cl.Follow(ctx, control.MinEvery, func(st control.Status) error { r.show(ctx, &st); return errWatched }); !errors.Is(err, errWatched) {
		return false, errors.Join(err, cl.Close(), store.Close())
	}
	if met != nil {
		r.greet()
	}
	var ends sync.WaitGroup // both end with draw
	ends.Go(func() { r.follow(draw, cl) })
	ends.Go(func() {
		select {
		case <-sig.hup:
			cancel(errLeft)
		case <-sig.term:
			cancel(errLeft)
		case <-draw.Done():
		}
	})
	err = tui.Run(draw, tui.Options{
		Backend: r, Unsent: unsent(s), Theme: l.theme, Look: l.themes, In: l.in, Out: l.out, Environ: os.Getenv, Save: saveCopy, TakeOver: r.takeOver,
	})
	cancel(nil)
	ends.Wait()
	end := errors.Join(cl.Close(), store.Close())
	switch {
	case errors.Is(err, errTakeOver):
		return end == nil, errors.Join(end, waitFree(ctx, s))
	case err == nil, errors.Is(err, errLeft), errors.Is(err, tui.ErrDetached):
		fmt.Fprintln(s.err, "left; the work goes on: deltafin attach shows it again")
		return false, end
	}
	return false, errors.Join(err, end)
}

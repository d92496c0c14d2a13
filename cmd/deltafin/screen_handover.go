package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"deltafin/session/control"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// handOverLag is how long somebody at the owner's screen can keep the engine when
// another window asks for it: nobody may sit there.
const handOverLag = 10 * time.Second

// freeLimit is how long a process that has said goodbye may take to give its lock back.
const freeLimit = 10 * time.Second

// keptNotice is what the window that asked is told when it does not get the engine.
const keptNotice = "The other window keeps the engine: somebody there said so."

// doKeep is what the Choice of the card about handing over does.
const doKeep = "keep"

// A handOver is the backend with a card over it while another window asks for the
// engine.
type handOver struct {
	*backend
	kept chan struct{} // somebody at this screen keeps the engine

	mu   sync.Mutex // guards below
	card *pane.Card
}

func newHandOver(b *backend) *handOver {
	return &handOver{backend: b, kept: make(chan struct{}, 1)}
}

// ask shows the card. Each request has another text, so that one that was put away
// does not hide the next.
func (h *handOver) ask(who string, now time.Time) {
	h.put(pane.NewCard("Another window asks for the engine",
		fmt.Sprintf("Another deltafin (%s) asks to take over, at %s.", printable(who), now.Format("15:04:05")),
		fmt.Sprintf("In %.0f s the answer pauses, all of it is saved, and this window ends.", handOverLag.Seconds()),
		"Press k on an empty line to keep the engine here.", pane.Choice{Key: "k", Label: "keep it here", Do: doKeep}))
}

func (h *handOver) put(c *pane.Card) {
	h.mu.Lock()
	h.card = c
	h.mu.Unlock()
	h.nudge()
}

// keep tells the window that asked that it does not get the engine.
func (h *handOver) keep() {
	h.put(nil)
	if k, err := h.desk(); err == nil {
		k.refuse(time.Now())
	}
}

// An ending is why a screen ends from outside.
type ending int

const (
	stayed     ending = iota // nothing from outside did it
	hungUp                   // the terminal has gone
	terminated               // SIGTERM: be quick
	told                     // another process wants it to end
	handedOver               // another process wants the engine
)

// outside waits for what ends the screen, until ctx ends.
func (h *handOver) outside(ctx context.Context, sig fullSignals) ending {
	var late <-chan time.Time
	for {
		select {
		case <-sig.hup:
			return hungUp
		case <-sig.term:
			return terminated
		case r := <-sig.asked:
			switch r.Do {
			case control.Stop:
				return told
			case control.TakeOver:
				h.ask(r.Text, time.Now())
				late = time.After(handOverLag)
			}
		case <-h.kept:
			late = nil
			h.keep()
		case <-late:
			return handedOver
		case <-ctx.Done():
			return stayed
		}
	}
}

// Snapshot implements tui.Backend.
func (h *handOver) Snapshot(dst *tui.Sample) {
	h.backend.Snapshot(dst)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.card != nil {
		dst.Card = h.card
	}
}

// Choose implements tui.Backend.
func (h *handOver) Choose(ctx context.Context, do string) error {
	if do != doKeep {
		return h.backend.Choose(ctx, do)
	}
	select {
	case h.kept <- struct{}{}:
	default: // said already
	}
	return nil
}

// keptShown is how long those who follow are told that they do not get the engine:
// who comes later has not asked.
const keptShown = 5 * time.Second

// refuse lets those who follow hear that they do not get the engine; the zero time
// takes it back.
func (k *desk) refuse(now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refused = now
	k.looks++
}

// askOver asks the owner for the engine and waits for it.
func askOver(ctx context.Context, s streams) (free bool, err error) {
	cl, err := dialOwner(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return true, nil // it has just ended
	}
	if err != nil {
		return false, err
	}
	err = cl.Do(ctx, control.Request{Do: control.TakeOver, Text: whoAmI(s).String()})
	if err == nil {
		fmt.Fprintln(s.err, "Asked. It pauses, saves and ends, unless somebody there keeps it. Ctrl+C leaves.")
		err = cl.Follow(ctx, attachEvery, func(st control.Status) error {
			if st.Notice == keptNotice {
				return errKept
			}
			return nil
		})
	}
	if end := cl.Close(); err == nil || errors.Is(err, control.ErrNotRunning) {
		return true, errors.Join(end, waitFree(ctx, s))
	}
	return false, err
}

var errKept = errors.New("the other window keeps the engine: somebody there said so. Nothing was changed; deltafin attach watches it")

// waitFree waits until an owner that has ended has given the engine back.
func waitFree(ctx context.Context, s streams) error {
	dir, err := controlDir()
	if err != nil {
		return err
	}
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	late := time.NewTimer(freeLimit)
	defer late.Stop()
	for {
		own, err := control.Acquire(dir, whoAmI(s))
		if err == nil {
			return own.Close()
		}
		var held *control.HeldError
		if !errors.As(err, &held) {
			return err
		}
		select {
		case <-look.C:
		case <-late.C:
			return fmt.Errorf("it was asked to hand over and has not done so: %w", held)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

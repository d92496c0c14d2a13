package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"deltafin/engine"
	"deltafin/engine/memory"
	"deltafin/engine/trunk"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// A backend is a desk as the screen sees it: it implements tui.Backend. It opens the
// desk itself, while the screen is there already.
type backend struct {
	// open opens the desk with a model's folder, "" for what the flags say.
	open func(ctx context.Context, folder string) (*desk, error)

	newest  atomic.Pointer[tui.Sample]
	opening sync.WaitGroup
	stop    chan struct{} // closed by close: watch ends
	watched sync.WaitGroup
	poke    chan struct{} // something changed that the driver does not know of

	mu      sync.Mutex // guards below
	k       *desk      // nil: no model yet
	change  chan struct{}
	busy    bool // a model is being opened
	heard   heard
	loading pane.Progress // while it is opened
}

func newBackend(open func(ctx context.Context, folder string) (*desk, error)) *backend {
	b := &backend{open: open, stop: make(chan struct{}), poke: make(chan struct{}, 1), change: make(chan struct{})}
	b.newest.Store(&tui.Sample{State: pane.Setup})
	return b
}

// heard is what the engine said last.
type heard struct {
	notice string
	memory *memory.Notice // while the cache is smaller than planned
}

// start opens the model in the background and begins to publish.
func (b *backend) start(ctx context.Context, folder string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy || b.k != nil {
		return
	}
	b.busy, b.loading = true, pane.Progress{Step: "opening the model"}
	b.publishLocked(&tui.Sample{State: pane.Loading, Loading: b.loading})
	opened := make(chan struct{})
	b.opening.Add(2)
	go b.clock(opened)
	go func() { // close waits for it
		defer b.opening.Done()
		k, err := b.open(ctx, folder)
		close(opened)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy = false
		if err != nil {
			b.publishLocked(&tui.Sample{State: pane.Setup, Card: notOpened(folder, err)})
			return
		}
		b.k = k
		k.shownBy(b)
		b.watched.Add(1)
		go b.watch(k)
	}()
}

// clock shows how long opening takes, until it is over.
func (b *backend) clock(opened <-chan struct{}) {
	defer b.opening.Done()
	begun, tick := time.Now(), time.NewTicker(sampleMost)
	defer tick.Stop()
	for {
		select {
		case <-opened:
			return
		case now := <-tick.C:
			b.mu.Lock()
			if b.busy {
				b.loading.Took = now.Sub(begun)
				b.publishLocked(&tui.Sample{State: pane.Loading, Loading: b.loading})
			}
			b.mu.Unlock()
		}
	}
}

// loaded notes how far the weights that every token uses have been read.
func (b *backend) loaded(p trunk.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.loading.Step = fmt.Sprintf("reading the weights that every token uses, %s of %s", memory.Text(p.Done), memory.Text(p.Total))
	b.loading.Share = float64(p.Done) / float64(max(p.Total, 1))
}

// desk is what was opened, or the error that there is nothing yet.
func (b *backend) desk() (*desk, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.k == nil {
		return nil, errors.New("no model is open yet: give its folder, or press Enter for the demonstration model")
	}
	return b.k, nil
}

// tell shows what the engine has to say. It is called from any goroutine.
func (b *backend) tell(n engine.Notice) {
	b.mu.Lock()
	switch {
	case n.Memory == nil:
		b.heard.notice = n.Text
	case n.Memory.Short || n.Memory.To < n.Memory.From:
		b.heard.memory = n.Memory
	default:
		b.heard.memory, b.heard.notice = nil, n.Text
	}
	b.mu.Unlock()
	b.nudge()
}

// said is what the engine said last.
func (b *backend) said() heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.heard
}

// say shows a line.
func (b *backend) say(text string) { b.tell(engine.Notice{Text: text}) }

// nudge has a new sample made soon.
func (b *backend) nudge() {
	select {
	case b.poke <- struct{}{}:
	default:
	}
}

// How often samples are made: no more often than a screen shows them, and while the
// model works often enough for rates to move.
const (
	sampleLeast = 60 * time.Millisecond
	sampleMost  = 250 * time.Millisecond
)

// watch makes samples until close.
func (b *backend) watch(k *desk) {
	defer b.watched.Done()
	m := newSampler(k)
	defer k.shownNoMore(b, m)
	rest := time.NewTimer(0)
	defer rest.Stop()
	for {
		changed := k.d.Changed()
		s := m.sample(b.said())
		b.publish(s)
		wait := (<-chan time.Time)(nil)
		if s.State.Busy() || s.NextIn > 0 {
			rest.Reset(sampleMost)
			wait = rest.C
		}
		select {
		case <-b.stop:
			return
		case <-changed:
		case <-b.poke:
		case <-wait:
		}
		pause := time.NewTimer(sampleLeast)
		select {
		case <-b.stop:
			pause.Stop()
			return
		case <-pause.C:
		}
	}
}

func (b *backend) publish(s *tui.Sample) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.publishLocked(s)
}

func (b *backend) publishLocked(s *tui.Sample) {
	s.Change = b.newest.Load().Change + 1
	b.newest.Store(s)
	close(b.change)
	b.change = make(chan struct{})
}

// Snapshot implements tui.Backend.
func (b *backend) Snapshot(dst *tui.Sample) { *dst = *b.newest.Load() }

// Changed implements tui.Backend.
func (b *backend) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.change
}

// Open implements tui.Backend.
func (b *backend) Open(ctx context.Context, folder string) error {
	b.start(context.WithoutCancel(ctx), fromHome(folder))
	return nil
}

// fromHome resolves the ~ of a path that was typed where no shell sees it.
func fromHome(path string) string {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		if home, err := os.UserHomeDir(); err == nil {
			return filepath.Join(home, rest)
		}
	}
	return path
}

// close ends the watching and gives the desk back, nil if none was opened.
func (b *backend) close() *desk {
	b.opening.Wait()
	close(b.stop)
	b.watched.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.k
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	jobs "deltafin/session/run/work"
	"deltafin/tui/outside"
)

// How long a notice command may take, and how long leaving waits for one.
const (
	notifyLimit = 30 * time.Second
	notifyGrace = 5 * time.Second
)

// A notifier runs the user's command when an answer has ended, whether a screen is
// there or not. The work never waits for it: a command that takes longer than the
// next answer makes that one wait for its notice, and only the newest is kept.
type notifier struct {
	args  []string
	tell  func(text string) // hears of the first failure
	limit time.Duration

	stop chan struct{} // closed by close
	done chan struct{} // both goroutines have ended
	kill context.CancelFunc
}

// newNotifier checks a command; nil for "".
func newNotifier(command string) (*notifier, error) {
	if command == "" {
		return nil, nil
	}
	args, err := outside.Find(command)
	if err != nil {
		return nil, usage("--notify-command %q: %v", command, err)
	}
	return &notifier{args: args, limit: notifyLimit, stop: make(chan struct{}), done: make(chan struct{})}, nil
}

// start begins to watch a driver; title finds the title of the thread of a state.
// tell hears of the first failure.
func (n *notifier) start(d driver, title func(st *jobs.State) string, tell func(text string)) {
	n.tell = tell
	ended := make(chan *jobs.State, 1)
	ctx, kill := context.WithCancel(context.Background())
	n.kill = kill
	seen := d.State()
	go func() { // ends with close
		defer close(ended)
		n.watch(d, seen, ended)
	}()
	go func() { // ends when the watch has, and the command with it
		defer close(n.done)
		failed := false
		for st := range ended {
			if err := n.run(ctx, st, title(st)); err != nil && !failed && ctx.Err() == nil {
				failed = true
				n.tell(fmt.Sprintf("the notice command failed: %v; this is said once", err))
			}
		}
	}()
}

// driver is what a notifier needs of jobs.Driver.
type driver interface {
	State() *jobs.State
	Changed() <-chan struct{}
}

// watch passes on the state of every answer that ends by itself: complete, or
// stopped. One that the user pauses is no news to him.
func (n *notifier) watch(d driver, seen *jobs.State, ended chan *jobs.State) {
	for {
		changed := d.Changed()
		st := d.State()
		if st.Answers != seen.Answers || !st.Ended.Equal(seen.Ended) && st.Err != nil && !errors.Is(st.Err, context.Canceled) {
			select {
			case <-ended: // nobody was told of it yet: the newest counts
			default:
			}
			ended <- st
		}
		seen = st
		select {
		case <-changed:
			continue
		case <-n.stop:
		}
		if d.State() == st { // else look at what has come meanwhile
			return
		}
	}
}

// run runs the command once.
func (n *notifier) run(ctx context.Context, st *jobs.State, title string) error {
	ctx, cancel := context.WithTimeout(ctx, n.limit)
	defer cancel()
	c := exec.CommandContext(ctx, n.args[0], n.args[1:]...)
	c.WaitDelay = time.Second
	state := "done"
	if st.Err != nil {
		state = "stopped"
	}
	c.Env = append(os.Environ(), "DELTAFIN_STATE="+state, "DELTAFIN_TITLE="+title, "DELTAFIN_THREAD="+st.Thread.Short(),
		"DELTAFIN_TOKENS="+strconv.Itoa(len(st.Answer)), "DELTAFIN_SECONDS="+strconv.Itoa(int(st.Ended.Sub(st.Began).Seconds())))
	// Its output would land on the screen; its first words are for the message.
	out := &head{limit: 200}
	c.Stdout, c.Stderr = out, out
	err := c.Run()
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = fmt.Errorf("it did not end within %s and was ended", duration(n.limit))
	}
	if err != nil && len(out.b) > 0 {
		err = fmt.Errorf("%w: %s", err, printable(oneLine(string(out.b))))
	}
	return err
}

// close ends the watching. A notice under way may end within notifyGrace.
func (n *notifier) close() {
	if n == nil || n.kill == nil {
		return
	}
	close(n.stop)
	hard := time.AfterFunc(notifyGrace, n.kill)
	<-n.done
	hard.Stop()
	n.kill()
}

// head keeps the beginning of what is written to it.
type head struct {
	b     []byte
	limit int
}

// Write keeps what there is room for and takes the rest as well.
func (h *head) Write(p []byte) (int, error) {
	h.b = append(h.b, p[:min(len(p), h.limit-len(h.b))]...)
	return len(p), nil
}

// notify begins to tell the user's command of ends of answers on a desk, if there is
// one to tell.
func (k *desk) notify(n *notifier, tell func(text string)) {
	if n == nil {
		return
	}
	k.notices = n
	n.start(k.d, func(st *jobs.State) string {
		info, err := k.store.Info(context.Background(), st.Thread)
		if err != nil {
			return "" // the title is a courtesy
		}
		return info.Title
	}, tell)
}

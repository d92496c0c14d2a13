package session

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// An Answer is a turn that receives tokens. It is the journal: a token that
// Append counted as durable is on the disk, synced, and survives the end of
// the process and of the power. Publish a token only once it is durable.
//
// Tokens slower than one per Options.Group are synced one by one. Faster ones
// share a sync: Append returns at once and the token becomes durable with a
// later one, or when the group's time is over, whichever comes first. The
// Durable function of AnswerOptions hears of both.
//
// After an error (ErrFull, say) the tokens not yet durable are kept in memory;
// the next Append or Sync tries them again.
type Answer struct {
	w    *Writer
	turn ID
	key  int64
	tell func(durable int)

	mu      sync.Mutex // guards below
	pending []pendingToken
	durable int    // tokens of the turn on the disk
	sum     uint32 // turnSum, then tokenSum over them
	synced  time.Time
	timer   *time.Timer
	failed  error // of the last timed sync; the next call reports it
	done    bool
}

type pendingToken struct {
	Token
	at time.Time
}

// Turn returns the id of the turn being written.
func (a *Answer) Turn() ID { return a.turn }

// Durable returns how many tokens of the turn are on the disk.
func (a *Answer) Durable() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.durable
}

// Append adds a token and returns how many tokens of the turn are durable. The
// token is taken whatever the error, except ErrInvalid and ErrClosed: do not
// append it again, call Sync.
func (a *Answer) Append(ctx context.Context, t Token) (durable int, err error) {
	if err := checkToken(t); err != nil {
		return a.Durable(), err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return a.durable, fmt.Errorf("adding to turn %s: %w", a.turn.Short(), ErrClosed)
	}
	a.pending = append(a.pending, pendingToken{t, a.w.s.opt.Now()})
	group := a.w.s.opt.Group
	// A timer that is running means that a group is open: the token joins it.
	// After a failure there is none, and every Append tries.
	if wait := group - time.Since(a.synced); a.failed == nil && group > 0 && wait > 0 {
		if a.timer == nil {
			a.timer = time.AfterFunc(wait, a.syncGroup)
		}
		return a.durable, nil
	}
	err = a.sync(ctx)
	return a.durable, err
}

// Sync makes every token durable now.
func (a *Answer) Sync(ctx context.Context) (durable int, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return a.durable, fmt.Errorf("syncing turn %s: %w", a.turn.Short(), ErrClosed)
	}
	err = a.sync(ctx)
	return a.durable, err
}

// syncGroup ends a group whose time is over. It runs on a timer's goroutine;
// stop and Finish take the mutex, so they wait for it, and afterwards it finds
// done set.
func (a *Answer) syncGroup() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done && a.timer != nil {
		a.failed = a.sync(context.Background())
	}
}

// sync writes the pending tokens in one transaction. The mutex is held.
func (a *Answer) sync(ctx context.Context) error {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	if len(a.pending) == 0 {
		return nil
	}
	sum := a.sum
	err := a.w.update(ctx, "keeping an answer", func(c *conn) error {
		for i, p := range a.pending {
			sum = tokenSum(sum, p.Token)
			err := c.exec(`INSERT INTO tail(turn, seq, id, channel, text, at, sum) VALUES(?, ?, ?, ?, ?, ?, ?)`,
				a.key, a.durable+i, int(p.ID), int(p.Channel), []byte(p.Text), p.at, int64(sum))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		a.failed = err
		return err
	}
	a.durable += len(a.pending)
	a.sum = sum
	a.pending = a.pending[:0]
	a.synced = time.Now()
	a.failed = nil
	if a.tell != nil {
		a.tell(a.durable)
	}
	return nil
}

// An Outcome ends an answer or a run of it.
type Outcome struct {
	Status Status // Done, Paused, Interrupted or Failed
	Stop   string // why, in a word: "end", "length", "context"
	Timing Timing // of this run; the zero value records none
}

// Finish makes every token durable, gathers them into the turn's body and ends
// the answer. After an error the answer is still open: call Finish again when
// the cause is gone.
func (a *Answer) Finish(ctx context.Context, out Outcome) error {
	switch out.Status {
	case Done, Paused, Interrupted, Failed:
	default:
		return fmt.Errorf("finishing turn %s: %w: status %q", a.turn.Short(), ErrInvalid, out.Status)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return fmt.Errorf("finishing turn %s: %w", a.turn.Short(), ErrClosed)
	}
	if err := a.sync(ctx); err != nil {
		return err
	}
	err := a.w.update(ctx, "ending an answer", func(c *conn) error {
		if err := foldTail(c, a.key); err != nil {
			return err
		}
		if err := addTiming(c, a.key, out.Timing); err != nil {
			return err
		}
		return a.w.s.closeTurn(c, a.w.key, a.key, out.Status, out.Stop)
	})
	if err != nil {
		return err
	}
	a.end()
	return nil
}

// stop makes the tokens durable and ends the answer where it is, leaving the
// rest to the next writer.
func (a *Answer) stop() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.done {
		return nil
	}
	err := a.sync(context.Background())
	a.end()
	return err
}

// abandon ends the answer without another try to write it.
func (a *Answer) abandon() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.done {
		a.end()
	}
}

// end marks the answer as over. The mutex is held.
func (a *Answer) end() {
	a.done = true
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
	a.w.mu.Lock()
	a.w.answer = nil
	a.w.mu.Unlock()
	a.w.s.mu.Lock()
	delete(a.w.s.answers, a.key)
	a.w.s.mu.Unlock()
}

package work

import (
	"context"
	"fmt"

	"deltafin/session"
	"deltafin/session/run"
)

// Ask begins to answer a question now or, while an answer is under way or others
// wait before it, puts it at the end of the queue and returns its id there.
func (d *Driver) Ask(ctx context.Context, q Question) (queued session.ID, err error) {
	d.mu.Lock()
	switch {
	case d.ended:
		err = ErrStopping
	case d.pause == nil && len(d.waiting) == 0:
		d.waiting = append(d.waiting, job{q: q})
		d.nudge()
		d.mu.Unlock()
		return 0, nil
	}
	d.mu.Unlock()
	if err != nil {
		return 0, err
	}
	return d.Enqueue(ctx, q)
}

// Enqueue puts a question at the end of the queue. Its turn comes when the answer
// under way has ended; at once if there is none and nothing is paused.
func (d *Driver) Enqueue(ctx context.Context, q Question) (session.ID, error) {
	item := session.QueueItem{Thread: q.Thread, Branch: q.Branch, Text: q.Text, Folder: q.Folder, Sources: q.Sources}
	if q.Change != nil {
		how := run.How{Settings: d.r.Defaults()}
		how.Settings.MaxTokens = d.opt.MaxTokens
		if q.Thread != 0 {
			var err error
			if how, err = d.how(ctx, q.Thread, q.Branch); err != nil {
				return 0, err
			}
		}
		q.Change(&how)
		item.Settings = how.Settings
	}
	id, err := d.store.Enqueue(ctx, item)
	if err != nil {
		return 0, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pause == nil && d.State().Phase == Idle {
		d.flow = true
	}
	d.nudge()
	return id, nil
}

// Pause stops the answer under way after the token, or the pass of the prompt, in
// hand.
func (d *Driver) Pause() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.pause == nil {
		return fmt.Errorf("nothing is being answered, so there is nothing to pause: %w", ErrNothing)
	}
	d.brake()
	return nil
}

// brake closes the pause of the answer under way, once. The caller holds mu.
func (d *Driver) brake() {
	select {
	case <-d.pause:
	default:
		close(d.pause)
		d.publish(func(s *State) { s.Pausing = true })
	}
}

// Resume goes on with the answer that was paused, cut short or stopped by an error;
// without one it lets the queue begin.
func (d *Driver) Resume(ctx context.Context) error {
	items, err := d.store.Queue(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch st := d.State(); {
	case d.ended:
		return ErrStopping
	case d.pause != nil || len(d.waiting) > 0:
		return errBusy
	case (st.Phase == Paused || st.Phase == Stopped) && st.Turn != 0:
		d.waiting = append(d.waiting, job{kind: proceed, q: Question{Thread: st.Thread, Branch: st.Branch}})
	case len(items) > 0:
		d.flow = true
	default:
		return fmt.Errorf("nothing is paused and the queue is empty: %w", ErrNothing)
	}
	d.nudge()
	return nil
}

// Continue goes on with the answer at the end of a branch of any thread.
func (d *Driver) Continue(thread session.ID, branch string) error {
	return d.add(job{kind: proceed, q: Question{Thread: thread, Branch: branch}})
}

// Regenerate answers the question before an answer once more, on a new branch.
// change must alter how the answer is made, the seed for instance.
func (d *Driver) Regenerate(thread, turn session.ID, change func(*run.How)) error {
	return d.add(job{kind: regenerate, turn: turn, q: Question{Thread: thread, Change: change}})
}

func (d *Driver) add(j job) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.ended:
		return ErrStopping
	case d.pause != nil || len(d.waiting) > 0:
		return errBusy
	}
	d.waiting = append(d.waiting, j)
	d.nudge()
	return nil
}

// BreakIn ends the answer under way after the token in hand and asks a question
// before all others. An answer in the same thread becomes interrupted. Without an
// answer under way it is Ask.
func (d *Driver) BreakIn(ctx context.Context, q Question) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.ended {
		return ErrStopping
	}
	d.waiting = append([]job{{q: q}}, d.waiting...)
	if d.pause != nil {
		d.brake()
	}
	d.nudge()
	return nil
}

// Stop pauses the answer under way; Run ends when it is saved. Questions that were
// asked and not begun go to the queue.
func (d *Driver) Stop(ctx context.Context) error {
	d.mu.Lock()
	if d.ended {
		d.mu.Unlock()
		return nil
	}
	d.ended = true
	if d.pause != nil {
		d.brake()
	}
	left := d.waiting
	d.waiting = nil
	close(d.stop)
	d.mu.Unlock()
	for _, j := range left {
		if j.kind != ask {
			continue
		}
		if _, err := d.Enqueue(ctx, j.q); err != nil {
			return fmt.Errorf("a question that was not begun could not be put into the queue: %w", err)
		}
	}
	return nil
}

// nudge makes the loop look again. The caller holds mu.
func (d *Driver) nudge() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

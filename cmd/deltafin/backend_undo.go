package main

import (
	"context"
	"errors"
	"fmt"

	"deltafin/session"
)

// Undo implements tui.Backend: the last question and its answer are left out.
func (b *backend) Undo(ctx context.Context, thread session.ID, branch string) error {
	return b.step(ctx, thread, branch, func(w *session.Writer, th *session.Thread, leaf session.ID) error {
		if leaf == 0 {
			return errors.New("no question is left to leave out; ctrl+x U takes the last one in again")
		}
		for leaf != 0 {
			was := th.Turn(leaf)
			up, err := w.Undo(ctx, branch)
			if err != nil || was == nil || was.Role == session.User {
				return err
			}
			leaf = up
		}
		return nil
	})
}

// Redo implements tui.Backend: a question that was left out comes back with its answer.
func (b *backend) Redo(ctx context.Context, thread session.ID, branch string) error {
	return b.step(ctx, thread, branch, func(w *session.Writer, th *session.Thread, _ session.ID) error {
		leaf, err := w.Redo(ctx, branch)
		if errors.Is(err, session.ErrInvalid) {
			return fmt.Errorf("nothing was left out here, so nothing comes back: %w", err)
		}
		for err == nil {
			if t := th.Turn(leaf); t == nil || t.Role != session.User {
				return nil
			}
			leaf, err = w.Redo(ctx, branch)
		}
		if errors.Is(err, session.ErrInvalid) { // a question that never had an answer
			return nil
		}
		return err
	})
}

// step moves the end of a branch.
func (b *backend) step(ctx context.Context, thread session.ID, branch string, do func(w *session.Writer, th *session.Thread, leaf session.ID) error) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	w, err := k.store.Lock(ctx, thread)
	if err != nil {
		return err
	}
	defer b.nudge()
	th, err := k.store.Load(ctx, thread, session.LoadOptions{})
	if err == nil {
		var at session.Branch
		if at, err = th.FindBranch(branch); err == nil {
			err = do(w, th, at.Leaf)
		}
	}
	return errors.Join(err, w.Close())
}

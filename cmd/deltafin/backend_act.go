package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"deltafin/session"
	"deltafin/session/export"
	answers "deltafin/session/run"
	jobs "deltafin/session/run/work"
	"deltafin/tui"
)

// asks hands the driver a question: the text, and that of the files below it.
func (b *backend) asks(q tui.Question, to func(*jobs.Driver, jobs.Question) error) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	text, sources, err := k.withFiles(q.Text, q.Files)
	if err != nil {
		return err
	}
	defer b.nudge()
	return to(k.d, jobs.Question{Thread: q.Thread, Branch: q.Branch, Text: text, Folder: workingFolder(), Sources: sources})
}

// Ask implements tui.Backend.
func (b *backend) Ask(ctx context.Context, q tui.Question) error {
	return b.asks(q, func(d *jobs.Driver, q jobs.Question) error {
		_, err := d.Ask(ctx, q)
		return err
	})
}

// BreakIn implements tui.Backend.
func (b *backend) BreakIn(ctx context.Context, q tui.Question) error {
	return b.asks(q, func(d *jobs.Driver, q jobs.Question) error { return d.BreakIn(ctx, q) })
}

// Pause implements tui.Backend.
func (b *backend) Pause(context.Context) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	return k.d.Pause()
}

// Resume implements tui.Backend.
func (b *backend) Resume(ctx context.Context) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	return k.d.Resume(ctx)
}

// Choose implements tui.Backend. "later" needs nothing: what was shown is kept.
func (b *backend) Choose(ctx context.Context, do string) error {
	switch do {
	case tryAgain.Do:
		return b.Resume(ctx)
	case forkBefore.Do:
		return b.forkBefore(ctx)
	}
	return nil
}

// forkBefore makes a branch that ends before the question answered last.
func (b *backend) forkBefore(ctx context.Context) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	st := k.d.State()
	th, err := k.store.Load(ctx, st.Thread, session.LoadOptions{})
	if err != nil {
		return err
	}
	before := session.ID(0)
	if answer := th.Turn(st.Turn); answer != nil {
		if question := th.Turn(answer.Parent); question != nil {
			before = question.Parent
		}
	}
	if before == 0 {
		return errors.New("nothing comes before this question, and all of it is kept: ctrl+x n begins a new thread")
	}
	_, err = b.Fork(ctx, st.Thread, before)
	return err
}

// Move implements tui.Backend.
func (b *backend) Move(ctx context.Context, item session.ID, places int) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	items, err := k.store.Queue(ctx)
	if err != nil {
		return err
	}
	defer b.nudge()
	for i := range items {
		if items[i].ID == item {
			return k.store.MoveQueued(ctx, item, min(max(i+places, 0), len(items)-1))
		}
	}
	return errors.New("the question is no longer in the queue: it has begun, or was removed elsewhere")
}

// Remove implements tui.Backend.
func (b *backend) Remove(ctx context.Context, item session.ID) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	defer b.nudge()
	return k.store.RemoveQueued(ctx, item)
}

// Rename implements tui.Backend.
func (b *backend) Rename(ctx context.Context, thread session.ID, title string) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	defer b.nudge()
	return k.store.Rename(ctx, thread, title)
}

// Fork implements tui.Backend.
func (b *backend) Fork(ctx context.Context, thread, turn session.ID) (string, error) {
	k, err := b.desk()
	if err != nil {
		return "", err
	}
	defer b.nudge()
	name, err := k.store.Fork(ctx, thread, turn, -1, "")
	if err != nil {
		return "", err
	}
	return name, k.store.SetBranch(ctx, thread, name)
}

// Regenerate implements tui.Backend.
func (b *backend) Regenerate(_ context.Context, thread, turn session.ID) error {
	k, err := b.desk()
	if err != nil {
		return err
	}
	return k.d.Regenerate(thread, turn, func(h *answers.How) { h.Seed = rand.Uint64() })
}

// Export implements tui.Backend. The file is written aside and renamed, so that one
// that was there is either whole or replaced.
func (b *backend) Export(ctx context.Context, thread session.ID, path string) (err error) {
	k, err := b.desk()
	if err != nil {
		return err
	}
	th, err := k.store.Load(ctx, thread, session.LoadOptions{Bodies: true})
	if err != nil {
		return err
	}
	path = fromHome(path)
	if st, err := os.Stat(filepath.Dir(path)); err != nil || !st.IsDir() {
		return fmt.Errorf("there is no folder %s, so nothing was written; the thread is kept. Make the folder, or give another name", filepath.Dir(path))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".deltafin-export-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name()) // the error says what happened
		}
	}()
	out := bufio.NewWriter(f)
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".md":
		err = export.Markdown(out, th, &export.Options{})
	case ".html", ".htm":
		err = export.HTML(out, th, &export.Options{})
	case ".json":
		err = export.JSON(out, th)
	case ".txt":
		printThread(out, th, false, false)
	default:
		err = fmt.Errorf("%q is no form to export to: let the name end in .md, .json, .html or .txt", ext)
	}
	if err = errors.Join(err, out.Flush(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

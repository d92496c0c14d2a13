package session

import (
	"context"
	"fmt"
	"slices"
)

// Import adds a whole thread that came from elsewhere (see session/export),
// with its ids, times and branches, in one transaction. If the thread or one of
// its turns is already here the error is ErrExists and nothing is added; what
// makes no tree, or claims texts that are not those of its tokens, is
// ErrInvalid. An answer that was being written becomes paused.
func (s *Store) Import(ctx context.Context, th *Thread) error {
	if err := checkThread(th); err != nil {
		return fmt.Errorf("importing thread %s: %w", th.ID.Short(), err)
	}
	return s.update(ctx, "importing thread "+th.ID.Short(), func(c *conn) error {
		if n, err := c.number(`SELECT count(*) FROM thread WHERE id=?`, th.ID); err != nil {
			return err
		} else if n > 0 {
			return fmt.Errorf("the thread is here: %w", ErrExists)
		}
		key, err := s.createTx(c, th.ID, th.Title, th.Folder)
		if err != nil {
			return err
		}
		if err := c.exec(`DELETE FROM branch WHERE thread=?`, key); err != nil { // createTx made main
			return err
		}
		im := importing{s: s, c: c, thread: key, keys: map[ID]int64{0: 0}}
		for i := range th.Turns {
			if err := im.turn(&th.Turns[i]); err != nil {
				return fmt.Errorf("turn %s: %w", th.Turns[i].ID.Short(), err)
			}
		}
		for _, b := range th.Branches {
			err := c.exec(`INSERT INTO branch(thread, name, leaf, tip, created) VALUES(?, ?, ?, ?, ?)`, key, b.Name, im.keys[b.Leaf], im.keys[b.Tip], b.Created)
			if err != nil {
				return err
			}
		}
		for _, e := range th.Events {
			if err := addEvent(c, key, im.keys[e.Turn], e.At, e.Kind, e.Text); err != nil {
				return err
			}
		}
		// The place in the list is that of a thread just changed; the dates are
		// its own.
		return c.exec(`UPDATE thread SET branch=?2, named=?3, created=?4, updated=?5 WHERE key=?1`, key, th.Branch, th.Named, th.Created, th.Updated)
	})
}

// importing adds the turns of one thread within a transaction.
type importing struct {
	s      *Store
	c      *conn
	thread int64
	keys   map[ID]int64
}

func (im *importing) turn(t *Turn) error {
	if n, err := im.c.number(`SELECT count(*) FROM turn WHERE id=?`, t.ID); err != nil {
		return err
	} else if n > 0 {
		return fmt.Errorf("the turn is here: %w", ErrExists)
	}
	var set int64
	if t.Role == Assistant {
		var err error
		if set, err = settingsKey(im.c, t.Settings); err != nil {
			return err
		}
	}
	status := t.Status
	if status == Writing {
		status = Paused
	}
	var origin int64
	kept := 0
	if t.Origin != nil {
		origin, kept = im.keys[t.Origin.Turn], t.Origin.Tokens
	}
	row := turnRow{id: t.ID, thread: im.thread, parent: im.keys[t.Parent], role: t.Role, status: status, seed: t.Seed, settings: set}
	key, err := im.s.addTurn(im.c, row, origin, kept)
	if err != nil {
		return err
	}
	im.keys[t.ID] = key
	if err := im.c.exec(`UPDATE turn SET created=?, ended=?, stop=? WHERE key=?`, t.Created, t.Ended, t.Stop, key); err != nil {
		return err
	}
	if err := writeBody(im.c, key, t.Body); err != nil {
		return err
	}
	if err := addSources(im.c, key, t.Sources); err != nil {
		return err
	}
	for _, timing := range t.Timings {
		if err := addTiming(im.c, key, timing); err != nil {
			return err
		}
	}
	return nil
}

// checkThread refuses what a store could not have held.
func checkThread(th *Thread) error {
	if th.ID == 0 || len(th.Branches) == 0 {
		return fmt.Errorf("%w: a thread needs an id and a branch", ErrInvalid)
	}
	seen := map[ID]bool{0: true}
	for i := range th.Turns {
		t := &th.Turns[i]
		if err := checkTurn(t, seen); err != nil {
			return fmt.Errorf("turn %d (%s): %w", i, t.ID.Short(), err)
		}
		seen[t.ID] = true
	}
	names := map[string]bool{}
	for _, b := range th.Branches {
		if b.Name == "" || b.Name != cleanTitle(b.Name) || names[b.Name] || !seen[b.Leaf] || !seen[b.Tip] {
			return fmt.Errorf("%w: branch %q from %s to %s", ErrInvalid, b.Name, b.Leaf.Short(), b.Tip.Short())
		}
		names[b.Name] = true
		onWay := b.Leaf == 0 || slices.ContainsFunc(th.Path(b.Tip), func(t Turn) bool { return t.ID == b.Leaf })
		if !onWay {
			return fmt.Errorf("%w: branch %q: redo from %s does not lead to %s", ErrInvalid, b.Name, b.Leaf.Short(), b.Tip.Short())
		}
	}
	if !names[th.Branch] {
		return fmt.Errorf("%w: the branch used last, %q, is not there", ErrInvalid, th.Branch)
	}
	for _, e := range th.Events {
		if !seen[e.Turn] {
			return fmt.Errorf("%w: an event is of turn %s, which is not there", ErrInvalid, e.Turn.Short())
		}
	}
	return nil
}

func checkTurn(t *Turn, seen map[ID]bool) error {
	switch {
	case t.ID == 0 || seen[t.ID]:
		return fmt.Errorf("%w: its id is missing or used twice", ErrInvalid)
	case !seen[t.Parent]:
		return fmt.Errorf("%w: its parent %s does not come before it", ErrInvalid, t.Parent.Short())
	case t.Origin != nil && (t.Origin.Turn == 0 || !seen[t.Origin.Turn] || t.Origin.Tokens < 0):
		return fmt.Errorf("%w: its origin %s does not come before it", ErrInvalid, t.Origin.Turn.Short())
	case !slices.Contains([]Role{System, User, Assistant, Tool}, t.Role):
		return fmt.Errorf("%w: role %q", ErrInvalid, t.Role)
	case !slices.Contains([]Status{Writing, Paused, Done, Interrupted, Failed}, t.Status):
		return fmt.Errorf("%w: status %q", ErrInvalid, t.Status)
	case t.Body == nil:
		return fmt.Errorf("%w: it has no text", ErrInvalid)
	}
	spoken := t.Role == Assistant
	for _, tok := range t.Body.Tokens {
		if err := checkToken(tok); err != nil {
			return err
		}
		spoken = spoken || tok.Channel != InMarkup
	}
	if text, reasoning := textsOf(t.Body.Tokens); spoken && (text != t.Body.Text || reasoning != t.Body.Reasoning) {
		return fmt.Errorf("%w: its text is not that of its tokens", ErrInvalid)
	}
	return nil
}

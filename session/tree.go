package session

import (
	"context"
	"fmt"
	"strings"

	"github.com/ncruces/go-sqlite3"
)

// The turns of a thread are a tree that only grows. Forking, editing,
// regenerating, undoing move or add branches; no turn is changed or removed.

// branchRow is a branch as the tree operations need it.
type branchRow struct {
	key, thread, leaf, tip int64
	name                   string
}

// branchByName finds a branch; "" is the one used last.
func branchByName(c *conn, thread int64, name string) (b branchRow, err error) {
	b = branchRow{thread: thread}
	found, err := c.one(`SELECT key, leaf, tip, name FROM branch WHERE thread=?1
		AND name=CASE WHEN ?2='' THEN (SELECT branch FROM thread WHERE key=?1) ELSE ?2 END`,
		[]any{thread, name}, func(st *sqlite3.Stmt) error {
			b.key, b.leaf, b.tip, b.name = st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2), st.ColumnText(3)
			return nil
		})
	if err == nil && !found {
		err = fmt.Errorf("branch %q: %w", name, ErrNotFound)
	}
	return b, err
}

// moveTo makes a new turn the end of the branch and the branch the one used
// last. What redo could have reached is given up.
func (b branchRow) moveTo(c *conn, leaf int64) error {
	if err := c.exec(`UPDATE branch SET leaf=?2, tip=?2 WHERE key=?1`, b.key, leaf); err != nil {
		return err
	}
	return c.exec(`UPDATE thread SET branch=? WHERE key=?`, b.name, b.thread)
}

// newBranch adds a branch ending at leaf. An empty name is chosen: "main-2" and
// on, after the branch used last.
func (s *Store) newBranch(c *conn, thread, leaf int64, name string) (branchRow, error) {
	name = cleanTitle(name)
	if name == "" {
		used, err := branchByName(c, thread, "")
		if err != nil {
			return branchRow{}, err
		}
		stem := strings.TrimRight(strings.TrimRight(used.name, "0123456789"), "-")
		if stem == "" {
			stem = MainBranch
		}
		for n := 2; ; n++ {
			name = fmt.Sprintf("%s-%d", stem, n)
			if taken, err := c.number(`SELECT count(*) FROM branch WHERE thread=? AND name=?`, thread, name); err != nil {
				return branchRow{}, err
			} else if taken == 0 {
				break
			}
		}
	}
	taken, err := c.number(`SELECT count(*) FROM branch WHERE thread=? AND name=?`, thread, name)
	if err == nil && taken > 0 {
		err = fmt.Errorf("branch %q: %w", name, ErrExists)
	}
	if err != nil {
		return branchRow{}, err
	}
	key, err := c.insert(`INSERT INTO branch(thread, name, leaf, tip, created) VALUES(?1, ?2, ?3, ?3, ?4)`, thread, name, leaf, s.opt.Now())
	return branchRow{key: key, thread: thread, leaf: leaf, tip: leaf, name: name}, err
}

// Fork makes a branch that ends at a turn, and returns its name; an empty name
// is chosen. It needs no writer, since it changes nothing that exists, but it
// does make the new branch the one used last.
//
// With 0 <= tokens < the answer's tokens, the branch ends inside the answer:
// its last turn is a paused copy that keeps so many tokens and can be continued.
// A negative number means the whole turn.
func (s *Store) Fork(ctx context.Context, thread, turn ID, tokens int, name string) (string, error) {
	var b branchRow
	err := s.update(ctx, "forking", func(c *conn) error {
		key, err := threadKey(c, thread)
		if err != nil {
			return err
		}
		t, err := turnByID(c, key, turn)
		if err != nil {
			return err
		}
		leaf := t.key
		switch {
		case tokens >= 0:
			if leaf, err = s.cutCopy(c, t, tokens); err != nil {
				return err
			}
		case t.status == Writing:
			return fmt.Errorf("%w: the answer %s is still being written; fork at one of its tokens", ErrInvalid, turn.Short())
		}
		if b, err = s.newBranch(c, key, leaf, name); err != nil {
			return err
		}
		return b.moveTo(c, leaf)
	})
	return b.name, err
}

// cutCopy adds a sibling of an answer with its first tokens.
func (s *Store) cutCopy(c *conn, t turnRow, tokens int) (int64, error) {
	if t.role != Assistant {
		return 0, fmt.Errorf("%w: turn %s is no answer, only answers can be cut", ErrInvalid, t.id.Short())
	}
	body, err := readTurn(c, t.key)
	if err != nil {
		return 0, err
	}
	if tokens >= len(body.Tokens) {
		return 0, fmt.Errorf("%w: the answer %s has %d tokens, cannot fork after %d", ErrInvalid, t.id.Short(), len(body.Tokens), tokens)
	}
	key, err := s.addTurn(c, turnRow{
		id: newID(), thread: t.thread, parent: t.parent, role: Assistant, status: Paused, seed: t.seed, settings: t.settings,
	}, t.key, tokens)
	if err != nil {
		return 0, err
	}
	cut := &Body{}
	cut.add(body.Tokens[:tokens])
	return key, writeBody(c, key, cut)
}

// Edit adds a changed version of a complete turn beside it, on a new branch
// whose name is returned with the new turn's id.
func (w *Writer) Edit(ctx context.Context, turn ID, n NewTurn, name string) (branch string, id ID, err error) {
	if err := n.check(); err != nil {
		return "", 0, fmt.Errorf("editing a turn: %w", err)
	}
	err = w.update(ctx, "editing a turn", func(c *conn) error {
		t, err := turnByID(c, w.key, turn)
		if err != nil {
			return err
		}
		if t.role != n.Role {
			return fmt.Errorf("%w: turn %s is of role %q, its new version of role %q", ErrInvalid, turn.Short(), t.role, n.Role)
		}
		key, err := w.s.addComplete(c, w.key, t.parent, t.key, n)
		if err != nil {
			return err
		}
		b, err := w.s.newBranch(c, w.key, key, name)
		if err != nil {
			return err
		}
		added, err := turnByKey(c, key)
		branch, id = b.name, added.id
		if err != nil {
			return err
		}
		return b.moveTo(c, key)
	})
	return branch, id, err
}

// Regenerate begins another answer beside one, on a new branch (opt.Branch
// names it). The same seed with the same settings would give the same text and
// is refused.
func (w *Writer) Regenerate(ctx context.Context, turn ID, opt AnswerOptions) (*Answer, error) {
	return w.begun(ctx, opt, func(c *conn) (int64, error) {
		t, err := turnByID(c, w.key, turn)
		if err != nil {
			return 0, err
		}
		set, err := settingsKey(c, opt.Settings)
		switch {
		case err != nil:
			return 0, err
		case t.role != Assistant:
			return 0, fmt.Errorf("%w: turn %s is no answer", ErrInvalid, turn.Short())
		case t.seed == opt.Seed && t.settings == set:
			return 0, fmt.Errorf("%w: seed %d and the same settings would give the same answer again", ErrInvalid, opt.Seed)
		}
		b, err := w.s.newBranch(c, w.key, t.parent, opt.Branch)
		if err != nil {
			return 0, err
		}
		return w.beginAt(c, b, t.parent, t.key, opt)
	})
}

// Undo moves the end of a branch up by one turn and returns the new leaf, zero
// when the branch is now empty. Nothing is removed; Redo goes back.
func (w *Writer) Undo(ctx context.Context, branch string) (ID, error) {
	return w.step(ctx, "undoing", branch, func(c *conn, b branchRow) (int64, error) {
		if b.leaf == 0 {
			return 0, fmt.Errorf("%w: branch %q has no turn left", ErrInvalid, b.name)
		}
		leaf, err := turnByKey(c, b.leaf)
		if err == nil && leaf.status == Writing {
			err = fmt.Errorf("%w: the answer %s is still being written", ErrInvalid, leaf.id.Short())
		}
		return leaf.parent, err
	})
}

// Redo moves the end of a branch down again by one undone turn.
func (w *Writer) Redo(ctx context.Context, branch string) (ID, error) {
	return w.step(ctx, "redoing", branch, func(c *conn, b branchRow) (int64, error) {
		// The turn below leaf on the way to tip.
		for at := b.tip; at != b.leaf; {
			t, err := turnByKey(c, at)
			if err != nil {
				return 0, err
			}
			if t.parent == b.leaf {
				return t.key, nil
			}
			if t.parent >= at { // parents are older: anything else is damage
				return 0, fmt.Errorf("%w: turn %s precedes its parent", ErrCorrupt, t.id.Short())
			}
			at = t.parent
		}
		return 0, fmt.Errorf("%w: nothing to redo on branch %q", ErrInvalid, b.name)
	})
}

// step moves a branch's leaf and leaves its tip.
func (w *Writer) step(ctx context.Context, doing, branch string, to func(*conn, branchRow) (int64, error)) (ID, error) {
	var id ID
	err := w.update(ctx, doing, func(c *conn) error {
		b, err := branchByName(c, w.key, branch)
		if err != nil {
			return err
		}
		leaf, err := to(c, b)
		if err != nil {
			return err
		}
		if leaf != 0 {
			t, err := turnByKey(c, leaf)
			if err != nil {
				return err
			}
			id = t.id
		}
		if err := c.exec(`UPDATE branch SET leaf=? WHERE key=?`, leaf, b.key); err != nil {
			return err
		}
		if err := c.exec(`UPDATE thread SET branch=? WHERE key=?`, b.name, w.key); err != nil {
			return err
		}
		return w.s.touchThread(c, w.key)
	})
	return id, err
}

// SetBranch makes a branch the one used last.
func (s *Store) SetBranch(ctx context.Context, thread ID, name string) error {
	return s.update(ctx, "changing the branch", func(c *conn) error {
		key, err := threadKey(c, thread)
		if err != nil {
			return err
		}
		b, err := branchByName(c, key, name)
		if err != nil {
			return err
		}
		return c.exec(`UPDATE thread SET branch=? WHERE key=?`, b.name, key)
	})
}

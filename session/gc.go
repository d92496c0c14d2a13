package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/ncruces/go-sqlite3"
)

// Trash puts a thread aside: lists and searches leave it out, and GC will
// remove it. Until then Untrash brings it back whole.
func (s *Store) Trash(ctx context.Context, id ID) error { return s.setTrashed(ctx, id, true) }

// Untrash takes a thread out of the trash.
func (s *Store) Untrash(ctx context.Context, id ID) error { return s.setTrashed(ctx, id, false) }

func (s *Store) setTrashed(ctx context.Context, id ID, trashed bool) error {
	if trashed {
		if o, held, err := s.Holder(ctx, id); err != nil {
			return err
		} else if held {
			return &LockedError{id, o}
		}
	}
	return s.update(ctx, "moving a thread to or from the trash", func(c *conn) error {
		key, err := threadKey(c, id)
		if err != nil {
			return err
		}
		return c.exec(`UPDATE thread SET trashed=? WHERE key=?`, trashed, key)
	})
}

// Garbage is what GC removed, or would remove.
type Garbage struct {
	Threads   []ThreadInfo   // from the trash, with all they hold
	Snapshots []SnapshotInfo // of turns that no branch reaches
	Bytes     int64          // of the snapshots
}

// GC removes trashed threads and the snapshots that no branch can use. Turns of
// threads that are not in the trash are never removed. With dryRun nothing is
// touched. remove deletes a snapshot's file; fs.ErrNotExist counts as deleted.
func (s *Store) GC(ctx context.Context, dryRun bool, remove func(path string) error) (g Garbage, err error) {
	if g.Threads, err = s.List(ctx, ListOptions{Trashed: true}); err != nil {
		return g, err
	}
	err = s.view(ctx, "looking for garbage", func(c *conn) error {
		rows, err := readSnapshots(c, `1`)
		for _, r := range rows {
			if r.dead {
				g.Snapshots = append(g.Snapshots, r.SnapshotInfo)
				g.Bytes += r.Bytes
			}
		}
		return err
	})
	if err != nil || dryRun {
		return g, err
	}
	for _, info := range g.Snapshots {
		if err := remove(info.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return g, fmt.Errorf("removing snapshot %s: %w", info.Path, err)
		}
		if err := s.DropSnapshot(ctx, info.ID); err != nil {
			return g, err
		}
	}
	for _, t := range g.Threads {
		if err := s.purge(ctx, t.ID); err != nil {
			return g, err
		}
	}
	return g, s.shrink(ctx)
}

// purge removes a trashed thread and everything that belongs to it.
func (s *Store) purge(ctx context.Context, id ID) error {
	return s.update(ctx, "removing a thread", func(c *conn) error {
		key, err := threadKey(c, id)
		if err != nil {
			return err
		}
		trashed, err := c.number(`SELECT trashed FROM thread WHERE key=?`, key)
		if err != nil || trashed == 0 {
			return err // brought back meanwhile
		}
		if err := unindexThread(c, key); err != nil {
			return err
		}
		for _, sql := range []string{
			`DELETE FROM body WHERE turn IN (SELECT key FROM turn WHERE thread=?1)`,
			`DELETE FROM tokens WHERE turn IN (SELECT key FROM turn WHERE thread=?1)`,
			`DELETE FROM tail WHERE turn IN (SELECT key FROM turn WHERE thread=?1)`,
			`DELETE FROM source WHERE turn IN (SELECT key FROM turn WHERE thread=?1)`,
			`DELETE FROM timing WHERE turn IN (SELECT key FROM turn WHERE thread=?1)`,
			`DELETE FROM turn WHERE thread=?1`,
			`DELETE FROM branch WHERE thread=?1`,
			`DELETE FROM event WHERE thread=?1`,
			`DELETE FROM queue WHERE thread=?1`,
			`DELETE FROM writer WHERE thread=?1`,
			`DELETE FROM thread WHERE key=?1`,
		} {
			if err := c.exec(sql, key); err != nil {
				return err
			}
		}
		return nil
	})
}

// unindexThread takes a thread's words out of the index.
func unindexThread(c *conn, key int64) error {
	err := c.each(`SELECT turn.key, text, reasoning FROM turn JOIN body ON body.turn=turn.key WHERE thread=?`, []any{key}, func(st *sqlite3.Stmt) error {
		if text := indexedText(st.ColumnText(1), st.ColumnText(2)); text != "" {
			return unindexWords(c, st.ColumnInt64(0), text)
		}
		return nil
	})
	if err != nil {
		return err
	}
	_, err = c.one(`SELECT title FROM thread WHERE key=?`, []any{key}, func(st *sqlite3.Stmt) error {
		if title := st.ColumnText(0); title != "" {
			return unindexWords(c, -key, title)
		}
		return nil
	})
	return err
}

// shrink gives pages that are free back to the file system.
func (s *Store) shrink(ctx context.Context) error {
	return s.update(ctx, "shrinking the database", func(c *conn) error {
		return c.each("PRAGMA incremental_vacuum", nil, func(*sqlite3.Stmt) error { return nil })
	})
}

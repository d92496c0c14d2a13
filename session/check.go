package session

import (
	"context"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// Check reads the whole database and returns what is wrong with it, each an
// ErrCorrupt; none when every byte that matters is as it was written. The
// second result is an error that kept Check from finishing.
func (s *Store) Check(ctx context.Context) (damage []error, err error) {
	err = s.view(ctx, "checking the threads", func(c *conn) error {
		err := checkPages(c, func(msg string) {
			damage = append(damage, fmt.Errorf("%w: %s", ErrCorrupt, msg))
		})
		if isDamage(err) {
			damage, err = append(damage, asCorrupt(err)), nil
		}
		if err != nil {
			return err
		}
		more, err := checkTurns(c)
		damage = append(damage, more...)
		return err
	})
	return damage, err
}

// checkPages lets the database check its own structure.
func checkPages(c *conn, report func(msg string)) error {
	// integrity_check believes what this connection remembers of the index of
	// words, which another may have rewritten since. A query looks again.
	if _, err := c.number(`SELECT count(*) FROM words WHERE words MATCH 'x'`); err != nil {
		return err
	}
	return c.each("PRAGMA integrity_check(20)", nil, func(st *sqlite3.Stmt) error {
		if msg := st.ColumnText(0); msg != "ok" {
			report(msg)
		}
		return nil
	})
}

// checkTurns compares every turn with its checksums.
func checkTurns(c *conn) (damage []error, err error) {
	type turn struct {
		key        int64
		id, thread ID
		status     Status
		tokens     int
	}
	var turns []turn
	err = c.each(`SELECT turn.key, turn.id, thread.id, turn.status, turn.tokens FROM turn LEFT JOIN thread ON thread.key=turn.thread`, nil,
		func(st *sqlite3.Stmt) error {
			turns = append(turns, turn{st.ColumnInt64(0), idFromDB(st.ColumnInt64(1)), idFromDB(st.ColumnInt64(2)), Status(st.ColumnText(3)), st.ColumnInt(4)})
			return nil
		})
	if isDamage(err) {
		damage, err = append(damage, asCorrupt(err)), nil
	}
	if err != nil {
		return damage, err
	}
	for _, t := range turns {
		b, err := readTurn(c, t.key)
		if err == nil && t.status != Writing && len(b.Tokens) != t.tokens {
			err = fmt.Errorf("%w: %d tokens, %d are counted", ErrCorrupt, len(b.Tokens), t.tokens)
		}
		if isDamage(err) {
			damage = append(damage, fmt.Errorf("thread %s, turn %s: %w", t.thread.Short(), t.id.Short(), asCorrupt(err)))
		} else if err != nil {
			return damage, err
		}
	}
	return damage, nil
}

// RebuildIndex builds the index of words anew from the texts: the remedy when
// Check finds the index damaged. Turns that cannot be read are left out.
func (s *Store) RebuildIndex(ctx context.Context) error {
	return s.update(ctx, "building the index of words", func(c *conn) error {
		if err := c.exec(`INSERT INTO words(words) VALUES('delete-all')`); err != nil {
			return err
		}
		err := c.each(`SELECT key, title FROM thread WHERE title<>''`, nil, func(st *sqlite3.Stmt) error {
			return indexWords(c, -st.ColumnInt64(0), st.ColumnText(1))
		})
		if err != nil {
			return err
		}
		var keys []int64
		err = c.each(`SELECT turn FROM body`, nil, func(st *sqlite3.Stmt) error {
			keys = append(keys, st.ColumnInt64(0))
			return nil
		})
		for _, key := range keys {
			if err != nil {
				break
			}
			var b *Body
			if b, err = readTurn(c, key); isDamage(err) {
				err = nil
				continue
			}
			if err == nil && indexedText(b.Text, b.Reasoning) != "" {
				err = indexWords(c, key, indexedText(b.Text, b.Reasoning))
			}
		}
		return err
	})
}

// Unfinished lists threads whose newest answer was cut off or paused, the one
// changed last first: what a start offers to go on with.
func (s *Store) Unfinished(ctx context.Context) (out []ThreadInfo, err error) {
	all, err := s.List(ctx, ListOptions{})
	for _, t := range all {
		if t.Status.Open() {
			out = append(out, t)
		}
	}
	return out, err
}

// A Size is how much room the store takes.
type Size struct {
	File  int64 // bytes of the database
	Free  int64 // of these, free for reuse
	Turns int64
	Text  int64 // bytes of text and thinking, as such
	IDs   int64 // tokens; raw they would take four bytes each
}

// Size measures the store. It reads every turn's length.
func (s *Store) Size(ctx context.Context) (z Size, err error) {
	err = s.view(ctx, "measuring the threads", func(c *conn) error {
		var errs []error
		get := func(sql string) int64 {
			n, err := c.number(sql)
			errs = append(errs, err)
			return n
		}
		page := get("PRAGMA page_size")
		z.File, z.Free = page*get("PRAGMA page_count"), page*get("PRAGMA freelist_count")
		z.Turns = get("SELECT count(*) FROM turn")
		z.Text = get("SELECT coalesce(sum(octet_length(text) + octet_length(reasoning)), 0) FROM body")
		z.IDs = get("SELECT coalesce(sum(tokens), 0) FROM turn")
		return errors.Join(errs...)
	})
	return z, err
}

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// A QueueItem is a question that waits. The queue is one for all threads and
// processes, in the database like everything else.
type QueueItem struct {
	ID       ID
	Thread   ID     // zero: a new thread
	Branch   string // "" is the one used last when its turn comes
	Text     string
	Folder   string // of a new thread
	Settings Settings
	Sources  []Source
	Tokens   int       // of question and sources, 0 when not counted
	Hold     time.Time // not before; zero: at once
	Created  time.Time
}

// Enqueue adds a question at the end of the queue and returns its id.
func (s *Store) Enqueue(ctx context.Context, q QueueItem) (ID, error) {
	if strings.TrimSpace(q.Text) == "" {
		return 0, fmt.Errorf("queueing: %w: the question is empty", ErrInvalid)
	}
	id := newID()
	err := s.update(ctx, "queueing a question", func(c *conn) error {
		v, err := queueValues(c, q)
		if err != nil {
			return err
		}
		_, err = c.insert(`INSERT INTO queue(thread, branch, text, folder, settings, sources, tokens, hold, id, created, place)
			VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(place), 0) + 1 FROM queue))`, append(v, id, s.opt.Now())...)
		return err
	})
	if err != nil {
		return 0, err
	}
	return id, nil
}

// queueValues gives the columns of an item that can change.
func queueValues(c *conn, q QueueItem) ([]any, error) {
	var thread int64
	if q.Thread != 0 {
		var err error
		if thread, err = threadKey(c, q.Thread); err != nil {
			return nil, err
		}
	}
	settings, err := json.Marshal(q.Settings)
	if err != nil {
		return nil, fmt.Errorf("%w: settings: %w", ErrInvalid, err)
	}
	sources, err := json.Marshal(q.Sources)
	if err != nil {
		return nil, fmt.Errorf("%w: sources: %w", ErrInvalid, err)
	}
	return []any{thread, q.Branch, q.Text, q.Folder, string(settings), string(sources), q.Tokens, q.Hold}, nil
}

// Queue returns the waiting questions in order.
func (s *Store) Queue(ctx context.Context) (items []QueueItem, err error) {
	err = s.view(ctx, "reading the queue", func(c *conn) (err error) {
		items, err = queueTx(c)
		return err
	})
	return items, err
}

func queueTx(c *conn) (items []QueueItem, err error) {
	err = c.each(`SELECT queue.id, thread.id, queue.branch, text, queue.folder, queue.settings, sources, queue.tokens, hold, queue.created
		FROM queue LEFT JOIN thread ON thread.key=queue.thread ORDER BY place, queue.key`, nil, func(st *sqlite3.Stmt) error {
		q := QueueItem{
			ID: idFromDB(st.ColumnInt64(0)), Branch: st.ColumnText(2), Text: st.ColumnText(3), Folder: st.ColumnText(4),
			Tokens: st.ColumnInt(7), Hold: fromMS(st.ColumnInt64(8)), Created: fromMS(st.ColumnInt64(9)),
		}
		if st.ColumnType(1) != sqlite3.NULL {
			q.Thread = idFromDB(st.ColumnInt64(1))
		}
		if err := parseSettings(st.ColumnRawText(5), &q.Settings); err != nil {
			return err
		}
		if err := json.Unmarshal(st.ColumnRawText(6), &q.Sources); err != nil {
			return fmt.Errorf("%w: sources of queue item %s: %w", ErrCorrupt, q.ID.Short(), err)
		}
		items = append(items, q)
		return nil
	})
	return items, err
}

// FindQueued returns the waiting question whose id begins with prefix.
func (s *Store) FindQueued(ctx context.Context, prefix string) (ID, error) {
	return s.find(ctx, "queue item", prefix, `SELECT id, text FROM queue WHERE id BETWEEN ?1 AND ?2 LIMIT 10`)
}

// EditQueued replaces a waiting question, keeping its place; q.ID says which.
func (s *Store) EditQueued(ctx context.Context, q QueueItem) error {
	if strings.TrimSpace(q.Text) == "" {
		return fmt.Errorf("editing the queue: %w: the question is empty", ErrInvalid)
	}
	return s.update(ctx, "editing the queue", func(c *conn) error {
		v, err := queueValues(c, q)
		if err != nil {
			return err
		}
		err = c.exec(`UPDATE queue SET thread=?, branch=?, text=?, folder=?, settings=?, sources=?, tokens=?, hold=? WHERE id=?`, append(v, q.ID)...)
		return changedOne(c, err, q.ID)
	})
}

// RemoveQueued takes a question out of the queue.
func (s *Store) RemoveQueued(ctx context.Context, id ID) error {
	return s.update(ctx, "removing from the queue", func(c *conn) error {
		return changedOne(c, c.exec(`DELETE FROM queue WHERE id=?`, id), id)
	})
}

func changedOne(c *conn, err error, id ID) error {
	if err == nil && c.db.Changes() == 0 {
		err = fmt.Errorf("queue item %s: %w", id.Short(), ErrNotFound)
	}
	return err
}

// MoveQueued puts a question at a place of the queue, 0 being the first;
// places beyond the ends mean the ends.
func (s *Store) MoveQueued(ctx context.Context, id ID, to int) error {
	return s.update(ctx, "moving in the queue", func(c *conn) error {
		items, err := queueTx(c)
		if err != nil {
			return err
		}
		from := slices.IndexFunc(items, func(q QueueItem) bool { return q.ID == id })
		if from < 0 {
			return fmt.Errorf("queue item %s: %w", id.Short(), ErrNotFound)
		}
		q := items[from]
		items = slices.Delete(items, from, from+1)
		items = slices.Insert(items, min(max(to, 0), len(items)), q)
		for i, q := range items {
			if err := c.exec(`UPDATE queue SET place=? WHERE id=?`, i+1, q.ID); err != nil {
				return err
			}
		}
		return nil
	})
}

// NextQueued returns the first question that need not wait at the time now. If
// there is none but some are held, wake is when the first of them may start;
// an empty queue gives the zero time.
func (s *Store) NextQueued(ctx context.Context, now time.Time) (q QueueItem, ok bool, wake time.Time, err error) {
	items, err := s.Queue(ctx)
	for _, q := range items {
		if !q.Hold.After(now) {
			return q, true, time.Time{}, nil
		}
		if wake.IsZero() || q.Hold.Before(wake) {
			wake = q.Hold
		}
	}
	return QueueItem{}, false, wake, err
}

// TakeQueued turns a waiting question into a turn: it locks its thread (made
// here if it is a new one), appends the question and removes it from the queue
// in one transaction. Whatever happens in between, the question is in exactly
// one of the two places. The caller closes the Writer.
func (s *Store) TakeQueued(ctx context.Context, id ID) (w *Writer, turn ID, err error) {
	var thread ID
	err = s.update(ctx, "taking a question", func(c *conn) error {
		q, err := queuedByID(c, id)
		if err != nil || q.Thread != 0 {
			thread = q.Thread
			return err
		}
		// The item is bound to its new thread first: if this process ends here,
		// the question comes up again in that thread, not in a second one.
		thread = newID()
		key, err := s.createTx(c, thread, "", q.Folder)
		if err != nil {
			return err
		}
		return c.exec(`UPDATE queue SET thread=? WHERE id=?`, key, id)
	})
	if err != nil {
		return nil, 0, err
	}
	if w, err = s.Lock(ctx, thread); err != nil {
		return nil, 0, err
	}
	err = w.update(ctx, "taking a question", func(c *conn) error {
		q, err := queuedByID(c, id)
		if err != nil {
			return err
		}
		key, err := s.appendTx(c, w.key, q.Branch, NewTurn{Role: User, Text: q.Text, Sources: q.Sources})
		if err != nil {
			return err
		}
		t, err := turnByKey(c, key)
		if err != nil {
			return err
		}
		turn = t.id
		return c.exec(`DELETE FROM queue WHERE id=?`, id)
	})
	if err != nil {
		return nil, 0, errors.Join(err, w.Close())
	}
	return w, turn, nil
}

func queuedByID(c *conn, id ID) (QueueItem, error) {
	items, err := queueTx(c)
	if err != nil {
		return QueueItem{}, err
	}
	i := slices.IndexFunc(items, func(q QueueItem) bool { return q.ID == id })
	if i < 0 {
		return QueueItem{}, fmt.Errorf("queue item %s: %w", id.Short(), ErrNotFound)
	}
	return items[i], nil
}

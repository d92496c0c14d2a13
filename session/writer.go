package session

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Recovered says in which state a thread was found whose last writer did not
// end properly.
type Recovered struct {
	Turn    ID
	Tokens  int       // of the answer, all kept
	Dropped int       // records after them that were damaged
	At      time.Time // when the last token was written; zero if none was
	Damaged bool      // the answer's text before that run cannot be read
}

// String is a sentence for the user.
func (r Recovered) String() string {
	if r.Damaged {
		return "the last run ended in the middle of an answer, and that answer is damaged on the disk; the turns before it are whole"
	}
	if r.Dropped > 0 {
		return fmt.Sprintf("the last records of this thread were damaged: kept up to token %d, %d dropped", r.Tokens, r.Dropped)
	}
	if r.Tokens == 0 {
		return "the last run ended before the first word of an answer"
	}
	return fmt.Sprintf("the last run ended at %s in the middle of an answer (token %d)", r.At.Format("15:04"), r.Tokens)
}

// A Writer is the right to write one thread. There is at most one per thread
// among all processes; it ends with Close or with the process.
type Writer struct {
	s      *Store
	thread ID
	key    int64

	recovered *Recovered

	mu     sync.Mutex // guards below
	closed bool
	answer *Answer // being written, or nil
}

// Lock takes the right to write a thread. If another writer has it, the error
// is a LockedError. An answer that a dead writer left open becomes Paused and
// is described by Recovered.
func (s *Store) Lock(ctx context.Context, thread ID) (*Writer, error) {
	if s.opt.ReadOnly {
		return nil, fmt.Errorf("writing thread %s: %w: opened for reading", thread.Short(), ErrReadOnly)
	}
	w := &Writer{s: s, thread: thread}
	err := s.view(ctx, "opening a thread", func(c *conn) (err error) {
		if w.key, err = threadKey(c, thread); err != nil {
			return err
		}
		if trashed, err := c.number(`SELECT trashed FROM thread WHERE key=?`, w.key); err != nil || trashed == 0 {
			return err
		}
		return fmt.Errorf("thread %s: %w: it is in the trash; restore it first", thread.Short(), ErrNotFound)
	})
	if err != nil {
		return nil, err
	}
	free, err := s.locks.acquire(w.key)
	if err != nil {
		return nil, fmt.Errorf("locking thread %s in %s: %w: %w", thread.Short(), lockName, ErrIO, err)
	}
	if !free {
		owner, err := s.owner(ctx, w.key)
		return nil, errors.Join(&LockedError{thread, owner}, err)
	}
	if err := w.begin(ctx); err != nil {
		return nil, errors.Join(err, s.locks.release(w.key))
	}
	return w, nil
}

// begin notes the owner and puts the thread in order.
func (w *Writer) begin(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		host = "" // only for messages
	}
	return w.s.update(ctx, "opening a thread for writing", func(c *conn) error {
		err := c.exec(`INSERT OR REPLACE INTO writer(thread, pid, tty, host, started) VALUES(?, ?, ?, ?, ?)`,
			w.key, os.Getpid(), w.s.opt.TTY, host, w.s.opt.Now())
		if err != nil {
			return err
		}
		return w.recover(c)
	})
}

// recover closes the answers that a dead writer left open. There is one at
// most, but a damaged file may say otherwise.
func (w *Writer) recover(c *conn) error {
	type open struct {
		key int64
		id  ID
	}
	var left []open
	err := c.each(`SELECT key, id FROM turn WHERE thread=? AND status=?`, []any{w.key, string(Writing)}, func(st *sqlite3.Stmt) error {
		left = append(left, open{st.ColumnInt64(0), idFromDB(st.ColumnInt64(1))})
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range left {
		at, err := c.number(`SELECT coalesce(max(at), 0) FROM tail WHERE turn=?`, t.key)
		if err != nil {
			return err
		}
		w.recovered = &Recovered{Turn: t.id, At: fromMS(at)}
		status := Paused
		w.recovered.Tokens, w.recovered.Dropped, err = salvage(c, t.key)
		if errors.Is(err, ErrCorrupt) {
			// The thread must open all the same; only this turn is lost.
			w.recovered.Damaged, status, err = true, Failed, nil
		}
		if err != nil {
			return err
		}
		if err := w.s.closeTurn(c, w.key, t.key, status, "recovered"); err != nil {
			return err
		}
		if err := addEvent(c, w.key, t.key, w.s.opt.Now(), "recovered", w.recovered.String()); err != nil {
			return err
		}
	}
	return nil
}

// owner reads who holds a thread's lock.
func (s *Store) owner(ctx context.Context, key int64) (o Owner, err error) {
	err = s.view(ctx, "looking for the writer", func(c *conn) error {
		_, err := c.one(`SELECT pid, tty, host, started FROM writer WHERE thread=?`, []any{key}, func(st *sqlite3.Stmt) error {
			o = Owner{PID: st.ColumnInt(0), TTY: st.ColumnText(1), Host: st.ColumnText(2), Started: fromMS(st.ColumnInt64(3))}
			return nil
		})
		return err
	})
	return o, err
}

// Holder reports who writes a thread at this moment, in any process.
func (s *Store) Holder(ctx context.Context, thread ID) (Owner, bool, error) {
	var key int64
	err := s.view(ctx, "looking for the writer", func(c *conn) (err error) {
		key, err = threadKey(c, thread)
		return err
	})
	if err != nil || s.locks == nil {
		return Owner{}, false, err
	}
	taken, err := s.locks.taken(key)
	if err != nil || !taken {
		return Owner{}, false, err
	}
	o, err := s.owner(ctx, key)
	return o, true, err
}

// Thread returns the id of the thread being written.
func (w *Writer) Thread() ID { return w.thread }

// Recovered tells what Lock found; nil when the last writer ended properly.
func (w *Writer) Recovered() *Recovered { return w.recovered }

// Close gives the right to write back. An answer still open is paused first.
// When that fails (a full disk, say) the error tells so and the right is given
// back all the same: the next writer recovers what was synced.
func (w *Writer) Close() error {
	w.mu.Lock()
	a := w.answer
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return fmt.Errorf("closing thread %s: %w", w.thread.Short(), ErrClosed)
	}
	var err error
	if a != nil {
		err = a.Finish(context.Background(), Outcome{Status: Paused, Stop: "closed"})
		a.abandon()
	}
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	return errors.Join(err, w.s.locks.release(w.key))
}

// update is Store.update for the holder of the thread.
func (w *Writer) update(ctx context.Context, doing string, f func(*conn) error) error {
	w.mu.Lock()
	closed := w.closed
	w.mu.Unlock()
	if closed {
		return fmt.Errorf("%s: thread %s: %w", doing, w.thread.Short(), ErrClosed)
	}
	return w.s.update(ctx, doing, f)
}

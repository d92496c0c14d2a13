package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/ext/fts5"
)

// A conn is one database connection with its prepared statements. One
// goroutine uses it at a time.
type conn struct {
	db    *sqlite3.Conn
	stmts map[string]*sqlite3.Stmt
}

// busyTimeout is how long a call waits for another process's transaction.
// Ours last milliseconds; only a backup or a migration takes longer.
const busyTimeout = 5 * time.Second

// connect opens one connection to a database named by a URI.
func connect(uri string, readOnly bool) (*conn, error) {
	flags := sqlite3.OPEN_READWRITE | sqlite3.OPEN_CREATE | sqlite3.OPEN_URI
	if readOnly {
		flags = sqlite3.OPEN_READONLY | sqlite3.OPEN_URI
	}
	db, err := sqlite3.OpenFlags(uri, flags)
	if err != nil {
		return nil, err
	}
	c := &conn{db: db, stmts: map[string]*sqlite3.Stmt{}}
	// Waiting comes first: even registering reads the file, which another
	// process may be closing.
	if err := db.BusyTimeout(busyTimeout); err != nil {
		c.close()
		return nil, err
	}
	if err := fts5.Register(db); err != nil {
		c.close()
		return nil, err
	}
	// fullfsync makes macOS flush the drive's own cache; elsewhere it is
	// nothing. cell_size_check finds damaged pages before they are used. The log
	// is copied into the database every 256 pages, which is 4 MB, and shrinks to
	// 16 MB after something larger.
	err = db.Exec(`PRAGMA foreign_keys=off; PRAGMA trusted_schema=off; PRAGMA cell_size_check=on;
		PRAGMA synchronous=full; PRAGMA fullfsync=on; PRAGMA checkpoint_fullfsync=on; PRAGMA temp_store=memory;
		PRAGMA wal_autocheckpoint=256; PRAGMA journal_size_limit=16777216;`)
	if err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *conn) close() error {
	for _, st := range c.stmts {
		st.Close()
	}
	clear(c.stmts)
	return c.db.Close()
}

// prepare returns the statement for sql with its arguments bound, ready to step.
func (c *conn) prepare(sql string, args []any) (*sqlite3.Stmt, error) {
	st := c.stmts[sql]
	if st == nil {
		var err error
		if st, _, err = c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, err
		}
		c.stmts[sql] = st
	}
	for i, a := range args {
		if err := bind(st, i+1, a); err != nil {
			st.Reset()
			return nil, err
		}
	}
	return st, nil
}

func bind(st *sqlite3.Stmt, i int, a any) error {
	switch a := a.(type) {
	case nil:
		return st.BindNull(i)
	case int:
		return st.BindInt64(i, int64(a))
	case int64:
		return st.BindInt64(i, a)
	case float64:
		return st.BindFloat(i, a)
	case bool:
		return st.BindBool(i, a)
	case string:
		return st.BindText(i, a)
	case []byte:
		if a == nil {
			return st.BindZeroBlob(i, 0) // empty, not NULL
		}
		return st.BindBlob(i, a)
	case ID:
		return st.BindInt64(i, a.db())
	case time.Time:
		return st.BindInt64(i, toMS(a))
	}
	return fmt.Errorf("cannot bind a %T", a)
}

// exec runs a statement that returns no rows.
func (c *conn) exec(sql string, args ...any) error {
	st, err := c.prepare(sql, args)
	if err != nil {
		return err
	}
	return st.Exec()
}

// each calls f for every row. f must not run the same sql again.
func (c *conn) each(sql string, args []any, f func(*sqlite3.Stmt) error) error {
	st, err := c.prepare(sql, args)
	if err != nil {
		return err
	}
	for st.Step() {
		if err := f(st); err != nil {
			st.Reset()
			return err
		}
	}
	err = st.Err()
	if rerr := st.Reset(); err == nil {
		err = rerr
	}
	return err
}

// one calls f for the first row and reports whether there was one.
func (c *conn) one(sql string, args []any, f func(*sqlite3.Stmt) error) (bool, error) {
	st, err := c.prepare(sql, args)
	if err != nil {
		return false, err
	}
	found := st.Step()
	if err = st.Err(); err == nil && found {
		err = f(st)
	}
	if rerr := st.Reset(); err == nil {
		err = rerr
	}
	return found, err
}

// number returns the first column of the first row, 0 without one.
func (c *conn) number(sql string, args ...any) (n int64, err error) {
	_, err = c.one(sql, args, func(st *sqlite3.Stmt) error {
		n = st.ColumnInt64(0)
		return nil
	})
	return n, err
}

// insert runs an INSERT and returns the new row's key.
func (c *conn) insert(sql string, args ...any) (int64, error) {
	if err := c.exec(sql, args...); err != nil {
		return 0, err
	}
	return c.db.LastInsertRowID(), nil
}

// within runs f between begin and COMMIT, or ROLLBACK when f or the commit
// fails. The context interrupts f; it does not interrupt a commit under way.
func (c *conn) within(ctx context.Context, begin string, f func() error) (err error) {
	c.db.SetInterrupt(ctx)
	defer c.db.SetInterrupt(context.Background())
	if err := c.exec(begin); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	done := false
	defer func() {
		if done {
			return
		}
		// Also on a panic in f: the connection goes back into use. Some errors
		// (a full disk) have already ended the transaction.
		c.db.SetInterrupt(context.Background())
		if !c.db.GetAutocommit() {
			c.exec("ROLLBACK")
		}
	}()
	if err := f(); err != nil {
		if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
			return ctx.Err()
		}
		return err
	}
	c.db.SetInterrupt(context.Background())
	if err := c.exec("COMMIT"); err != nil {
		return err
	}
	done = true
	return nil
}

// Times are stored as milliseconds since 1970, 0 for the zero time.

func toMS(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

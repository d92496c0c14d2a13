package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// Names of the files in the store's folder. SQLite adds -wal and -shm.
const (
	FileName = "threads.db"
	lockName = "threads.lock"
)

// Options change how a store behaves. The zero value is right for a program.
type Options struct {
	// ReadOnly opens without the right to change anything. It works in a
	// folder that cannot be written.
	ReadOnly bool
	// TTY names the terminal in messages to other processes.
	TTY string
	// Now is the wall clock for times that people read; time.Now by default.
	// Nothing orders or expires by it: a clock set back changes dates only.
	// (The queue's hold times are such dates.)
	Now func() time.Time
	// Group is how long tokens may wait to share one sync when they arrive
	// faster than one per Group; 50 ms by default. Slower tokens are synced one
	// by one. Negative means always one by one.
	Group time.Duration

	vfs string // name of the access to files, diskFSName by default; tests put faults there
}

// readers is how many reads of one process run at the same time. A connection
// takes about 2 MB.
const readers = 4

// A Store is an open thread database. Its methods may be called from any
// goroutine. Methods that take a context give up waiting and long reads when
// it ends; a commit under way is finished.
type Store struct {
	path string
	opt  Options
	uri  string

	write chan *conn // holds the one writing connection; empty while in use
	read  chan *conn // idle reading connections; nil ones are not yet open
	locks *lockFile
	// writable: the writing connection exists, in write or in use.
	writable bool

	closing sync.Once
	closed  chan struct{}

	mu      sync.Mutex        // guards below
	answers map[int64]*Answer // open ones by turn, so that Close can save what they hold
}

// Open opens the thread database in the folder dir, creating both as needed.
//
// Errors: ErrNewerSchema, ErrForeign, ErrReadOnly, ErrCorrupt, ErrFull, ErrIO.
func Open(ctx context.Context, dir string, opt *Options) (*Store, error) {
	s := &Store{
		path: filepath.Join(dir, FileName), write: make(chan *conn, 1), read: make(chan *conn, readers),
		closed: make(chan struct{}), answers: map[int64]*Answer{},
	}
	if opt != nil {
		s.opt = *opt
	}
	if s.opt.Now == nil {
		s.opt.Now = time.Now
	}
	if s.opt.Group == 0 {
		s.opt.Group = 50 * time.Millisecond
	}
	if s.opt.vfs == "" {
		registerDiskFS()
		s.opt.vfs = diskFSName
	}
	for range readers {
		s.read <- nil
	}
	if err := s.open(ctx, dir); err != nil {
		s.release()
		return nil, s.wrap("opening the threads", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, dir string) error {
	if s.opt.ReadOnly {
		return s.openReadOnly(ctx)
	}
	// 0700: threads hold private text.
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return dirError(dir, err)
	}
	locks, err := openLockFile(filepath.Join(dir, lockName))
	if err != nil {
		return dirError(dir, err)
	}
	s.locks = locks
	// One at a time: of two that make a fresh file a write-ahead one, the
	// database fails one at once instead of letting it wait.
	if err := locks.wait(ctx, openingKey); err != nil {
		return err
	}
	return errors.Join(s.openFile(ctx), locks.release(openingKey))
}

// openFile opens the database and brings it to the present format.
func (s *Store) openFile(ctx context.Context) error {
	s.uri = s.makeURI("")
	c, err := connect(s.uri, false)
	if err != nil {
		return err
	}
	s.write <- c
	s.writable = true
	version, err := s.checkVersion(c)
	if err != nil {
		return err
	}
	if version == 0 {
		// Both only before the first table. Turns are a few KB each: in pages of
		// 4 KB a quarter of the file would be the ends of pages that the next
		// turn did not fit in. Incremental vacuum lets GC shrink the file.
		if err := c.db.Exec("PRAGMA page_size=16384; PRAGMA auto_vacuum=incremental"); err != nil {
			return err
		}
	}
	if err := setWAL(c); err != nil {
		return err
	}
	if version < SchemaVersion {
		return s.migrate(ctx, c)
	}
	return nil
}

// setWAL makes the file a write-ahead one. The mode is stored in the file, so
// this is a question only after the first time.
func setWAL(c *conn) error {
	var mode string
	_, err := c.one("PRAGMA journal_mode=wal", nil, func(st *sqlite3.Stmt) error {
		mode = st.ColumnText(0)
		return nil
	})
	if err == nil && mode != "wal" {
		err = fmt.Errorf("%w: the database cannot keep a write-ahead log here (mode %q)", ErrReadOnly, mode)
	}
	return err
}

func dirError(dir string, err error) error {
	if isDiskFull(err) {
		return fmt.Errorf("preparing %s: %w: %w", dir, ErrFull, err)
	}
	return fmt.Errorf("%w: %w; make the folder writable or name another one with DELTAFIN_HOME", ErrReadOnly, err)
}

// openReadOnly opens without writing. A database in write-ahead mode normally
// needs a writable folder even to be read; where there is none and no log to
// replay, it can be read as a file that nobody changes.
func (s *Store) openReadOnly(ctx context.Context) error {
	if _, err := os.Stat(s.path); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w: no thread was ever kept here", s.path, ErrNotFound)
		}
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	}
	var first error
	for _, query := range []string{"mode=ro", "mode=ro&immutable=1"} {
		s.uri = s.makeURI(query)
		c, err := connect(s.uri, true)
		if err == nil {
			var version int
			if version, err = s.checkVersion(c); err == nil {
				<-s.read
				s.read <- c
				if version < SchemaVersion {
					return fmt.Errorf("%s has format %d, this program reads %d: open it once for writing: %w", s.path, version, SchemaVersion, ErrReadOnly)
				}
				return nil
			}
			c.close()
		}
		if first == nil {
			first = err
		}
		if fi, serr := os.Stat(s.path + "-wal"); serr == nil && fi.Size() > 0 {
			return first // the log holds what immutable reading would miss
		}
		if !errors.Is(err, sqlite3.CANTOPEN) && !errors.Is(err, sqlite3.READONLY) {
			return first
		}
	}
	return first
}

// makeURI gives the database's URI. Path characters with a meaning in URIs are
// escaped; Windows drives get their leading slash.
func (s *Store) makeURI(query string) string {
	p := filepath.ToSlash(s.path)
	if runtime.GOOS == "windows" && filepath.IsAbs(s.path) {
		p = "/" + p
	}
	u := url.URL{Path: p}
	uri := "file:" + u.EscapedPath()
	params, _ := url.ParseQuery(query) // a constant of ours
	params.Set("vfs", s.opt.vfs)
	if !s.opt.ReadOnly && runtime.GOOS != "windows" {
		// Database and log get the lock file's mode, 0600, whatever the umask.
		params.Set("modeof", filepath.Join(filepath.Dir(s.path), lockName))
	}
	// The database reads %20, not +, as a space.
	return uri + "?" + strings.ReplaceAll(params.Encode(), "+", "%20")
}

// Path returns the database file's name.
func (s *Store) Path() string { return s.path }

// Close ends the store. Writers and answers must be closed before; tokens an
// answer still holds are not lost by a mistake here: Close writes them and says
// so with an error.
func (s *Store) Close() error {
	err := fmt.Errorf("closing the threads: %w", ErrClosed)
	s.closing.Do(func() {
		err = s.flushForgotten()
		close(s.closed)
		err = errors.Join(err, s.release())
	})
	return err
}

func (s *Store) flushForgotten() error {
	s.mu.Lock()
	var open []*Answer
	for _, a := range s.answers {
		open = append(open, a)
	}
	s.mu.Unlock()
	var errs []error
	for _, a := range open {
		errs = append(errs, a.stop(), fmt.Errorf("closing the threads: an answer of turn %s was still being written", a.turn.Short()))
	}
	return errors.Join(errs...)
}

// release closes every connection, waiting for those in use.
func (s *Store) release() error {
	var errs []error
	for range readers {
		if c := <-s.read; c != nil {
			errs = append(errs, c.close())
		}
	}
	if s.writable {
		errs = append(errs, (<-s.write).close())
	}
	if s.locks != nil {
		errs = append(errs, s.locks.close())
	}
	return errors.Join(errs...)
}

func (s *Store) isClosed() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// view runs f in a read transaction: everything f sees is of one moment.
func (s *Store) view(ctx context.Context, doing string, f func(*conn) error) error {
	c, err := s.take(ctx, s.read)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer func() { s.read <- c }()
	if c == nil {
		if c, err = connect(s.uri, s.opt.ReadOnly); err != nil {
			c = nil
			return s.wrap(doing, err)
		}
	}
	return s.wrap(doing, c.within(ctx, "BEGIN", func() error { return f(c) }))
}

// update runs f in a write transaction, synced to the disk when update returns
// nil. f may run only once and must not keep c.
func (s *Store) update(ctx context.Context, doing string, f func(*conn) error) error {
	if s.opt.ReadOnly {
		return fmt.Errorf("%s: %w: opened for reading", doing, ErrReadOnly)
	}
	c, err := s.take(ctx, s.write)
	if err != nil {
		return fmt.Errorf("%s: %w", doing, err)
	}
	defer func() { s.write <- c }()
	return s.wrap(doing, c.within(ctx, "BEGIN IMMEDIATE", func() error {
		// A newer program may have changed the file since it was opened.
		if v, err := c.number("PRAGMA user_version"); err != nil {
			return err
		} else if v != SchemaVersion {
			return &SchemaError{s.path, int(v), SchemaVersion}
		}
		return f(c)
	}))
}

func (s *Store) take(ctx context.Context, pool chan *conn) (*conn, error) {
	// First the sure things, so that a closed store never hands out a
	// connection by chance.
	if s.isClosed() {
		return nil, ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c := <-pool:
		return c, nil
	case <-s.closed:
		return nil, ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

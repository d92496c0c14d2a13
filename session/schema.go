package session

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// applicationID marks the file as ours ("dfin" in ASCII).
const applicationID = 0x6466696e

// steps lead from an empty file to the present schema. A file of version n has
// had the first n. Steps are only ever added: a released step never changes.
//
// Keys named `key` are row numbers and never leave the file; `id` columns hold
// public IDs (see ID.db). Times are milliseconds since 1970.
var steps = []string{
	// 1: threads and what was said in them.
	`
CREATE TABLE settings(
	key  INTEGER PRIMARY KEY,
	json TEXT NOT NULL UNIQUE          -- Settings; shared by the turns made with them
);
CREATE TABLE thread(
	key      INTEGER PRIMARY KEY,
	id       INTEGER NOT NULL UNIQUE,
	title    TEXT NOT NULL,
	named    INTEGER NOT NULL,
	folder   TEXT NOT NULL,
	created  INTEGER NOT NULL,
	updated  INTEGER NOT NULL,
	touch    INTEGER NOT NULL,         -- counts up with every change: the order of the list,
	                                   -- which a clock set back must not disturb
	turns    INTEGER NOT NULL DEFAULT 0,
	tokens   INTEGER NOT NULL DEFAULT 0,
	branch   TEXT NOT NULL,            -- used last
	status   TEXT NOT NULL DEFAULT '',
	settings INTEGER NOT NULL DEFAULT 0,
	trashed  INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX thread_touch ON thread(touch);
CREATE TABLE turn(
	key      INTEGER PRIMARY KEY,
	id       INTEGER NOT NULL UNIQUE,
	thread   INTEGER NOT NULL,
	parent   INTEGER NOT NULL,         -- 0: first of the thread
	role     TEXT NOT NULL,
	status   TEXT NOT NULL,
	created  INTEGER NOT NULL,
	ended    INTEGER NOT NULL,
	tokens   INTEGER NOT NULL,         -- in body; those in tail come on top
	thinking INTEGER NOT NULL,
	seed     INTEGER NOT NULL,
	settings INTEGER NOT NULL,
	origin   INTEGER NOT NULL,         -- turn this one was derived from, 0: none
	kept     INTEGER NOT NULL,         -- tokens of it that were kept
	stop     TEXT NOT NULL
);
CREATE INDEX turn_thread ON turn(thread);
CREATE TABLE body(                         -- apart from tokens: a search reads only this, and
	turn      INTEGER PRIMARY KEY,     -- two small rows fill pages better than a large one
	text      TEXT NOT NULL,
	reasoning TEXT NOT NULL
);
CREATE TABLE tokens(
	turn INTEGER PRIMARY KEY,
	ids  BLOB NOT NULL,                -- see tokens.go
	lens BLOB NOT NULL,
	sum  INTEGER NOT NULL
);
CREATE TABLE tail(                         -- tokens of open answers: the journal
	turn    INTEGER NOT NULL,
	seq     INTEGER NOT NULL,          -- position in the turn
	id      INTEGER NOT NULL,
	channel INTEGER NOT NULL,
	text    BLOB NOT NULL,
	at      INTEGER NOT NULL,
	sum     INTEGER NOT NULL,          -- turnSum, then tokenSum over all tokens up to here
	PRIMARY KEY(turn, seq)
) WITHOUT ROWID;
CREATE TABLE branch(
	key     INTEGER PRIMARY KEY,
	thread  INTEGER NOT NULL,
	name    TEXT NOT NULL,
	leaf    INTEGER NOT NULL,
	tip     INTEGER NOT NULL,
	created INTEGER NOT NULL,
	UNIQUE(thread, name)
);
CREATE TABLE writer(                       -- who holds a thread's lock; the lock itself is the
	thread  INTEGER PRIMARY KEY,       -- operating system's, so that it dies with the process
	pid     INTEGER NOT NULL,
	tty     TEXT NOT NULL,
	host    TEXT NOT NULL,
	started INTEGER NOT NULL
);
-- Words of titles (rowid -thread.key) and turns (rowid turn.key). Only the index
-- is kept: the text is in its own table, and phrases are checked against it.
CREATE VIRTUAL TABLE words USING fts5(text, content='', columnsize=0, detail=none);
`,
	// 2: what was used, what it cost, what happened, what waits.
	`
CREATE TABLE source(
	turn INTEGER NOT NULL,
	n    INTEGER NOT NULL,
	json TEXT NOT NULL,                -- Source
	PRIMARY KEY(turn, n)
) WITHOUT ROWID;
CREATE TABLE timing(
	key         INTEGER PRIMARY KEY,
	turn        INTEGER NOT NULL,
	fingerprint TEXT NOT NULL,
	started     INTEGER NOT NULL,
	reused      INTEGER NOT NULL,
	prefill     INTEGER NOT NULL,
	prefill_ns  INTEGER NOT NULL,
	decode      INTEGER NOT NULL,
	decode_ns   INTEGER NOT NULL,
	read        INTEGER NOT NULL,
	hit         REAL NOT NULL
);
CREATE INDEX timing_turn ON timing(turn);
CREATE TABLE event(
	key    INTEGER PRIMARY KEY,
	thread INTEGER NOT NULL,
	turn   INTEGER NOT NULL,
	at     INTEGER NOT NULL,
	kind   TEXT NOT NULL,
	text   TEXT NOT NULL
);
CREATE INDEX event_thread ON event(thread);
CREATE TABLE queue(
	key      INTEGER PRIMARY KEY,
	id       INTEGER NOT NULL UNIQUE,
	place    INTEGER NOT NULL,         -- order; gaps are fine
	thread   INTEGER NOT NULL,         -- 0: a new thread
	branch   TEXT NOT NULL,
	text     TEXT NOT NULL,
	folder   TEXT NOT NULL,
	settings TEXT NOT NULL,
	sources  TEXT NOT NULL,
	tokens   INTEGER NOT NULL,         -- of the question and its sources, 0: not counted
	hold     INTEGER NOT NULL,
	created  INTEGER NOT NULL
);
`,
	// 3: books of the snapshots.
	`
CREATE TABLE snapshot(
	key         INTEGER PRIMARY KEY,
	id          INTEGER NOT NULL UNIQUE,
	path        TEXT NOT NULL UNIQUE,
	thread      INTEGER NOT NULL,
	turn        INTEGER NOT NULL,
	position    INTEGER NOT NULL,      -- tokens it covers
	bytes       INTEGER NOT NULL,
	cost_ns     INTEGER NOT NULL,      -- to compute it from nothing
	fingerprint TEXT NOT NULL,
	kernels     TEXT NOT NULL,
	prefix      BLOB NOT NULL,         -- hash of its token ids
	base        INTEGER NOT NULL,      -- longest snapshot of a shorter prefix, 0: none
	created     INTEGER NOT NULL,
	used        INTEGER NOT NULL       -- counts up with every use, like thread.touch
);
CREATE INDEX snapshot_prefix ON snapshot(fingerprint, kernels, position, prefix);
`,
}

// SchemaVersion is the version of the files this program writes.
const SchemaVersion = 3

// A SchemaError says that a file is newer than the program. It is an
// ErrNewerSchema.
type SchemaError struct {
	Path       string
	Have, Want int // version of the file, newest this program knows
}

// Error tells both versions and what to do.
func (e *SchemaError) Error() string {
	return fmt.Sprintf("%s has format %d, this program knows up to %d: use the newer program that wrote it; nothing was changed", e.Path, e.Have, e.Want)
}

// Is reports that e is an ErrNewerSchema.
func (e *SchemaError) Is(target error) bool { return target == ErrNewerSchema }

// checkVersion refuses files of other programs and of later versions, and
// returns the file's version; 0 for an empty file.
func (s *Store) checkVersion(c *conn) (int, error) {
	version, err := c.number("PRAGMA user_version")
	if err != nil {
		return 0, err
	}
	app, err := c.number("PRAGMA application_id")
	if err != nil {
		return 0, err
	}
	tables, err := c.number("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return 0, err
	}
	switch {
	case app == 0 && version == 0 && tables == 0:
		return 0, nil
	case app != applicationID:
		return 0, fmt.Errorf("%s: %w: its mark is %#x, ours is %#x; move it away to begin anew", s.path, ErrForeign, app, applicationID)
	case version > SchemaVersion:
		return 0, &SchemaError{s.path, int(version), SchemaVersion}
	}
	return int(version), nil
}

// migrate brings the file to the present version, all steps in one transaction:
// a failure or a kill leaves the old version whole. Another process may have
// migrated meanwhile, so the version is read again inside.
func (s *Store) migrate(ctx context.Context, c *conn) error {
	return c.within(ctx, "BEGIN IMMEDIATE", func() error {
		version, err := s.checkVersion(c)
		if err != nil {
			return err
		}
		return applySteps(c.db, version, SchemaVersion)
	})
}

// applySteps runs the steps after version from up to version to.
func applySteps(db *sqlite3.Conn, from, to int) error {
	if from == to {
		return nil
	}
	for i := from; i < to; i++ {
		if err := db.Exec(steps[i]); err != nil {
			return fmt.Errorf("bringing the threads to format %d: %w", i+1, err)
		}
	}
	return db.Exec(fmt.Sprintf("PRAGMA application_id=%d; PRAGMA user_version=%d", applicationID, to))
}

package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// LoadOptions say how much of a thread to read.
type LoadOptions struct {
	Bodies bool // text and tokens of the turns
	// Branch keeps only the turns of one branch, first to last; "" keeps all.
	Branch string
}

// Load reads a thread with its turns, branches and events, as of one moment. A
// turn whose bytes are damaged comes without its Body; the others are whole,
// and the error, an ErrCorrupt, names the damaged ones. The thread is returned
// beside such an error.
func (s *Store) Load(ctx context.Context, id ID, opt LoadOptions) (*Thread, error) {
	var t *Thread
	var damaged []error
	err := s.view(ctx, "opening thread "+id.Short(), func(c *conn) error {
		key, err := threadKey(c, id)
		if err != nil {
			return err
		}
		l := loader{c: c, key: key, t: &Thread{}, at: map[int64]int{}}
		if err := l.all(opt); err != nil {
			return err
		}
		t, damaged = l.t, l.damaged
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, errors.Join(damaged...)
}

// A loader reads one thread within one transaction.
type loader struct {
	c       *conn
	key     int64
	t       *Thread
	keys    []int64       // of t.Turns, same order
	at      map[int64]int // key of a turn to its place in t.Turns
	damaged []error
}

func (l *loader) all(opt LoadOptions) error {
	_, err := l.c.one(`SELECT `+infoColumns+` FROM thread WHERE key=?`, []any{l.key}, func(st *sqlite3.Stmt) (err error) {
		l.t.ThreadInfo, err = (&infoReader{c: l.c}).scan(st)
		return err
	})
	if err != nil {
		return err
	}
	for _, part := range []func() error{l.turns, l.branches, l.details, l.events} {
		if err := part(); err != nil {
			return err
		}
	}
	if opt.Branch != "" {
		b, err := l.t.FindBranch(opt.Branch)
		if err != nil {
			return err
		}
		l.keepPath(b)
	}
	if opt.Bodies {
		return l.bodies()
	}
	return nil
}

// turns reads the rows. Parents are older than their children, so a parent's
// place is known when a child is read.
func (l *loader) turns() error {
	type link struct {
		place, kept int
		origin      int64
	}
	var links []link
	err := l.c.each(`SELECT turn.key, id, parent, role, status, created, ended,
			tokens + CASE WHEN status='writing' THEN (SELECT count(*) FROM tail WHERE tail.turn=turn.key) ELSE 0 END,
			thinking, seed, coalesce(json, ''), origin, kept, stop
		FROM turn LEFT JOIN settings ON settings.key=turn.settings WHERE thread=? ORDER BY turn.key`,
		[]any{l.key}, func(st *sqlite3.Stmt) error {
			t := Turn{
				ID: idFromDB(st.ColumnInt64(1)), Role: Role(st.ColumnText(3)), Status: Status(st.ColumnText(4)),
				Created: fromMS(st.ColumnInt64(5)), Ended: fromMS(st.ColumnInt64(6)), Tokens: st.ColumnInt(7), Thinking: st.ColumnInt(8),
				Seed: uint64(st.ColumnInt64(9)), Stop: st.ColumnText(13),
			}
			if err := parseSettings(st.ColumnRawText(10), &t.Settings); err != nil {
				return err
			}
			if parent := st.ColumnInt64(2); parent != 0 {
				place, ok := l.at[parent]
				if !ok {
					return fmt.Errorf("%w: turn %s precedes its parent", ErrCorrupt, t.ID.Short())
				}
				t.Parent = l.t.Turns[place].ID
			}
			if origin := st.ColumnInt64(11); origin != 0 {
				links = append(links, link{len(l.t.Turns), st.ColumnInt(12), origin})
			}
			key := st.ColumnInt64(0)
			l.at[key] = len(l.t.Turns)
			l.keys = append(l.keys, key)
			l.t.Turns = append(l.t.Turns, t)
			return nil
		})
	for _, k := range links {
		if place, ok := l.at[k.origin]; ok {
			l.t.Turns[k.place].Origin = &Origin{l.t.Turns[place].ID, k.kept}
		}
	}
	return err
}

func (l *loader) idOf(key int64) ID {
	if place, ok := l.at[key]; ok {
		return l.t.Turns[place].ID
	}
	return 0
}

func (l *loader) branches() error {
	return l.c.each(`SELECT name, leaf, tip, created FROM branch WHERE thread=? ORDER BY key`, []any{l.key}, func(st *sqlite3.Stmt) error {
		l.t.Branches = append(l.t.Branches, Branch{st.ColumnText(0), l.idOf(st.ColumnInt64(1)), l.idOf(st.ColumnInt64(2)), fromMS(st.ColumnInt64(3))})
		return nil
	})
}

// details reads sources and timings. Few turns have any.
func (l *loader) details() error {
	err := l.c.each(`SELECT source.turn, json FROM turn JOIN source ON source.turn=turn.key WHERE thread=? ORDER BY source.turn, n`,
		[]any{l.key}, func(st *sqlite3.Stmt) error {
			var src Source
			if err := json.Unmarshal(st.ColumnRawText(1), &src); err != nil {
				return fmt.Errorf("%w: source %q: %w", ErrCorrupt, st.ColumnText(1), err)
			}
			t := &l.t.Turns[l.at[st.ColumnInt64(0)]]
			t.Sources = append(t.Sources, src)
			return nil
		})
	if err != nil {
		return err
	}
	return l.c.each(`SELECT timing.turn, `+timingColumns+` FROM turn JOIN timing ON timing.turn=turn.key WHERE thread=? ORDER BY timing.key`,
		[]any{l.key}, func(st *sqlite3.Stmt) error {
			t := &l.t.Turns[l.at[st.ColumnInt64(0)]]
			t.Timings = append(t.Timings, scanTiming(st, 1))
			return nil
		})
}

func (l *loader) events() error {
	return l.c.each(`SELECT at, turn, kind, text FROM event WHERE thread=? ORDER BY key`, []any{l.key}, func(st *sqlite3.Stmt) error {
		l.t.Events = append(l.t.Events, Event{fromMS(st.ColumnInt64(0)), l.idOf(st.ColumnInt64(1)), st.ColumnText(2), st.ColumnText(3)})
		return nil
	})
}

// keepPath drops every turn that is not on the branch, and the other branches.
func (l *loader) keepPath(b Branch) {
	path := l.t.Path(b.Leaf)
	var keys []int64
	place := 0
	for i, key := range l.keys {
		if place < len(path) && l.t.Turns[i].ID == path[place].ID {
			keys = append(keys, key)
			place++
		}
	}
	b.Tip = b.Leaf
	l.t.Turns, l.keys, l.t.Branches = path, keys, []Branch{b}
}

// bodies reads the text of every turn. What is damaged is left out and noted:
// the rest of the thread must stay readable.
func (l *loader) bodies() error {
	for i, key := range l.keys {
		b, err := readTurn(l.c, key)
		if err != nil {
			if !isDamage(err) {
				return err
			}
			l.damaged = append(l.damaged, fmt.Errorf("turn %s (%s): %w", l.t.Turns[i].ID.Short(), l.t.Turns[i].Role, asCorrupt(err)))
			continue
		}
		l.t.Turns[i].Body = b
		l.t.Turns[i].Tokens = len(b.Tokens)
	}
	return nil
}

// isDamage reports whether err says that bytes on the disk are wrong.
func isDamage(err error) bool {
	return errors.Is(err, ErrCorrupt) || errors.Is(err, sqlite3.CORRUPT) || errors.Is(err, sqlite3.IOERR_DATA)
}

func asCorrupt(err error) error {
	if errors.Is(err, ErrCorrupt) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// Tokens reads the tokens of a turn from position `from` on, with its status:
// how another process follows an answer being written.
func (s *Store) Tokens(ctx context.Context, thread, turn ID, from int) (toks []Token, status Status, err error) {
	err = s.view(ctx, "reading turn "+turn.Short(), func(c *conn) error {
		key, err := threadKey(c, thread)
		if err != nil {
			return err
		}
		t, err := turnByID(c, key, turn)
		if err != nil {
			return err
		}
		status = t.status
		// Following costs what is new, not what the answer has grown to: the
		// journal alone is read when it reaches back far enough.
		if first, err := c.number(`SELECT coalesce(min(seq), -1) FROM tail WHERE turn=?`, t.key); err != nil {
			return err
		} else if first >= 0 && from >= int(first) {
			toks, err = newTokens(c, t.key, from)
			return err
		}
		b, err := readTurn(c, t.key)
		if err == nil && from < len(b.Tokens) {
			toks = b.Tokens[max(from, 0):]
		}
		return err
	})
	return toks, status, err
}

// newTokens reads a stretch of the journal without checking what lies before.
func newTokens(c *conn, turn int64, from int) (toks []Token, err error) {
	err = c.each(`SELECT id, channel, text FROM tail WHERE turn=? AND seq>=? ORDER BY seq`, []any{turn, from}, func(st *sqlite3.Stmt) error {
		t := Token{ID: int32(st.ColumnInt64(0)), Channel: Channel(st.ColumnInt(1)), Text: string(st.ColumnRawBlob(2))}
		if err := checkToken(t); err != nil {
			return fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		toks = append(toks, t)
		return nil
	})
	return toks, err
}

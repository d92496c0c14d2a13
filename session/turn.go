package session

import (
	"context"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// A NewTurn is a turn to be added that is complete from the start: a question,
// a system prompt, a tool's result.
type NewTurn struct {
	Role    Role
	Text    string
	Prompt  []int32 // token ids fed for it, nil when not yet rendered; see SetPrompt
	Sources []Source
}

func (n NewTurn) check() error {
	switch n.Role {
	case System, User, Tool:
	default:
		return fmt.Errorf("%w: role %q; answers are written with Begin", ErrInvalid, n.Role)
	}
	return checkPrompt(n.Prompt)
}

func checkPrompt(ids []int32) error {
	for _, id := range ids {
		if err := checkToken(Token{ID: id}); err != nil {
			return err
		}
	}
	return nil
}

func promptTokens(ids []int32) []Token {
	toks := make([]Token, len(ids))
	for i, id := range ids {
		toks[i].ID = id
	}
	return toks
}

// turnRow is a turn as the tree operations need it.
type turnRow struct {
	key, parent, thread int64
	id                  ID
	role                Role
	status              Status
	seed                uint64
	settings            int64
}

const rowColumns = `key, parent, thread, id, role, status, seed, settings`

func scanRow(st *sqlite3.Stmt) turnRow {
	return turnRow{
		st.ColumnInt64(0), st.ColumnInt64(1), st.ColumnInt64(2), idFromDB(st.ColumnInt64(3)),
		Role(st.ColumnText(4)), Status(st.ColumnText(5)), uint64(st.ColumnInt64(6)), st.ColumnInt64(7),
	}
}

// turnByID finds a turn of a thread.
func turnByID(c *conn, thread int64, id ID) (t turnRow, err error) {
	found, err := c.one(`SELECT `+rowColumns+` FROM turn WHERE id=? AND thread=?`, []any{id, thread}, func(st *sqlite3.Stmt) error {
		t = scanRow(st)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("turn %s: %w", id.Short(), ErrNotFound)
	}
	return t, err
}

func turnByKey(c *conn, key int64) (t turnRow, err error) {
	found, err := c.one(`SELECT `+rowColumns+` FROM turn WHERE key=?`, []any{key}, func(st *sqlite3.Stmt) error {
		t = scanRow(st)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%w: turn %d is missing", ErrCorrupt, key)
	}
	return t, err
}

// addTurn inserts a turn under parent and counts it.
func (s *Store) addTurn(c *conn, t turnRow, origin int64, kept int) (int64, error) {
	now := s.opt.Now()
	var ended any = now
	if t.status.Open() {
		ended = 0
	}
	key, err := c.insert(`INSERT INTO turn(id, thread, parent, role, status, created, ended, tokens, thinking, seed, settings, origin, kept, stop)
		VALUES(?, ?, ?, ?, ?, ?, ?, 0, 0, ?, ?, ?, ?, '')`,
		t.id, t.thread, t.parent, string(t.role), string(t.status), now, ended, int64(t.seed), t.settings, origin, kept)
	if err != nil {
		return 0, err
	}
	if err := c.exec(`UPDATE thread SET turns=turns+1, status=?2, settings=CASE WHEN ?3=0 THEN settings ELSE ?3 END WHERE key=?1`,
		t.thread, string(t.status), t.settings); err != nil {
		return 0, err
	}
	return key, s.touchThread(c, t.thread)
}

// addComplete inserts a NewTurn with its text and sources, and gives the
// thread its title if it has none.
func (s *Store) addComplete(c *conn, thread, parent, origin int64, n NewTurn) (int64, error) {
	key, err := s.addTurn(c, turnRow{id: newID(), thread: thread, parent: parent, role: n.Role, status: Done}, origin, 0)
	if err != nil {
		return 0, err
	}
	if err := writeBody(c, key, &Body{Text: n.Text, Tokens: promptTokens(n.Prompt)}); err != nil {
		return 0, err
	}
	if err := addSources(c, key, n.Sources); err != nil {
		return 0, err
	}
	if n.Role != User {
		return key, nil
	}
	untitled, err := c.number(`SELECT count(*) FROM thread WHERE key=? AND title=''`, thread)
	if title := titleOf(n.Text); err == nil && untitled == 1 && title != "" {
		err = retitle(c, thread, title, false)
	}
	return key, err
}

// Append adds a complete turn at the end of a branch ("" is the one used last)
// and returns its id. A paused answer at the end of the branch becomes
// Interrupted: the conversation goes on after what there is of it.
func (w *Writer) Append(ctx context.Context, branch string, n NewTurn) (ID, error) {
	if err := n.check(); err != nil {
		return 0, fmt.Errorf("adding a turn: %w", err)
	}
	var id ID
	err := w.update(ctx, "adding a turn", func(c *conn) error {
		key, err := w.s.appendTx(c, w.key, branch, n)
		if err != nil {
			return err
		}
		t, err := turnByKey(c, key)
		id = t.id
		return err
	})
	return id, err
}

func (s *Store) appendTx(c *conn, thread int64, branch string, n NewTurn) (int64, error) {
	b, err := branchByName(c, thread, branch)
	if err != nil {
		return 0, err
	}
	if b.leaf != 0 {
		leaf, err := turnByKey(c, b.leaf)
		if err != nil {
			return 0, err
		}
		switch leaf.status {
		case Writing:
			return 0, fmt.Errorf("%w: the answer %s is still being written; finish or pause it first", ErrInvalid, leaf.id.Short())
		case Paused:
			if err := s.closeTurn(c, thread, leaf.key, Interrupted, "break-in"); err != nil {
				return 0, err
			}
		}
	}
	key, err := s.addComplete(c, thread, b.leaf, 0, n)
	if err != nil {
		return 0, err
	}
	return key, b.moveTo(c, key)
}

// SetPrompt stores the token ids that were fed for a question that had none.
// Ids once stored are what the model saw: they cannot be replaced.
func (w *Writer) SetPrompt(ctx context.Context, turn ID, ids []int32) error {
	if err := checkPrompt(ids); err != nil {
		return fmt.Errorf("storing a prompt: %w", err)
	}
	return w.update(ctx, "storing a prompt", func(c *conn) error {
		t, err := turnByID(c, w.key, turn)
		if err != nil {
			return err
		}
		b, err := readBody(c, t)
		if err != nil {
			return err
		}
		if b == nil || t.role == Assistant || len(b.Tokens) > 0 {
			return fmt.Errorf("%w: turn %s has its tokens already", ErrInvalid, turn.Short())
		}
		b.Tokens = promptTokens(ids)
		return writeBody(c, t.key, b)
	})
}

// AnswerOptions tell how an answer is to be made.
type AnswerOptions struct {
	Branch   string // to write on; "" is the one used last
	Settings Settings
	Seed     uint64
	// Durable is called whenever more tokens of the answer are on the disk,
	// with their number. It runs inside Append, Sync, Finish or on a timer's
	// goroutine, one call at a time, and must not call the Answer.
	Durable func(tokens int)
}

// Begin starts an answer at the end of a branch.
func (w *Writer) Begin(ctx context.Context, opt AnswerOptions) (*Answer, error) {
	return w.begun(ctx, opt, func(c *conn) (int64, error) {
		b, err := branchByName(c, w.key, opt.Branch)
		if err != nil {
			return 0, err
		}
		return w.beginAt(c, b, b.leaf, 0, opt)
	})
}

// beginAt inserts an open answer under parent and moves the branch to it.
func (w *Writer) beginAt(c *conn, b branchRow, parent, origin int64, opt AnswerOptions) (int64, error) {
	if parent != 0 {
		p, err := turnByKey(c, parent)
		if err != nil {
			return 0, err
		}
		if p.status.Open() {
			return 0, fmt.Errorf("%w: the answer %s before it is not finished; continue it", ErrInvalid, p.id.Short())
		}
	}
	set, err := settingsKey(c, opt.Settings)
	if err != nil {
		return 0, err
	}
	key, err := w.s.addTurn(c, turnRow{
		id: newID(), thread: w.key, parent: parent, role: Assistant, status: Writing, seed: opt.Seed, settings: set,
	}, origin, 0)
	if err != nil {
		return 0, err
	}
	return key, b.moveTo(c, key)
}

// Continue goes on with an answer that ended early, at the token where it
// stopped. Turns that follow it would lose their ground, so it must have none;
// fork inside it instead.
func (w *Writer) Continue(ctx context.Context, turn ID, opt AnswerOptions) (*Answer, error) {
	return w.begun(ctx, opt, func(c *conn) (int64, error) {
		t, err := turnByID(c, w.key, turn)
		if err != nil {
			return 0, err
		}
		followers, err := c.number(`SELECT count(*) FROM turn WHERE thread=? AND parent=?`, w.key, t.key)
		switch {
		case err != nil:
			return 0, err
		case t.role != Assistant:
			return 0, fmt.Errorf("%w: turn %s is no answer", ErrInvalid, turn.Short())
		case followers > 0:
			return 0, fmt.Errorf("%w: %d turns follow the answer %s; fork inside it to go on differently", ErrInvalid, followers, turn.Short())
		}
		set, err := settingsKey(c, opt.Settings)
		if err != nil {
			return 0, err
		}
		if err := c.exec(`UPDATE turn SET status=?, seed=?, settings=?, ended=0, stop='' WHERE key=?`, string(Writing), int64(opt.Seed), set, t.key); err != nil {
			return 0, err
		}
		if err := c.exec(`UPDATE thread SET status=?, settings=? WHERE key=?`, string(Writing), set, w.key); err != nil {
			return 0, err
		}
		return t.key, w.s.touchThread(c, w.key)
	})
}

// begun runs the transaction that opens an answer and makes the Answer for it.
func (w *Writer) begun(ctx context.Context, opt AnswerOptions, open func(*conn) (int64, error)) (*Answer, error) {
	a := &Answer{w: w, tell: opt.Durable}
	// One answer at a time: the slot is taken before the transaction and given
	// back when it fails.
	w.mu.Lock()
	if w.answer != nil {
		other := w.answer.turn
		w.mu.Unlock()
		return nil, fmt.Errorf("beginning an answer: %w: answer %s is still being written", ErrInvalid, other.Short())
	}
	w.answer = a
	w.mu.Unlock()
	err := w.update(ctx, "beginning an answer", func(c *conn) error {
		key, err := open(c)
		if err != nil {
			return err
		}
		t, err := turnByKey(c, key)
		if err != nil {
			return err
		}
		b, err := readTurn(c, key)
		if err != nil {
			return err
		}
		a.key, a.turn, a.durable = key, t.id, len(b.Tokens)
		a.sum = tokensSum(turnSum(t), b.Tokens)
		return nil
	})
	if err != nil {
		w.mu.Lock()
		w.answer = nil
		w.mu.Unlock()
		return nil, err
	}
	w.s.mu.Lock()
	w.s.answers[a.key] = a
	w.s.mu.Unlock()
	return a, nil
}

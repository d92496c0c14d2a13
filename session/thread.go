package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// MainBranch is the branch every thread begins with.
const MainBranch = "main"

// Create makes an empty thread. Its id is on the disk before Create returns,
// so that whatever comes later can be found again. An empty title is replaced
// by the first line of the first question.
func (s *Store) Create(ctx context.Context, title, folder string) (ThreadInfo, error) {
	var key int64
	err := s.update(ctx, "creating a thread", func(c *conn) (err error) {
		key, err = s.createTx(c, newID(), title, folder)
		return err
	})
	if err != nil {
		return ThreadInfo{}, err
	}
	return s.infoByKey(ctx, key)
}

func (s *Store) createTx(c *conn, id ID, title, folder string) (int64, error) {
	now := s.opt.Now()
	title = cleanTitle(title)
	key, err := c.insert(`INSERT INTO thread(id, title, named, folder, created, updated, touch, branch)
		VALUES(?1, ?2, ?3, ?4, ?5, ?5, (SELECT coalesce(max(touch), 0) + 1 FROM thread), ?6)`,
		id, title, title != "", folder, now, MainBranch)
	if err != nil {
		return 0, err
	}
	if title != "" {
		if err := indexWords(c, -key, title); err != nil {
			return 0, err
		}
	}
	return key, c.exec(`INSERT INTO branch(thread, name, leaf, tip, created) VALUES(?, ?, 0, 0, ?)`, key, MainBranch, now)
}

// touchThread notes that a turn of the thread began, ended or moved.
func (s *Store) touchThread(c *conn, key int64) error {
	return c.exec(`UPDATE thread SET updated=?2, touch=(SELECT max(touch) + 1 FROM thread) WHERE key=?1`, key, s.opt.Now())
}

// threadKey finds the row of a thread.
func threadKey(c *conn, id ID) (int64, error) {
	key, err := c.number(`SELECT key FROM thread WHERE id=?`, id)
	if err == nil && key == 0 {
		err = fmt.Errorf("thread %s: %w", id.Short(), ErrNotFound)
	}
	return key, err
}

const infoColumns = `thread.id, title, named, folder, thread.created, updated, turns, tokens, branch, status, trashed,
	(SELECT count(*) FROM branch WHERE branch.thread=thread.key), thread.settings`

// An infoReader makes ThreadInfos of rows. Many threads share few settings, so
// each is parsed once: a list of ten thousand would spend most of its time there.
type infoReader struct {
	c     *conn
	known map[int64]Settings
}

func (r *infoReader) scan(st *sqlite3.Stmt) (ThreadInfo, error) {
	t := ThreadInfo{
		ID: idFromDB(st.ColumnInt64(0)), Title: st.ColumnText(1), Named: st.ColumnBool(2), Folder: st.ColumnText(3),
		Created: fromMS(st.ColumnInt64(4)), Updated: fromMS(st.ColumnInt64(5)), TurnCount: st.ColumnInt(6), Tokens: st.ColumnInt(7),
		Branch: st.ColumnText(8), Status: Status(st.ColumnText(9)), Trashed: st.ColumnBool(10), BranchCount: st.ColumnInt(11),
	}
	key := st.ColumnInt64(12)
	if key == 0 {
		return t, nil
	}
	set, ok := r.known[key]
	if !ok {
		_, err := r.c.one(`SELECT json FROM settings WHERE key=?`, []any{key}, func(st *sqlite3.Stmt) error {
			return parseSettings(st.ColumnRawText(0), &set)
		})
		if err != nil {
			return t, err
		}
		if r.known == nil {
			r.known = map[int64]Settings{}
		}
		r.known[key] = set
	}
	t.Settings = set
	return t, nil
}

func parseSettings(text []byte, into *Settings) error {
	if len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%w: settings %q: %w", ErrCorrupt, text, err)
	}
	return nil
}

// settingsKey returns the row of these settings, adding it when new.
func settingsKey(c *conn, set Settings) (int64, error) {
	text, err := json.Marshal(set)
	if err != nil {
		return 0, fmt.Errorf("%w: settings: %w", ErrInvalid, err)
	}
	key, err := c.number(`SELECT key FROM settings WHERE json=?`, string(text))
	if err != nil || key != 0 {
		return key, err
	}
	return c.insert(`INSERT INTO settings(json) VALUES(?)`, string(text))
}

// ListOptions select threads. The zero value lists all that are not trashed.
type ListOptions struct {
	Limit   int    // 0 means all
	Trashed bool   // those in the trash instead
	Title   string // only threads whose title contains it, whatever the case
}

// List returns threads, the one changed last first.
func (s *Store) List(ctx context.Context, opt ListOptions) ([]ThreadInfo, error) {
	var out []ThreadInfo
	want := foldCase(opt.Title)
	err := s.view(ctx, "listing the threads", func(c *conn) error {
		rows := infoReader{c: c}
		return stopped(c.each(`SELECT `+infoColumns+` FROM thread WHERE trashed=? ORDER BY touch DESC`, []any{opt.Trashed},
			func(st *sqlite3.Stmt) error {
				t, err := rows.scan(st)
				if err != nil {
					return err
				}
				if want != "" && !strings.Contains(foldCase(t.Title), want) {
					return nil
				}
				if out = append(out, t); opt.Limit > 0 && len(out) == opt.Limit {
					return errStop
				}
				return nil
			}))
	})
	return out, err
}

// stopped is err unless that only ended an iteration early.
func stopped(err error) error {
	if err == errStop {
		return nil
	}
	return err
}

var errStop = errors.New("stop")

// Info returns a thread without its text.
func (s *Store) Info(ctx context.Context, id ID) (ThreadInfo, error) {
	var t ThreadInfo
	err := s.view(ctx, "opening a thread", func(c *conn) error {
		found, err := c.one(`SELECT `+infoColumns+` FROM thread WHERE id=?`, []any{id}, func(st *sqlite3.Stmt) (err error) {
			t, err = (&infoReader{c: c}).scan(st)
			return err
		})
		if err == nil && !found {
			err = fmt.Errorf("thread %s: %w", id.Short(), ErrNotFound)
		}
		return err
	})
	return t, err
}

func (s *Store) infoByKey(ctx context.Context, key int64) (t ThreadInfo, err error) {
	err = s.view(ctx, "opening a thread", func(c *conn) error {
		_, err := c.one(`SELECT `+infoColumns+` FROM thread WHERE key=?`, []any{key}, func(st *sqlite3.Stmt) (err error) {
			t, err = (&infoReader{c: c}).scan(st)
			return err
		})
		return err
	})
	return t, err
}

// FindThread returns the thread whose id begins with prefix. Trashed threads
// are found too. Errors: ErrInvalid, ErrNotFound, AmbiguousError.
func (s *Store) FindThread(ctx context.Context, prefix string) (ID, error) {
	return s.find(ctx, "thread", prefix, `SELECT id, title FROM thread WHERE id BETWEEN ?1 AND ?2 LIMIT 10`)
}

// FindTurn returns the turn of a thread whose id begins with prefix.
func (s *Store) FindTurn(ctx context.Context, thread ID, prefix string) (ID, error) {
	return s.find(ctx, "turn", prefix, `SELECT id, role || ': ' || substr(coalesce((SELECT text FROM body WHERE turn=key), ''), 1, 60)
		FROM turn WHERE id BETWEEN ?1 AND ?2 AND thread=(SELECT key FROM thread WHERE id=?3) LIMIT 10`, thread)
}

func (s *Store) find(ctx context.Context, what, prefix, sql string, more ...any) (ID, error) {
	lo, hi, err := prefixRange(prefix)
	if err != nil {
		return 0, err
	}
	var hits []Candidate
	err = s.view(ctx, "looking for "+what+" "+prefix, func(c *conn) error {
		return c.each(sql, append([]any{lo, hi}, more...), func(st *sqlite3.Stmt) error {
			hits = append(hits, Candidate{idFromDB(st.ColumnInt64(0)), firstLine(st.ColumnText(1))})
			return nil
		})
	})
	switch {
	case err != nil:
		return 0, err
	case len(hits) == 0:
		return 0, fmt.Errorf("%s %s: %w", what, prefix, ErrNotFound)
	case len(hits) > 1:
		return 0, &AmbiguousError{prefix, hits}
	}
	return hits[0].ID, nil
}

// Rename gives a thread a title. It needs no writer: the title is no part of
// the conversation.
func (s *Store) Rename(ctx context.Context, id ID, title string) error {
	title = cleanTitle(title)
	if title == "" {
		return fmt.Errorf("renaming thread %s: %w: the title is empty", id.Short(), ErrInvalid)
	}
	return s.update(ctx, "renaming a thread", func(c *conn) error {
		key, err := threadKey(c, id)
		if err != nil {
			return err
		}
		return retitle(c, key, title, true)
	})
}

// retitle replaces the title and its words in the index.
func retitle(c *conn, key int64, title string, named bool) error {
	old := ""
	_, err := c.one(`SELECT title FROM thread WHERE key=?`, []any{key}, func(st *sqlite3.Stmt) error {
		old = st.ColumnText(0)
		return nil
	})
	if err != nil {
		return err
	}
	if old != "" {
		if err := unindexWords(c, -key, old); err != nil {
			return err
		}
	}
	if err := indexWords(c, -key, title); err != nil {
		return err
	}
	return c.exec(`UPDATE thread SET title=?, named=? WHERE key=?`, title, named, key)
}

// titleRunes is the most a title taken from a question has.
const titleRunes = 60

// titleOf makes a title of a question: its first line, cut at a word.
func titleOf(question string) string {
	line := cleanTitle(firstLine(question))
	if utf8.RuneCountInString(line) <= titleRunes {
		return line
	}
	cut := string([]rune(line)[:titleRunes])
	// A break in the last third is worth taking; a line without one (Chinese,
	// an address) is cut where it is.
	if i := strings.LastIndexByte(cut, ' '); i > len(cut)*2/3 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:-") + "..."
}

// cleanTitle makes one line of s, without control characters.
func cleanTitle(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
	return strings.Join(strings.Fields(s), " ")
}

func firstLine(s string) string {
	s = strings.TrimSpace(s)
	line, _, _ := strings.Cut(s, "\n")
	return strings.TrimSpace(line)
}

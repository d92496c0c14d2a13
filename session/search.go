package session

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/ncruces/go-sqlite3"
)

// A Hit is a place that fits a query.
type Hit struct {
	Thread    ID
	Title     string
	Turn      ID // zero: the title itself fits
	Role      Role
	Reasoning bool // found in the thinking, not in the answer
	// Line is the line of the first of the query's words, cut to about 160
	// characters around it; [From,To) is that word's place in Line in bytes,
	// empty when the index found it under other accents.
	Line     string
	From, To int
	Offset   int // of the word in the turn's Text (or Reasoning), in bytes
}

// SearchOptions narrow a search.
type SearchOptions struct {
	Limit  int // of hits; 50 by default
	Thread ID  // only in this thread
}

// candidates is how many turns that contain all words of a phrase are checked
// for the phrase itself. Beyond it a search would no longer feel immediate.
const candidates = 5000

// prefixLetters is how many letters the beginning of a word must have to be
// looked up as one: shorter ones fit too much of the index to be read quickly,
// and tell too little.
const prefixLetters = 3

// Search finds threads and turns that contain every word and every "quoted
// phrase" of the query, titles first, then turns from the newest on. Case and
// accents do not matter for words. A query's last word may be the beginning of
// a longer one; whole words come before those. Trashed threads are left out.
func (s *Store) Search(ctx context.Context, query string, opt SearchOptions) ([]Hit, error) {
	q := searching{terms: parseQuery(query), limit: opt.Limit, seen: map[int64]bool{}}
	n := len(q.terms)
	if n == 0 {
		return nil, nil
	}
	if q.limit <= 0 {
		q.limit = 50
	}
	err := s.view(ctx, "searching", func(c *conn) (err error) {
		if opt.Thread != 0 {
			if q.thread, err = threadKey(c, opt.Thread); err != nil {
				return err
			}
		}
		last := &q.terms[n-1]
		prefix := last.prefix && utf8.RuneCountInString(last.words[len(last.words)-1]) >= prefixLetters
		looks := []look{{false, q.titles}, {prefix, q.journals}, {false, q.turns}}
		if prefix {
			looks = append(looks, look{true, q.titles}, look{true, q.turns})
		}
		for _, l := range looks {
			if last.prefix = l.prefix; q.full() {
				break
			}
			if err := l.at(c); err != nil {
				return err
			}
		}
		return nil
	})
	return q.hits, err
}

// A look goes through one kind of text, taking the last word for the beginning
// of one or for a whole one.
type look struct {
	prefix bool
	at     func(*conn) error
}

// searching is one search under way.
type searching struct {
	terms  []term
	limit  int
	thread int64
	hits   []Hit
	seen   map[int64]bool // rows of the index already among the hits
}

func (q *searching) full() bool { return len(q.hits) >= q.limit }

func (q *searching) titles(c *conn) error {
	return stopped(c.each(`SELECT thread.id, title, words.rowid FROM words JOIN thread ON thread.key=-words.rowid
		WHERE words MATCH ?1 AND words.rowid<0 AND NOT trashed AND (?2=0 OR thread.key=?2) ORDER BY words.rowid`,
		[]any{match(q.terms), q.thread}, func(st *sqlite3.Stmt) error {
			title, row := st.ColumnText(1), st.ColumnInt64(2)
			if h, ok := q.place(title, false); ok && !q.seen[row] {
				q.seen[row] = true
				h.Thread, h.Title = idFromDB(st.ColumnInt64(0)), title
				q.hits = append(q.hits, h)
			}
			return q.enough(0)
		}))
}

// journals looks through the answers being written, which the index does not
// know yet. There are few.
func (q *searching) journals(c *conn) error {
	var open []int64
	err := c.each(`SELECT DISTINCT turn FROM tail ORDER BY turn DESC`, nil, func(st *sqlite3.Stmt) error {
		open = append(open, st.ColumnInt64(0))
		return nil
	})
	if err != nil {
		return err
	}
	for _, turn := range open {
		b, err := readTurn(c, turn)
		if isDamage(err) {
			continue // Load and Check tell; a search shows what can be read
		}
		if err != nil {
			return err
		}
		_, err = c.one(hitSQL, []any{turn, q.thread}, func(st *sqlite3.Stmt) error {
			q.consider(st, turn, b.Text, b.Reasoning, true)
			return nil
		})
		if err != nil || q.full() {
			return err
		}
	}
	return nil
}

const hitSQL = `SELECT thread.id, title, turn.id, role FROM turn JOIN thread ON thread.key=turn.thread
	WHERE turn.key=?1 AND NOT trashed AND (?2=0 OR thread.key=?2)`

// turns asks the index, newest first, and checks phrases against the text.
func (q *searching) turns(c *conn) error {
	looked := 0
	return stopped(c.each(`SELECT rowid FROM words WHERE words MATCH ?1 AND rowid>0
			AND (?2=0 OR rowid IN (SELECT key FROM turn WHERE thread=?2)) ORDER BY rowid DESC`,
		[]any{match(q.terms), q.thread}, func(st *sqlite3.Stmt) error {
			turn := st.ColumnInt64(0)
			if q.seen[turn] {
				return nil
			}
			looked++
			var text, reasoning string
			_, err := c.one(`SELECT text, reasoning FROM body WHERE turn=?`, []any{turn}, func(st *sqlite3.Stmt) error {
				text, reasoning = st.ColumnText(0), st.ColumnText(1)
				return nil
			})
			if isDamage(err) {
				return nil
			}
			if err != nil {
				return err
			}
			_, err = c.one(hitSQL, []any{turn, q.thread}, func(st *sqlite3.Stmt) error {
				q.consider(st, turn, text, reasoning, false)
				return nil
			})
			if err != nil {
				return err
			}
			return q.enough(looked)
		}))
}

func (q *searching) enough(looked int) error {
	if q.full() || looked >= candidates {
		return errStop
	}
	return nil
}

// consider adds a turn to the hits if its text fits. Words were found by the
// index, or must all be found here when strict is set.
func (q *searching) consider(st *sqlite3.Stmt, turn int64, text, reasoning string, strict bool) {
	h, ok := q.place(indexedText(text, reasoning), strict)
	if !ok {
		return
	}
	if h.From < h.To && h.Offset > len(text) {
		h.Reasoning = true
		h.Offset -= len(text) + 1
	}
	h.Thread, h.Title = idFromDB(st.ColumnInt64(0)), st.ColumnText(1)
	h.Turn, h.Role = idFromDB(st.ColumnInt64(2)), Role(st.ColumnText(3))
	q.seen[turn] = true
	q.hits = append(q.hits, h)
}

// place looks for the terms in a text and describes the first one found.
// Phrases must be there; so must single words when strict is set.
func (q *searching) place(text string, strict bool) (h Hit, ok bool) {
	placed := false
	for _, t := range q.terms {
		from, to, found := t.find(text)
		if !found && (strict || len(t.words) > 1) {
			return Hit{}, false
		}
		if found && !placed {
			placed = true
			h.Offset = from
			h.Line = cutLine(text, from, to, &h)
		}
	}
	if !placed {
		h.Line = cutLine(text, 0, 0, &h)
	}
	return h, true
}

// around is how much of a line is shown on either side of a hit, in bytes.
const around = 80

// cutLine returns the line of text[from:to], cut around it, and sets the
// place in the line.
func cutLine(text string, from, to int, h *Hit) string {
	start := strings.LastIndexByte(text[:from], '\n') + 1
	end := len(text)
	if i := strings.IndexByte(text[to:], '\n'); i >= 0 {
		end = to + i
	}
	left, right := "", ""
	if from-start > around {
		start = from - around
		for start < from && !utf8.RuneStart(text[start]) {
			start++
		}
		if i := strings.IndexByte(text[start:from], ' '); i >= 0 && i < around/2 {
			start += i + 1
		}
		left = "..."
	}
	if end-to > around {
		end = to + around
		for end > to && !utf8.RuneStart(text[end]) {
			end--
		}
		if i := strings.LastIndexByte(text[to:end], ' '); i > around/2 {
			end = to + i
		}
		right = "..."
	}
	h.From = len(left) + from - start
	h.To = h.From + to - from
	return left + text[start:end] + right
}

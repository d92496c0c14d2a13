package session

import (
	"errors"
	"fmt"

	"github.com/ncruces/go-sqlite3"
)

// readBody reads the folded part of a turn and checks it; nil when there is
// none.
func readBody(c *conn, t turnRow) (b *Body, err error) {
	_, err = c.one(`SELECT text, reasoning, ids, lens, sum FROM body JOIN tokens ON tokens.turn=body.turn WHERE body.turn=?`, []any{t.key}, func(st *sqlite3.Stmt) (err error) {
		b = &Body{Text: st.ColumnText(0), Reasoning: st.ColumnText(1)}
		if b.Tokens, err = unpackTokens(st.ColumnRawBlob(2), st.ColumnRawBlob(3), b.Text, b.Reasoning); err != nil {
			return err
		}
		if want, got := uint32(st.ColumnInt64(4)), bodySum(t, b); want != got {
			return fmt.Errorf("%w: the text's checksum is %08x, stored was %08x", ErrCorrupt, got, want)
		}
		return nil
	})
	return b, err
}

// readTail reads the journal of a turn, checking that no token is missing or
// altered. before are the tokens already folded. With an ErrCorrupt come the
// tokens up to the damage.
func readTail(c *conn, t turnRow, before []Token) ([]Token, error) {
	var toks []Token
	sum := tokensSum(turnSum(t), before)
	err := c.each(`SELECT seq, id, channel, text, sum FROM tail WHERE turn=? ORDER BY seq`, []any{t.key}, func(st *sqlite3.Stmt) error {
		t := Token{ID: int32(st.ColumnInt64(1)), Channel: Channel(st.ColumnInt(2)), Text: string(st.ColumnRawBlob(3))}
		sum = tokenSum(sum, t)
		if seq, want := st.ColumnInt(0), len(before)+len(toks); seq != want || checkToken(t) != nil || uint32(st.ColumnInt64(4)) != sum {
			return fmt.Errorf("%w: the journal breaks at token %d", ErrCorrupt, want)
		}
		toks = append(toks, t)
		return nil
	})
	return toks, err
}

// readTurn reads a turn whole: what is folded and what is still in the journal.
func readTurn(c *conn, turn int64) (*Body, error) {
	t, err := turnByKey(c, turn)
	if err != nil {
		return nil, err
	}
	b, err := readBody(c, t)
	switch {
	case err != nil:
		return nil, err
	case b == nil && t.status != Writing:
		return nil, fmt.Errorf("%w: the text is missing", ErrCorrupt)
	case b == nil:
		b = &Body{}
	}
	more, err := readTail(c, t, b.Tokens)
	if err != nil {
		return nil, err
	}
	b.add(more)
	return b, nil
}

// add appends tokens with their text.
func (b *Body) add(toks []Token) {
	if len(toks) == 0 {
		return
	}
	text, reasoning := textsOf(toks)
	b.Text += text
	b.Reasoning += reasoning
	b.Tokens = append(b.Tokens, toks...)
}

// foldTail moves a turn's journal into its body and the index of words.
func foldTail(c *conn, turn int64) error {
	b, err := readTurn(c, turn)
	if err != nil {
		return err
	}
	return replaceTail(c, turn, b)
}

func replaceTail(c *conn, turn int64, b *Body) error {
	if err := writeBody(c, turn, b); err != nil {
		return err
	}
	return c.exec(`DELETE FROM tail WHERE turn=?`, turn)
}

// salvage is foldTail for a turn whose writer died: what a damaged journal
// holds before the damage is kept. It returns how many tokens were kept and
// how many records were given up.
func salvage(c *conn, turn int64) (kept, dropped int, err error) {
	t, err := turnByKey(c, turn)
	if err != nil {
		return 0, 0, err
	}
	b, err := readBody(c, t)
	if err != nil {
		return 0, 0, err
	}
	if b == nil {
		b = &Body{}
	}
	more, err := readTail(c, t, b.Tokens)
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return 0, 0, err
	}
	rows, err := c.number(`SELECT count(*) FROM tail WHERE turn=?`, turn)
	if err != nil {
		return 0, 0, err
	}
	b.add(more)
	return len(b.Tokens), int(rows) - len(more), replaceTail(c, turn, b)
}

// writeBody stores a body, replacing the one that was there, and keeps the
// index of words and the counts of turn and thread in step with it.
func writeBody(c *conn, turn int64, b *Body) error {
	var old string
	had, err := c.one(`SELECT text, reasoning FROM body WHERE turn=?`, []any{turn}, func(st *sqlite3.Stmt) error {
		old = indexedText(st.ColumnText(0), st.ColumnText(1))
		return nil
	})
	if err != nil {
		return err
	}
	if had && old != "" {
		if err := unindexWords(c, turn, old); err != nil {
			return err
		}
	}
	t, err := turnByKey(c, turn)
	if err != nil {
		return err
	}
	ids, lens := packTokens(b.Tokens)
	if err := c.exec(`INSERT OR REPLACE INTO body(turn, text, reasoning) VALUES(?, ?, ?)`, turn, b.Text, b.Reasoning); err != nil {
		return err
	}
	if err := c.exec(`INSERT OR REPLACE INTO tokens(turn, ids, lens, sum) VALUES(?, ?, ?, ?)`, turn, ids, lens, int64(bodySum(t, b))); err != nil {
		return err
	}
	if text := indexedText(b.Text, b.Reasoning); text != "" {
		if err := indexWords(c, turn, text); err != nil {
			return err
		}
	}
	thinking := 0
	for _, t := range b.Tokens {
		if t.Channel == InThinking {
			thinking++
		}
	}
	err = c.exec(`UPDATE thread SET tokens = tokens + ?2 - (SELECT tokens FROM turn WHERE key=?1)
		WHERE key=(SELECT thread FROM turn WHERE key=?1)`, turn, len(b.Tokens))
	if err != nil {
		return err
	}
	return c.exec(`UPDATE turn SET tokens=?2, thinking=?3 WHERE key=?1`, turn, len(b.Tokens), thinking)
}

// closeTurn sets the state of a turn that no longer receives tokens.
func (s *Store) closeTurn(c *conn, thread, turn int64, status Status, stop string) error {
	ended := s.opt.Now()
	if err := c.exec(`UPDATE turn SET status=?2, stop=?3, ended=CASE WHEN ?2='paused' THEN 0 ELSE ?4 END WHERE key=?1`, turn, string(status), stop, ended); err != nil {
		return err
	}
	if err := c.exec(`UPDATE thread SET status=?2 WHERE key=?1`, thread, string(status)); err != nil {
		return err
	}
	return s.touchThread(c, thread)
}

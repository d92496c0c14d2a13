package session

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// addSources notes what a turn rests on, after what is noted already.
func addSources(c *conn, turn int64, sources []Source) error {
	if len(sources) == 0 {
		return nil
	}
	n, err := c.number(`SELECT coalesce(max(n) + 1, 0) FROM source WHERE turn=?`, turn)
	if err != nil {
		return err
	}
	for i, src := range sources {
		text, err := json.Marshal(src)
		if err != nil {
			return fmt.Errorf("%w: source %q: %w", ErrInvalid, src.Name, err)
		}
		if err := c.exec(`INSERT INTO source(turn, n, json) VALUES(?, ?, ?)`, turn, int(n)+i, string(text)); err != nil {
			return err
		}
	}
	return nil
}

// AddSources notes further sources of a turn, such as those an answer came to
// cite.
func (w *Writer) AddSources(ctx context.Context, turn ID, sources ...Source) error {
	return w.update(ctx, "noting sources", func(c *conn) error {
		t, err := turnByID(c, w.key, turn)
		if err != nil {
			return err
		}
		return addSources(c, t.key, sources)
	})
}

const timingColumns = `timing.started, reused, prefill, prefill_ns, decode, decode_ns, read, hit`

func scanTiming(st *sqlite3.Stmt, first int) Timing {
	return Timing{
		Started: fromMS(st.ColumnInt64(first)), Reused: st.ColumnInt(first + 1),
		Prefill: st.ColumnInt(first + 2), PrefillT: time.Duration(st.ColumnInt64(first + 3)),
		Decode: st.ColumnInt(first + 4), DecodeT: time.Duration(st.ColumnInt64(first + 5)),
		Read: st.ColumnInt64(first + 6), HitRate: st.ColumnFloat(first + 7),
	}
}

// addTiming notes what a run cost, under the weights it ran with. A clock that
// was set back during the run must not leave a negative duration.
func addTiming(c *conn, turn int64, t Timing) error {
	if t == (Timing{}) {
		return nil
	}
	return c.exec(`INSERT INTO timing(turn, fingerprint, started, reused, prefill, prefill_ns, decode, decode_ns, read, hit)
		VALUES(?1, coalesce((SELECT json ->> 'fingerprint' FROM turn JOIN settings ON settings.key=turn.settings WHERE turn.key=?1), ''),
			?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)`,
		turn, t.Started, t.Reused, t.Prefill, int64(max(t.PrefillT, 0)), t.Decode, int64(max(t.DecodeT, 0)), t.Read, t.HitRate)
}

func addEvent(c *conn, thread, turn int64, at time.Time, kind, text string) error {
	return c.exec(`INSERT INTO event(thread, turn, at, kind, text) VALUES(?, ?, ?, ?, ?)`, thread, turn, at, kind, text)
}

// AddEvent notes something that happened to a thread, or to one of its turns
// when turn is not zero. It needs no writer.
func (s *Store) AddEvent(ctx context.Context, thread, turn ID, kind, text string) error {
	return s.update(ctx, "noting an event", func(c *conn) error {
		key, err := threadKey(c, thread)
		if err != nil {
			return err
		}
		var turnKey int64
		if turn != 0 {
			t, err := turnByID(c, key, turn)
			if err != nil {
				return err
			}
			turnKey = t.key
		}
		return addEvent(c, key, turnKey, s.opt.Now(), kind, text)
	})
}

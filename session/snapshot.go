package session

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// A SnapshotInfo is the entry for one saved state of the engine. The engine
// writes and reads the file; here is only the book of them.
type SnapshotInfo struct {
	ID          ID
	Path        string
	Thread      ID // zero when the thread is gone
	Turn        ID // zero when of no turn (a document read in advance)
	Tokens      int
	Bytes       int64
	Cost        time.Duration // to compute it from nothing
	Fingerprint string        // of the weights
	KernelSet   string
	Created     time.Time
}

// prefixHash is the hash of a sequence of token ids as far as it has been fed.
// Equal hashes mean equal sequences: 128 bits of SHA-256.
type prefixHash [16]byte

// hashPrefixes returns the hash of ids[:n] for every n of ends, which ascend.
// One pass: the state at a shorter prefix is a stop on the way to the longer.
func hashPrefixes(ids []int32, ends []int) []prefixHash {
	h := sha256.New()
	buf := make([]byte, 0, 4096)
	out := make([]prefixHash, len(ends))
	at := 0
	for i, end := range ends {
		for ; at < end; at++ {
			if buf = binary.LittleEndian.AppendUint32(buf, uint32(ids[at])); len(buf) == cap(buf) {
				h.Write(buf)
				buf = buf[:0]
			}
		}
		h.Write(buf)
		buf = buf[:0]
		copy(out[i][:], h.Sum(nil))
	}
	return out
}

// AddSnapshot enters a snapshot that lies complete on its drive; ids are the
// tokens it covers, info.Tokens is taken from them. An entry of the same path
// is replaced.
func (s *Store) AddSnapshot(ctx context.Context, info SnapshotInfo, ids []int32) (ID, error) {
	if info.Path == "" || len(ids) == 0 || info.Bytes <= 0 {
		return 0, fmt.Errorf("entering a snapshot: %w: path %q, %d tokens, %d bytes", ErrInvalid, info.Path, len(ids), info.Bytes)
	}
	id := newID()
	return id, s.update(ctx, "entering a snapshot", func(c *conn) error {
		var thread, turn int64
		if info.Thread != 0 {
			var err error
			if thread, err = threadKey(c, info.Thread); err != nil {
				return err
			}
		}
		if info.Turn != 0 {
			t, err := turnByID(c, thread, info.Turn)
			if err != nil {
				return err
			}
			turn = t.key
		}
		if err := dropSnapshots(c, `path=?1`, info.Path); err != nil {
			return err
		}
		base, err := longestPrefix(c, ids[:len(ids)-1], info.Fingerprint, info.KernelSet)
		if err != nil {
			return err
		}
		hash := hashPrefixes(ids, []int{len(ids)})[0]
		return c.exec(`INSERT INTO snapshot(id, path, thread, turn, position, bytes, cost_ns, fingerprint, kernels, prefix, base, created, used)
			VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM snapshot))`,
			id, info.Path, thread, turn, len(ids), info.Bytes, int64(max(info.Cost, 0)), info.Fingerprint, info.KernelSet, hash[:], base, s.opt.Now())
	})
}

// longestPrefix returns the key of the snapshot with the longest token
// sequence that ids begin with, 0 without one.
func longestPrefix(c *conn, ids []int32, fingerprint, kernels string) (int64, error) {
	var ends []int
	err := c.each(`SELECT DISTINCT position FROM snapshot WHERE fingerprint=? AND kernels=? AND position<=? ORDER BY position`,
		[]any{fingerprint, kernels, len(ids)}, func(st *sqlite3.Stmt) error {
			ends = append(ends, st.ColumnInt(0))
			return nil
		})
	if err != nil {
		return 0, err
	}
	hashes := hashPrefixes(ids, ends)
	for i := len(ends) - 1; i >= 0; i-- {
		key, err := c.number(`SELECT key FROM snapshot WHERE fingerprint=? AND kernels=? AND position=? AND prefix=? ORDER BY used DESC LIMIT 1`,
			fingerprint, kernels, ends[i], hashes[i][:])
		if err != nil || key != 0 {
			return key, err
		}
	}
	return 0, nil
}

// FindSnapshot returns the snapshot of any thread that covers the most of ids
// from their beginning, made with these weights and kernels, and counts it as
// used. ok is false when there is none.
func (s *Store) FindSnapshot(ctx context.Context, ids []int32, fingerprint, kernels string) (info SnapshotInfo, ok bool, err error) {
	var key int64
	err = s.view(ctx, "looking for a snapshot", func(c *conn) (err error) {
		if key, err = longestPrefix(c, ids, fingerprint, kernels); err != nil || key == 0 {
			return err
		}
		books, err := readSnapshots(c, `snapshot.key=?1`, key)
		if err == nil && len(books) == 1 {
			info, ok = books[0].SnapshotInfo, true
		}
		return err
	})
	if err == nil && ok && !s.opt.ReadOnly {
		err = s.update(ctx, "using a snapshot", func(c *conn) error {
			return c.exec(`UPDATE snapshot SET used=(SELECT max(used) + 1 FROM snapshot) WHERE key=?`, key)
		})
	}
	return info, ok, err
}

// snapshotRow is an entry with what eviction needs.
type snapshotRow struct {
	SnapshotInfo
	key, base, used int64
	dead            bool // of no branch any more, or of a trashed thread
}

// readSnapshots reads the entries that a condition selects. An entry is dead
// when its turn lies on no path that a branch, or redo on it, can reach.
func readSnapshots(c *conn, where string, args ...any) (out []snapshotRow, err error) {
	err = c.each(`SELECT snapshot.key, base, used, snapshot.id, path, thread.id, turn.id, position, bytes, cost_ns, snapshot.fingerprint, kernels, snapshot.created,
			coalesce(trashed, 0) OR snapshot.turn<>0 AND NOT EXISTS (
				WITH RECURSIVE up(key) AS (
					SELECT leaf FROM branch WHERE branch.thread=snapshot.thread UNION SELECT tip FROM branch WHERE branch.thread=snapshot.thread
					UNION SELECT parent FROM turn JOIN up ON turn.key=up.key)
				SELECT 1 FROM up WHERE up.key=snapshot.turn)
		FROM snapshot LEFT JOIN thread ON thread.key=snapshot.thread LEFT JOIN turn ON turn.key=snapshot.turn WHERE `+where+` ORDER BY snapshot.key`,
		args, func(st *sqlite3.Stmt) error {
			r := snapshotRow{key: st.ColumnInt64(0), base: st.ColumnInt64(1), used: st.ColumnInt64(2), dead: st.ColumnBool(13)}
			r.SnapshotInfo = SnapshotInfo{
				ID: idFromDB(st.ColumnInt64(3)), Path: st.ColumnText(4), Tokens: st.ColumnInt(7), Bytes: st.ColumnInt64(8),
				Cost: time.Duration(st.ColumnInt64(9)), Fingerprint: st.ColumnText(10), KernelSet: st.ColumnText(11), Created: fromMS(st.ColumnInt64(12)),
			}
			if st.ColumnType(5) != sqlite3.NULL {
				r.Thread = idFromDB(st.ColumnInt64(5))
			}
			if st.ColumnType(6) != sqlite3.NULL {
				r.Turn = idFromDB(st.ColumnInt64(6))
			}
			out = append(out, r)
			return nil
		})
	return out, err
}

// Snapshots lists the entries in the order they were made; thread zero means
// all of them.
func (s *Store) Snapshots(ctx context.Context, thread ID) (out []SnapshotInfo, err error) {
	err = s.view(ctx, "listing the snapshots", func(c *conn) error {
		where, args := `?1=0`, []any{0}
		if thread != 0 {
			key, err := threadKey(c, thread)
			if err != nil {
				return err
			}
			where, args = `snapshot.thread=?1`, []any{key}
		}
		rows, err := readSnapshots(c, where, args...)
		for _, r := range rows {
			out = append(out, r.SnapshotInfo)
		}
		return err
	})
	return out, err
}

// DropSnapshot removes an entry, such as one whose file is missing or damaged.
// The file is the caller's.
func (s *Store) DropSnapshot(ctx context.Context, id ID) error {
	return s.update(ctx, "dropping a snapshot", func(c *conn) error {
		return dropSnapshots(c, `id=?1`, id)
	})
}

// dropSnapshots removes entries and gives those built on them their base.
func dropSnapshots(c *conn, where string, args ...any) error {
	type row struct{ key, base int64 }
	var rows []row
	err := c.each(`SELECT key, base FROM snapshot WHERE `+where, args, func(st *sqlite3.Stmt) error {
		rows = append(rows, row{st.ColumnInt64(0), st.ColumnInt64(1)})
		return nil
	})
	for _, r := range rows {
		if err == nil {
			err = c.exec(`UPDATE snapshot SET base=(SELECT base FROM snapshot WHERE key=?1) WHERE base=?1`, r.key)
		}
		if err == nil {
			err = c.exec(`DELETE FROM snapshot WHERE key=?`, r.key)
		}
	}
	return err
}

// EvictSnapshots removes snapshots until the rest fits a budget of bytes, the
// least valuable first, and returns what it removed. remove deletes a file; a
// file already missing (fs.ErrNotExist) counts as deleted. fingerprint and
// kernels are those in use: snapshots of others cannot be restored and go
// first, as do those of turns that no branch reaches.
//
// The value of a snapshot is the time it saves per byte: its cost less that of
// the longest shorter snapshot of the same tokens that stays.
func (s *Store) EvictSnapshots(ctx context.Context, budget int64, fingerprint, kernels string, remove func(path string) error) (gone []SnapshotInfo, err error) {
	var rows []snapshotRow
	err = s.view(ctx, "weighing the snapshots", func(c *conn) (err error) {
		rows, err = readSnapshots(c, `1`)
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range rows {
		rows[i].dead = rows[i].dead || rows[i].Fingerprint != fingerprint || rows[i].KernelSet != kernels
	}
	for _, r := range planEviction(rows, budget) {
		// The file goes first. If the process ends here, the entry of a missing
		// file is dropped when someone wants it; a file without an entry would
		// lie there for ever.
		if err := remove(r.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return gone, fmt.Errorf("removing snapshot %s: %w", r.Path, err)
		}
		if err := s.DropSnapshot(ctx, r.ID); err != nil {
			return gone, err
		}
		gone = append(gone, r.SnapshotInfo)
	}
	return gone, nil
}

// planEviction chooses what to remove, in order. The value of the others is
// reckoned anew after each, since losing a base makes a snapshot more precious.
func planEviction(rows []snapshotRow, budget int64) (victims []snapshotRow) {
	left := slices.Clone(rows)
	var total int64
	for _, r := range left {
		total += r.Bytes
	}
	for total > budget && len(left) > 0 {
		cost := make(map[int64]time.Duration, len(left))
		for _, r := range left {
			cost[r.key] = r.Cost
		}
		value := func(r snapshotRow) float64 {
			if r.dead {
				return -1
			}
			return float64(max(r.Cost-cost[r.base], 0)) / float64(r.Bytes)
		}
		worst := slices.MinFunc(left, func(a, b snapshotRow) int {
			return cmp.Or(cmp.Compare(value(a), value(b)), cmp.Compare(a.used, b.used))
		})
		victims = append(victims, worst)
		total -= worst.Bytes
		left = slices.DeleteFunc(left, func(r snapshotRow) bool { return r.key == worst.key })
		for i := range left {
			if left[i].base == worst.key {
				left[i].base = worst.base
			}
		}
	}
	return victims
}

package session

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// makeVersion makes a database as the program of an earlier format left it,
// with a thread in it, from the steps of that format alone.
func makeVersion(t *testing.T, version int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	c, err := connect("file:"+filepath.ToSlash(filepath.Join(dir, FileName)), false)
	check(t, err)
	check(t, setWAL(c))
	check(t, applySteps(c.db, 0, version))
	check(t, c.exec(`INSERT INTO settings(key, json) VALUES(1, '{"model":"k3","fingerprint":"f","temperature":1}')`))
	check(t, c.exec(`INSERT INTO thread(key, id, title, named, folder, created, updated, touch, turns, tokens, branch, status, settings)
		VALUES(1, ?, 'an old thread', 1, '', 5, 6, 1, 2, 3, 'main', 'writing', 1)`, ID(0xabc)))
	check(t, c.exec(`INSERT INTO branch(thread, name, leaf, tip, created) VALUES(1, 'main', 2, 2, 5)`))
	question := turnRow{key: 1, thread: 1, id: 0x11, role: User, status: Done}
	answer := turnRow{key: 2, thread: 1, parent: 1, id: 0x12, role: Assistant, status: Writing, settings: 1}
	for _, r := range []turnRow{question, answer} {
		check(t, c.exec(`INSERT INTO turn(key, id, thread, parent, role, status, created, ended, tokens, thinking, seed, settings, origin, kept, stop)
			VALUES(?, ?, 1, ?, ?, ?, 5, 5, ?, 0, 0, ?, 0, 0, '')`, r.key, r.id, r.parent, string(r.role), string(r.status), 3-3*int(r.parent), r.settings))
	}
	b := &Body{Text: "an old question", Tokens: promptTokens([]int32{1, 2, 3})}
	ids, lens := packTokens(b.Tokens)
	check(t, c.exec(`INSERT INTO body(turn, text, reasoning) VALUES(1, ?, '')`, b.Text))
	check(t, c.exec(`INSERT INTO tokens(turn, ids, lens, sum) VALUES(1, ?, ?, ?)`, ids, lens, int64(bodySum(question, b))))
	check(t, indexWords(c, 1, b.Text))
	check(t, indexWords(c, -1, "an old thread"))
	sum := turnSum(answer)
	for i, text := range []string{"an ", "old "} {
		tok := Token{ID: int32(i), Channel: InAnswer, Text: text}
		sum = tokenSum(sum, tok)
		check(t, c.exec(`INSERT INTO tail(turn, seq, id, channel, text, at, sum) VALUES(2, ?, ?, ?, ?, 9, ?)`, i, int(tok.ID), int(tok.Channel), []byte(text), int64(sum)))
	}
	check(t, c.close())
	return dir
}

func schemaOf(t *testing.T, s *Store) (out []string) {
	t.Helper()
	check(t, s.view(t.Context(), "test", func(c *conn) error {
		return c.each(`SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name`, nil, func(st *sqlite3.Stmt) error {
			out = append(out, st.ColumnText(0))
			return nil
		})
	}))
	return out
}

// TestEveryVersionComesForward: a file of any earlier format ends with the same
// schema as a new one, its text whole and its open answer recovered.
func TestEveryVersionComesForward(t *testing.T) {
	if len(steps) != SchemaVersion {
		t.Fatalf("%d steps make version %d", len(steps), SchemaVersion)
	}
	want := schemaOf(t, newStore(t, nil))
	for version := 1; version <= SchemaVersion; version++ {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			s := reopen(t, makeVersion(t, version), nil)
			equal(t, schemaOf(t, s), want)
			w := lock(t, s, 0xabc)
			if rec := w.Recovered(); rec == nil || rec.Tokens != 2 || rec.Turn != 0x12 {
				t.Errorf("recovered %+v", rec)
			}
			a := must[*Answer](t)(w.Continue(t.Context(), 0x12, AnswerOptions{}))
			must[int](t)(a.Append(t.Context(), Token{ID: 2, Channel: InAnswer, Text: "answer"}))
			check(t, a.Finish(t.Context(), Outcome{Status: Done, Timing: Timing{Decode: 1}}))
			must[ID](t)(s.AddSnapshot(t.Context(), SnapshotInfo{Path: "p", Thread: 0xabc, Bytes: 1}, []int32{1}))
			must[ID](t)(s.Enqueue(t.Context(), QueueItem{Text: "q"}))
			th := must[*Thread](t)(s.Load(t.Context(), 0xabc, LoadOptions{Bodies: true}))
			if th.Turns[1].Body.Text != "an old answer" || th.Turns[0].Body.Text != "an old question" {
				t.Errorf("%+v", th.Turns)
			}
			if hits := must[[]Hit](t)(s.Search(t.Context(), "old", SearchOptions{})); len(hits) != 3 {
				t.Errorf("%d hits", len(hits))
			}
			sound(t, s)
		})
	}
}

// TestAFailedMigrationChangesNothing: one step, then a failing one.
func TestAFailedMigrationChangesNothing(t *testing.T) {
	dir := makeVersion(t, 1)
	ffs, vfsName := newFaultFS(t)
	failed := 0
	for n := 1; ; n += 2 {
		ffs.arm(n, sqlite3.FULL)
		s, err := Open(t.Context(), dir, &Options{vfs: vfsName})
		ffs.room()
		if err == nil {
			check(t, s.Close())
			break
		}
		failed++
		if !errors.Is(err, ErrFull) {
			t.Fatalf("change %d: %v", n, err)
		}
		c, err := connect("file:"+filepath.ToSlash(filepath.Join(dir, FileName)), false)
		check(t, err)
		if v, err := c.number("PRAGMA user_version"); err != nil || v != 1 {
			t.Fatalf("change %d: version %d, %v", n, v, err)
		}
		check(t, c.close())
	}
	if failed < 3 {
		t.Errorf("only %d failures: the test covers too little", failed)
	}
	sound(t, reopen(t, dir, nil))
}

func TestANewerFileIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	old := reopen(t, dir, nil) // open while a newer program changes the file
	must[ThreadInfo](t)(s.Create(t.Context(), "x", ""))
	check(t, s.update(t.Context(), "test", func(c *conn) error { return c.db.Exec(fmt.Sprint("PRAGMA user_version=", SchemaVersion+1)) }))
	_, err := old.Create(t.Context(), "y", "")
	if !errors.Is(err, ErrNewerSchema) {
		t.Errorf("writing with the older program: %v", err)
	}
	check(t, s.Close())
	check(t, old.Close())
	before, err := os.ReadFile(filepath.Join(dir, FileName))
	check(t, err)
	for _, ro := range []bool{false, true} {
		_, err := Open(t.Context(), dir, &Options{ReadOnly: ro})
		var newer *SchemaError
		if !errors.As(err, &newer) || newer.Have != SchemaVersion+1 || newer.Want != SchemaVersion || !errors.Is(err, ErrNewerSchema) {
			t.Fatalf("read only %v: %v", ro, err)
		}
		if msg := err.Error(); !strings.Contains(msg, fmt.Sprintf("format %d, this program knows up to %d", SchemaVersion+1, SchemaVersion)) {
			t.Errorf("message: %s", msg)
		}
	}
	after, err := os.ReadFile(filepath.Join(dir, FileName))
	check(t, err)
	if string(before) != string(after) {
		t.Error("refusing the file changed it")
	}
}

func TestForeignFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	c, err := connect("file:"+filepath.ToSlash(filepath.Join(dir, FileName)), false)
	check(t, err)
	check(t, c.db.Exec("CREATE TABLE bookmarks(url); PRAGMA user_version=2"))
	check(t, c.close())
	if _, err := Open(t.Context(), dir, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("another program's database: %v", err)
	}
	dir = t.TempDir()
	check(t, os.WriteFile(filepath.Join(dir, FileName), []byte(strings.Repeat("not a database ", 600)), 0o600))
	if _, err := Open(t.Context(), dir, nil); !errors.Is(err, ErrForeign) {
		t.Errorf("no database at all: %v", err)
	}
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(t.Context(), dir, &Options{ReadOnly: true}); !errors.Is(err, ErrNotFound) {
		t.Errorf("an empty folder: %v", err)
	}
	s := reopen(t, dir, nil)
	id, w := newThread(t, s)
	say(t, w, "hello there")
	ro := reopen(t, dir, &Options{ReadOnly: true}) // beside a writer
	if th := must[*Thread](t)(ro.Load(t.Context(), id, LoadOptions{Bodies: true})); th.Turns[0].Body.Text != "hello there" {
		t.Errorf("%+v", th)
	}
	say(t, w, "second")
	if n := len(must[*Thread](t)(ro.Load(t.Context(), id, LoadOptions{})).Turns); n != 2 {
		t.Errorf("%d turns: a reader must see what was written since", n)
	}
	if hits := must[[]Hit](t)(ro.Search(t.Context(), "hello", SearchOptions{})); len(hits) != 2 {
		t.Errorf("%d hits", len(hits))
	}
	if _, err := ro.Lock(t.Context(), id); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Lock: %v", err)
	}
	if err := ro.Rename(t.Context(), id, "x"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Rename: %v", err)
	}
	old := makeVersion(t, 1)
	if _, err := Open(t.Context(), old, &Options{ReadOnly: true}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("an older format: %v", err)
	}
}

// TestAFolderThatIsAFile and the like give errors that say what to do.
func TestBadFolders(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	check(t, os.WriteFile(file, nil, 0o600))
	for _, bad := range []string{file, filepath.Join(file, "below")} {
		if _, err := Open(t.Context(), bad, nil); !errors.Is(err, ErrReadOnly) || !strings.Contains(err.Error(), "DELTAFIN_HOME") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if os.Getuid() != 0 && os.PathSeparator == '/' {
		closed := filepath.Join(dir, "closed")
		check(t, os.Mkdir(closed, 0o500))
		if _, err := Open(t.Context(), closed, nil); !errors.Is(err, ErrReadOnly) {
			t.Errorf("a closed folder: %v", err)
		}
	}
}

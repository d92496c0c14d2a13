package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ncruces/go-sqlite3"
)

// smallLog makes the log be copied into the database every few pages, so that
// short runs meet that too.
func smallLog(t testing.TB, s *Store) {
	t.Helper()
	c := <-s.write
	defer func() { s.write <- c }()
	check(t, c.each("PRAGMA wal_autocheckpoint=6", nil, func(*sqlite3.Stmt) error { return nil }))
}

// A script is a run of the store in small steps. Each is tried until it
// succeeds; hindered hears of every failure and clears its cause.
type script struct {
	t        *testing.T
	s        *Store
	w        *Writer
	a        *Answer
	thread   ID
	hindered func(step string, err error)
}

func (x *script) try(step string, f func() error) {
	x.t.Helper()
	for range 3 {
		err := f()
		if err == nil {
			return
		}
		x.hindered(step, err)
	}
	x.t.Fatalf("%s does not succeed after its cause is gone", step)
}

const scriptTokens = 5

func (x *script) token(i int) Token {
	return Token{ID: int32(100 * i), Channel: InAnswer, Text: fmt.Sprint("word", i, " ")}
}

// answer writes scriptTokens tokens. A token that Append could not sync is
// taken all the same: it is synced, not added again.
func (x *script) answer() {
	ctx := x.t.Context()
	for i := range scriptTokens {
		before := x.a.Durable()
		n, err := x.a.Append(ctx, x.token(before))
		if err != nil {
			x.hindered("token", err)
			if n != before {
				x.t.Fatalf("token %d: an error, and %d durable after %d", i, n, before)
			}
			x.try("sync", func() error { n, err = x.a.Sync(ctx); return err })
		}
		if n != before+1 {
			x.t.Fatalf("token %d: %d durable, want %d", i, n, before+1)
		}
	}
}

func (x *script) run() {
	ctx := x.t.Context()
	x.try("create", func() error {
		info, err := x.s.Create(ctx, "", "")
		x.thread = info.ID
		return err
	})
	x.try("lock", func() (err error) { x.w, err = x.s.Lock(ctx, x.thread); return err })
	x.try("question", func() error { return second(x.w.Append(ctx, "", NewTurn{Role: User, Text: "a question"})) })
	x.try("begin", func() (err error) { x.a, err = x.w.Begin(ctx, AnswerOptions{Seed: 1}); return err })
	x.answer()
	x.try("pause", func() error { return x.a.Finish(ctx, Outcome{Status: Paused, Timing: Timing{Decode: 5, DecodeT: 1}}) })
	turn := x.a.Turn()
	x.try("continue", func() (err error) { x.a, err = x.w.Continue(ctx, turn, AnswerOptions{Seed: 1}); return err })
	x.answer()
	x.try("finish", func() error { return x.a.Finish(ctx, Outcome{Status: Done}) })
	x.try("fork", func() error { return second(x.s.Fork(ctx, x.thread, x.a.Turn(), 3, "")) })
	var queued ID
	x.try("enqueue", func() (err error) {
		queued, err = x.s.Enqueue(ctx, QueueItem{Text: "another", Thread: x.thread})
		return err
	})
	x.try("snapshot", func() error {
		return second(x.s.AddSnapshot(ctx, SnapshotInfo{Path: "p", Thread: x.thread, Turn: x.a.Turn(), Bytes: 1}, []int32{1, 2}))
	})
	x.try("close writer", x.w.Close)
	x.try("take", func() (err error) { x.w, _, err = x.s.TakeQueued(ctx, queued); return err })
	x.try("close writer", x.w.Close)
}

// verify compares what is there with what run must have made.
func (x *script) verify() {
	t, ctx := x.t, x.t.Context()
	t.Helper()
	whole := ""
	for i := range 2 * scriptTokens {
		whole += x.token(i).Text
	}
	th, err := x.s.Load(ctx, x.thread, LoadOptions{Bodies: true})
	check(t, err)
	var got []string
	for _, turn := range th.Turns {
		got = append(got, string(turn.Status)+": "+turn.Body.Text)
	}
	equal(t, got, []string{"done: a question", "done: " + whole, "interrupted: word0 word1 word2 ", "done: another"})
	if len(th.Turns[1].Timings) != 1 || th.Tokens != 2*scriptTokens+3 {
		t.Fatalf("timings %v, %d tokens", th.Turns[1].Timings, th.Tokens)
	}
	if n := len(must[[]QueueItem](t)(x.s.Queue(ctx))); n != 0 {
		t.Fatalf("%d questions are still queued", n)
	}
	if n := len(must[[]SnapshotInfo](t)(x.s.Snapshots(ctx, 0))); n != 1 {
		t.Fatalf("%d snapshots", n)
	}
	// Failed tries must leave nothing behind, neither threads nor words. A
	// thread that Create made without being able to read it back is no failure
	// of its own.
	if n := len(must[[]Hit](t)(x.s.Search(ctx, "word9", SearchOptions{}))); n != 1 {
		t.Fatalf("%d hits", n)
	}
	sound(t, x.s)
}

// TestFailuresAtEveryWrite runs the script once for every write, sync and
// truncation in it, failing from that one on until the store has said so.
func TestFailuresAtEveryWrite(t *testing.T) {
	for _, c := range []struct {
		name    string
		failure error
		want    error
	}{
		{"disk full", sqlite3.FULL, ErrFull},
		{"write error", sqlite3.IOERR_WRITE, ErrIO},
	} {
		t.Run(c.name, func(t *testing.T) {
			total, stride := 0, rounds(40, 5, 1)
			for n := 0; n == 0 || n <= total; n += stride {
				ffs, vfsName := newFaultFS(t)
				x := &script{t: t, s: reopen(t, t.TempDir(), &Options{Group: -1, vfs: vfsName})}
				smallLog(t, x.s)
				x.hindered = func(step string, err error) {
					if !errors.Is(err, c.want) {
						t.Fatalf("change %d, step %s: %v, want %v", n, step, err, c.want)
					}
					ffs.room()
				}
				ffs.arm(n, c.failure)
				x.run()
				if n == 0 {
					total = ffs.count()
				}
				ffs.room()
				x.verify()
				check(t, x.s.Close())
			}
			if total < 100 {
				t.Errorf("only %d changes: the test covers too little", total)
			}
			t.Logf("%d changes of files", total)
		})
	}
}

func TestFullDiskWhileOpening(t *testing.T) {
	for n := 1; n < 400; n += rounds(30, 3, 1) {
		ffs, vfsName := newFaultFS(t)
		dir := t.TempDir()
		ffs.arm(n, sqlite3.FULL)
		s, err := Open(t.Context(), dir, &Options{vfs: vfsName})
		if err == nil {
			check(t, s.Close())
			if n < 5 {
				t.Fatalf("opening takes fewer than %d writes?", n)
			}
			return
		}
		if !errors.Is(err, ErrFull) {
			t.Fatalf("write %d: %v", n, err)
		}
		ffs.room()
		s, err = Open(t.Context(), dir, &Options{vfs: vfsName})
		check(t, err)
		sound(t, s)
		check(t, s.Close())
	}
	t.Error("opening never succeeds")
}

// TestPowerCuts cuts the power after random changes. What was durable must be
// there afterwards; at most the token in flight may be there beyond it.
func TestPowerCuts(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for range rounds(5, 25, 1000) {
		cutPowerOnce(t, r)
	}
}

func cutPowerOnce(t *testing.T, r *rand.Rand) {
	ctx := t.Context()
	ffs, vfsName := newFaultFS(t)
	ffs.watch = true
	s := must[*Store](t)(Open(ctx, t.TempDir(), &Options{Group: -1, vfs: vfsName}))
	smallLog(t, s)
	id := must[ThreadInfo](t)(s.Create(ctx, "", "")).ID
	w := must[*Writer](t)(s.Lock(ctx, id))
	say(t, w, "?")
	a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{}))
	x := &script{t: t}
	want := 1 + r.IntN(12)
	for i := range want {
		must[int](t)(a.Append(ctx, x.token(i)))
	}
	// One more, cut off at one of its own changes.
	inFlight := 0
	if k := r.IntN(4); k > 0 {
		ffs.arm(k, sqlite3.IOERR_WRITE)
		a.Append(ctx, x.token(want))
		inFlight = 1
	}
	dir := ffs.cutPower(t, r)
	ffs.room()
	check(t, w.Close())
	check(t, s.Close())

	after := must[*Store](t)(Open(ctx, dir, nil))
	w = must[*Writer](t)(after.Lock(ctx, id))
	rec := w.Recovered()
	if rec == nil || rec.Tokens < want || rec.Tokens > want+inFlight {
		t.Fatalf("%d durable, %d in flight; recovered %+v", want, inFlight, rec)
	}
	th := must[*Thread](t)(after.Load(ctx, id, LoadOptions{Bodies: true}))
	for i, tok := range th.Turns[1].Body.Tokens {
		if tok != x.token(i) {
			t.Fatalf("token %d: %+v", i, tok)
		}
	}
	if msg := rec.String(); !strings.Contains(msg, fmt.Sprintf("(token %d)", rec.Tokens)) {
		t.Errorf("message %q", msg)
	}
	sound(t, after)
	check(t, w.Close())
	check(t, after.Close())
}

// TestFlippedBytes damages a closed database at random. Nothing may panic,
// every error must be of a kind, and no text may come out changed.
func TestFlippedBytes(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	want := map[ID]string{}
	var ids []ID
	for i := range 12 {
		id, w := newThread(t, s)
		ids = append(ids, id)
		q := say(t, w, fmt.Sprint("question ", i, strings.Repeat(" filler", 700)))
		a := reply(t, w, 1, "so ", "it ", fmt.Sprint("is ", i), strings.Repeat(" more text here", 300))
		th := must[*Thread](t)(s.Load(t.Context(), id, LoadOptions{Bodies: true}))
		want[q], want[a] = th.Turns[0].Body.Text, th.Turns[1].Body.Text
		check(t, w.Close())
	}
	check(t, s.Close())
	whole, err := os.ReadFile(filepath.Join(dir, FileName))
	check(t, err)

	r := rand.New(rand.NewPCG(21, 22))
	trials := rounds(20, 80, 3000)
	found, survived := 0, 0
	for trial := range trials {
		bad := append([]byte(nil), whole...)
		for range 1 + r.IntN(3) {
			at := r.IntN(len(bad))
			if trial%3 == 0 {
				at = r.IntN(len(bad)/4096)*4096 + r.IntN(16) // page headers hurt most
			}
			for i := range 1 + r.IntN(64) {
				if at+i < len(bad) {
					bad[at+i] ^= byte(1 + r.IntN(255))
				}
			}
		}
		dir := t.TempDir()
		check(t, os.WriteFile(filepath.Join(dir, FileName), bad, 0o600))
		errs := readEverything(t, dir, ids, want)
		for _, err := range errs {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrForeign) && !errors.Is(err, ErrNewerSchema) && !errors.Is(err, ErrNotFound) {
				t.Errorf("trial %d: an error of no kind: %v", trial, err)
			}
		}
		if len(errs) > 0 {
			found++
		}
		if len(errs) < len(ids) {
			survived++
		}
	}
	t.Logf("%d trials: damage seen in %d, some threads readable in %d", trials, found, survived)
	if found < trials/3 || survived < trials/3 {
		t.Errorf("damage seen in %d of %d trials, threads readable in %d: want more of both", found, trials, survived)
	}
}

// readEverything reads a database in every way and returns the errors.
func readEverything(t *testing.T, dir string, ids []ID, want map[ID]string) (errs []error) {
	ctx := t.Context()
	s, err := Open(ctx, dir, nil)
	if err != nil {
		return append(errs, err)
	}
	note := func(err error) {
		if err != nil {
			errs = append(errs, err)
		}
	}
	note(second(s.List(ctx, ListOptions{})))
	note(second(s.Search(ctx, "filler", SearchOptions{})))
	for _, id := range ids {
		th, err := s.Load(ctx, id, LoadOptions{Bodies: true})
		note(err)
		if th == nil {
			continue
		}
		for _, turn := range th.Turns {
			if text, known := want[turn.ID]; known && turn.Body != nil && turn.Body.Text != text {
				t.Errorf("turn %s: changed text came out without an error", turn.ID.Short())
			}
		}
		w, err := s.Lock(ctx, id)
		note(err)
		if err == nil {
			note(w.Close())
		}
	}
	damage, err := s.Check(ctx)
	note(err)
	errs = append(errs, damage...)
	if err := s.Close(); err != nil && !isDamage(err) {
		note(err)
	}
	return errs
}

// TestATornJournalKeepsItsBeginning: a damaged record costs the tokens from it
// on, not the thread.
func TestATornJournalKeepsItsBeginning(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, &Options{Group: -1})
	ctx := t.Context()
	id, w := newThread(t, s)
	a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{}))
	x := &script{}
	for i := range 10 {
		must[int](t)(a.Append(ctx, x.token(i)))
	}
	a.abandon() // as if the process ended
	check(t, s.update(ctx, "test", func(c *conn) error { return c.exec(`UPDATE tail SET id=id+1 WHERE seq=7`) }))
	if _, err := s.Load(ctx, id, LoadOptions{Bodies: true}); !errors.Is(err, ErrCorrupt) {
		t.Errorf("loading: %v", err)
	}
	check(t, w.Close())
	w2 := lock(t, s, id)
	if rec := w2.Recovered(); rec == nil || rec.Tokens != 7 || rec.Dropped != 3 {
		t.Fatalf("recovered %+v", rec)
	}
	if want := "the last records of this thread were damaged: kept up to token 7, 3 dropped"; w2.Recovered().String() != want {
		t.Errorf("message %q", w2.Recovered())
	}
	a = must[*Answer](t)(w2.Continue(ctx, a.Turn(), AnswerOptions{}))
	must[int](t)(a.Append(ctx, x.token(7)))
	check(t, a.Finish(ctx, Outcome{Status: Done}))
	sound(t, s)
}

// TestADamagedTurnIsNamed: the others of its thread are read, the thread can be
// written and forked before it.
func TestADamagedTurnIsNamed(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	id, w := newThread(t, s)
	q := say(t, w, "?")
	a := reply(t, w, 1, "x", "y")
	check(t, w.Close())
	check(t, s.update(ctx, "test", func(c *conn) error {
		return c.exec(`UPDATE body SET text=replace(text, 'y', 'z') WHERE turn=(SELECT key FROM turn WHERE id=?)`, a)
	}))
	th, err := s.Load(ctx, id, LoadOptions{Bodies: true})
	if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), a.Short()) || th == nil || th.Turns[0].Body.Text != "?" || th.Turns[1].Body != nil {
		t.Fatalf("%v %+v", err, th)
	}
	damage, err := s.Check(ctx)
	if err != nil || len(damage) != 1 || !strings.Contains(damage[0].Error(), a.Short()) {
		t.Errorf("check: %v %v", damage, err)
	}
	w = lock(t, s, id)
	must[string](t)(s.Fork(ctx, id, q, -1, ""))
	reply(t, w, 2, "b", "c")
}

func TestOddFolderNames(t *testing.T) {
	for _, name := range []string{"with space", "q?mark#hash", "per%41cent", "ünï/cödé", "a&b=c;d", "'quote'"} {
		if filepath.Separator == '\\' && strings.ContainsAny(name, "?") {
			continue // not a name there
		}
		dir := filepath.Join(t.TempDir(), filepath.FromSlash(name))
		s := reopen(t, dir, nil)
		must[ThreadInfo](t)(s.Create(t.Context(), "x", ""))
		if _, err := os.Stat(filepath.Join(dir, FileName)); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		ro := reopen(t, dir, &Options{ReadOnly: true})
		if n := len(must[[]ThreadInfo](t)(ro.List(t.Context(), ListOptions{}))); n != 1 {
			t.Errorf("%q: %d threads", name, n)
		}
	}
}

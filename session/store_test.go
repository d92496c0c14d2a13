package session

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

// many turns on the long forms of tests: more kills, every fault, the full
// number of threads.
var many = flag.Bool("many", false, "run the long forms of the tests")

// rounds is how often a test repeats what it does: least with -short, most with
// -many.
func rounds(short, normal, long int) int {
	switch {
	case *many:
		return long
	case testing.Short():
		return short
	}
	return normal
}

// newStore opens a store in a fresh folder and closes it with the test.
func newStore(t testing.TB, opt *Options) *Store {
	t.Helper()
	return reopen(t, t.TempDir(), opt)
}

func reopen(t testing.TB, dir string, opt *Options) *Store {
	t.Helper()
	s, err := Open(context.Background(), dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("closing: %v", err)
		}
	})
	return s
}

// must returns v or ends the test.
func must[T any](t testing.TB) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// lock locks a thread for the length of the test.
func lock(t testing.TB, s *Store, id ID) *Writer {
	t.Helper()
	w, err := s.Lock(t.Context(), id)
	check(t, err)
	t.Cleanup(func() {
		if err := w.Close(); err != nil && !errors.Is(err, ErrClosed) {
			t.Errorf("closing the writer: %v", err)
		}
	})
	return w
}

// newThread makes a thread and locks it.
func newThread(t testing.TB, s *Store) (ID, *Writer) {
	t.Helper()
	info, err := s.Create(t.Context(), "", "")
	check(t, err)
	return info.ID, lock(t, s, info.ID)
}

// say appends a question.
func say(t testing.TB, w *Writer, text string) ID {
	t.Helper()
	id, err := w.Append(t.Context(), "", NewTurn{Role: User, Text: text})
	check(t, err)
	return id
}

// reply writes a whole answer of one token a word, the first half thinking.
func reply(t testing.TB, w *Writer, seed uint64, words ...string) ID {
	t.Helper()
	a, err := w.Begin(t.Context(), AnswerOptions{Seed: seed})
	check(t, err)
	for i, word := range words {
		ch := InAnswer
		if i < len(words)/2 {
			ch = InThinking
		}
		_, err := a.Append(t.Context(), Token{ID: int32(i * 1000), Channel: ch, Text: word})
		check(t, err)
	}
	check(t, a.Finish(t.Context(), Outcome{Status: Done, Stop: "end"}))
	return a.Turn()
}

// sound fails the test unless the database is whole.
func sound(t testing.TB, s *Store) {
	t.Helper()
	damage, err := s.Check(t.Context())
	check(t, err)
	for _, d := range damage {
		t.Errorf("damage: %v", d)
	}
}

func TestAThreadComesBack(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	ctx := t.Context()
	info := must[ThreadInfo](t)(s.Create(ctx, "", "/home/ada/core"))
	if info.ID == 0 || info.Branch != MainBranch || info.BranchCount != 1 || info.Folder != "/home/ada/core" {
		t.Fatalf("new thread: %+v", info)
	}
	w := lock(t, s, info.ID)
	src := Source{Hash: "ab12", Name: "core.md", Kind: "file", Bytes: 12, Tokens: 3, Range: "1-4"}
	q := must[ID](t)(w.Append(ctx, "", NewTurn{Role: User, Text: "Compare the three dating methods\nfor the ice core.", Prompt: []int32{163584, 5, 7}, Sources: []Source{src}}))
	set := Settings{Model: "k3", Fingerprint: "8f2c", KernelSet: "avx512", Temperature: 0.6, TopP: 0.95, Effort: "high"}
	a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{Settings: set, Seed: 1<<63 + 5}))
	toks := []Token{
		{1, InMarkup, ""}, {20000, InThinking, "Layer coun"}, {3, InThinking, "ting?"}, {4, InMarkup, ""},
		{5, InAnswer, "Layer counting drifts \xe5\x87"}, {6, InAnswer, "\x86 old."}, {7, InMarkup, ""},
	}
	for _, tok := range toks {
		must[int](t)(a.Append(ctx, tok))
	}
	timing := Timing{Started: time.UnixMilli(1700000000123), Reused: 2, Prefill: 3, PrefillT: 4 * time.Second, Decode: 7, DecodeT: 8 * time.Second, Read: 1 << 40, HitRate: 0.93}
	check(t, a.Finish(ctx, Outcome{Status: Done, Stop: "end", Timing: timing}))
	check(t, s.AddEvent(ctx, info.ID, a.Turn(), "drive", "drive 3 was slow"))
	check(t, w.Close())
	check(t, s.Close())

	s = reopen(t, dir, nil)
	th := must[*Thread](t)(s.Load(ctx, info.ID, LoadOptions{Bodies: true}))
	if th.Title != "Compare the three dating methods" || th.Named || th.Tokens != 10 || th.TurnCount != 2 || th.Status != Done || th.Settings != set {
		t.Errorf("thread: %+v", th.ThreadInfo)
	}
	if len(th.Turns) != 2 || len(th.Branches) != 1 || th.Branches[0].Leaf != a.Turn() || th.Branches[0].Tip != a.Turn() {
		t.Fatalf("%d turns, branches %+v", len(th.Turns), th.Branches)
	}
	question, answer := th.Turns[0], th.Turns[1]
	if question.ID != q || question.Parent != 0 || question.Role != User || len(question.Sources) != 1 || question.Sources[0] != src {
		t.Errorf("question: %+v", question)
	}
	if got := question.Body.IDs(); len(got) != 3 || got[0] != 163584 || got[2] != 7 {
		t.Errorf("prompt ids %v", got)
	}
	if answer.Parent != q || answer.Status != Done || answer.Stop != "end" || answer.Seed != 1<<63+5 || answer.Settings != set || answer.Thinking != 2 {
		t.Errorf("answer: %+v", answer)
	}
	if answer.Body.Text != "Layer counting drifts 准 old." || answer.Body.Reasoning != "Layer counting?" {
		t.Errorf("answer text %q, reasoning %q", answer.Body.Text, answer.Body.Reasoning)
	}
	for i, tok := range answer.Body.Tokens {
		if tok != toks[i] {
			t.Errorf("token %d: %+v, want %+v", i, tok, toks[i])
		}
	}
	if len(answer.Timings) != 1 || answer.Timings[0] != timing {
		t.Errorf("timings %+v", answer.Timings)
	}
	if len(th.Events) != 1 || th.Events[0].Turn != answer.ID || th.Events[0].Text != "drive 3 was slow" {
		t.Errorf("events %+v", th.Events)
	}
	sound(t, s)
}

func TestShortIDs(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	// Ids at both ends of the range, and two that share seven digits.
	for i, id := range []ID{1, 0x0fffffffffffffff, 1 << 63, ^ID(0), 0xabcdef0123456789, 0xabcdef0fffffffff} {
		check(t, s.update(ctx, "test", func(c *conn) error {
			_, err := s.createTx(c, id, string(rune('A'+i)), "")
			return err
		}))
	}
	for prefix, want := range map[string]ID{
		"00": 1, "0f": 0x0fffffffffffffff, "8": 1 << 63, "F": ^ID(0), "abcdef01": 0xabcdef0123456789, "abcdef0fffffffff": 0xabcdef0fffffffff,
	} {
		if got, err := s.FindThread(ctx, prefix); err != nil || got != want {
			t.Errorf("%s: %s, %v, want %s", prefix, got, err, want)
		}
	}
	_, err := s.FindThread(ctx, "abcdef0")
	var amb *AmbiguousError
	if !errors.As(err, &amb) || !errors.Is(err, ErrAmbiguous) || len(amb.Candidates) != 2 {
		t.Fatalf("an ambiguous prefix: %v", err)
	}
	if want := "\"abcdef0\" fits 2 or more:\n  abcdef0123456789  E\n  abcdef0fffffffff  F"; err.Error() != want {
		t.Errorf("message:\n%s\nwant:\n%s", err, want)
	}
	if _, err := s.FindThread(ctx, "77"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown prefix: %v", err)
	}
	for _, bad := range []string{"", "xyz", "12345678901234567", "12%"} {
		if _, err := s.FindThread(ctx, bad); !errors.Is(err, ErrInvalid) {
			t.Errorf("prefix %q: %v, want ErrInvalid", bad, err)
		}
	}
}

func TestTitles(t *testing.T) {
	long := "Compare the three dating methods for the ice core and say where they differ most"
	for in, want := range map[string]string{
		"":                         "",
		"  \n\nWhy?\nmore":         "Why?",
		"tab\tand \x1b[31mred\x00": "tab and [31mred",
		long:                       "Compare the three dating methods for the ice core and say...",
		"准确的年层计数只有在年层足够厚的时候才是可靠的": "准确的年层计数只有在年层足够厚的时候才是可靠的",
		"bad \xff byte": "bad \uFFFD byte",
	} {
		if got := titleOf(in); got != want {
			t.Errorf("titleOf(%q) = %q, want %q", in, got, want)
		}
	}
	if got := titleOf(string(make([]rune, 0)) + "x" + string([]rune("長"))); got != "x長" {
		t.Errorf("%q", got)
	}
}

func TestRenameAndList(t *testing.T) {
	now := time.UnixMilli(5_000_000)
	s := newStore(t, &Options{Now: func() time.Time { return now }})
	ctx := t.Context()
	var ids []ID
	for _, title := range []string{"first", "second", "third"} {
		info := must[ThreadInfo](t)(s.Create(ctx, title, ""))
		ids = append(ids, info.ID)
		now = now.Add(-time.Hour) // a clock that runs backwards
	}
	order := func() (s2 []string) {
		for _, info := range must[[]ThreadInfo](t)(s.List(ctx, ListOptions{})) {
			s2 = append(s2, info.Title)
		}
		return s2
	}
	equal(t, order(), []string{"third", "second", "first"})
	w := lock(t, s, ids[0])
	say(t, w, "a question does not rename a named thread")
	equal(t, order(), []string{"first", "third", "second"})
	check(t, s.Rename(ctx, ids[1], " the \n2nd "))
	equal(t, order(), []string{"first", "third", "the 2nd"})
	if err := s.Rename(ctx, ids[1], " \n"); !errors.Is(err, ErrInvalid) {
		t.Errorf("an empty title: %v", err)
	}
	if err := s.Rename(ctx, 77, "x"); !errors.Is(err, ErrNotFound) {
		t.Errorf("an unknown thread: %v", err)
	}
	if got := must[[]ThreadInfo](t)(s.List(ctx, ListOptions{Title: "2ND"})); len(got) != 1 || got[0].ID != ids[1] {
		t.Errorf("filtered: %+v", got)
	}
	if got := must[[]ThreadInfo](t)(s.List(ctx, ListOptions{Limit: 2})); len(got) != 2 {
		t.Errorf("limited: %+v", got)
	}
}

func equal[T comparable](t testing.TB, got, want []T) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("got %v, want %v", got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("got %v, want %v", got, want)
		}
	}
}

func TestAClosedStoreRefuses(t *testing.T) {
	s := newStore(t, nil)
	check(t, s.Close())
	if err := s.Close(); !errors.Is(err, ErrClosed) {
		t.Errorf("second Close: %v", err)
	}
	if _, err := s.Create(t.Context(), "x", ""); !errors.Is(err, ErrClosed) {
		t.Errorf("Create: %v", err)
	}
	if _, err := s.List(t.Context(), ListOptions{}); !errors.Is(err, ErrClosed) {
		t.Errorf("List: %v", err)
	}
}

func TestACancelledContextStops(t *testing.T) {
	s := newStore(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Create(ctx, "x", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Create: %v", err)
	}
	if _, err := s.List(ctx, ListOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("List: %v", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	s := newStore(t, nil)
	for _, name := range []string{s.Path(), s.Path() + "-wal"} {
		fi, err := os.Stat(name)
		check(t, err)
		if fi.Mode().Perm()&0o077 != 0 && os.PathSeparator == '/' {
			t.Errorf("%s has mode %v", name, fi.Mode())
		}
	}
}

func BenchmarkList10000(b *testing.B) {
	s := newStore(b, nil)
	check(b, s.update(b.Context(), "test", func(c *conn) error {
		set, err := settingsKey(c, Settings{Model: "k3", Fingerprint: "8f2c", KernelSet: "avx512", Temperature: 0.6, TopP: 0.95, Effort: "high"})
		for i := 0; i < 10000 && err == nil; i++ {
			var key int64
			if key, err = s.createTx(c, newID(), fmt.Sprint("Compare the dating methods, part ", i), "/home/ada/core"); err == nil {
				err = c.exec("UPDATE thread SET settings=? WHERE key=?", set, key)
			}
		}
		return err
	}))
	for b.Loop() {
		if list := must[[]ThreadInfo](b)(s.List(b.Context(), ListOptions{})); len(list) != 10000 {
			b.Fatal(len(list))
		}
	}
}

package run

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deltafin/engine/sample"
	"deltafin/session"
)

// document is a system prompt long enough to be worth a snapshot of its own.
var document = "You answer from these notes. " + strings.Repeat("Maria Weber works as a pilot. Paul Stein lives in Bern. ", 6)

// kinds lists the kinds of notices.
func (b *bench) kinds() (out []string) {
	for _, n := range b.notices {
		out = append(out, n.Kind)
	}
	return out
}

// ask begins a thread with a system prompt and a question.
func (b *bench) ask(system, question string) (session.ID, Result) {
	b.t.Helper()
	id := b.thread()
	w := b.lock(id)
	must[session.ID](b.t)(w.Append(b.t.Context(), "", session.NewTurn{Role: session.System, Text: system}))
	res, err := b.r.Ask(b.t.Context(), w, user(question), b.greedy(), Request{}, b.listener())
	check(b.t, err)
	check(b.t, w.Close())
	return id, res
}

// follow asks a further question in a thread.
func (b *bench) follow(id session.ID, question string) Result {
	b.t.Helper()
	w := b.lock(id)
	res, err := b.r.Ask(b.t.Context(), w, user(question), b.greedy(), Request{}, b.listener())
	check(b.t, err)
	check(b.t, w.Close())
	return res
}

// TestASharedPromptIsReadOnce: other threads, in other processes too, begin with
// the snapshot of the system prompt that they share with the first.
func TestASharedPromptIsReadOnce(t *testing.T) {
	opt := Options{LongPrefill: 64}
	b := newBench(t, opt)
	_, first := b.ask(document, "Where does Paul Stein live?")
	if first.Timing.Reused != 0 || first.Timing.Prefill != len(first.Prompt) {
		t.Fatalf("the first read %+v of %d", first.Timing, len(first.Prompt))
	}
	for _, process := range []bool{false, true} {
		if process {
			b.again(opt)
		}
		_, res := b.ask(document, "What is the job of Maria Weber?")
		if shared := res.Timing.Reused; shared < len(first.Prompt)*3/4 || res.Timing.Prefill != len(res.Prompt)-shared {
			t.Errorf("another process %v: reused %d of %d tokens, the first had %d", process, shared, len(res.Prompt), len(first.Prompt))
		}
		if want := b.plain(res.Prompt, sample.Params{}, most); !slices.Equal(b.tokens, want) {
			t.Errorf("another process %v: %q", process, b.text)
		}
	}
	// A short one is not worth a pass of its own.
	b.again(Options{LongPrefill: 1 << 20})
	b.ask("Be brief.", "hello")
	if _, res := b.ask("Be brief.", "Name four fruits."); res.Timing.Reused != 0 {
		t.Errorf("reused %d tokens of a short prompt", res.Timing.Reused)
	}
}

// TestResumeWithAndWithoutSnapshot: both give the same tokens; one reads a file,
// the other reads the text, with progress.
func TestResumeWithAndWithoutSnapshot(t *testing.T) {
	opt := Options{LongPrefill: 64}
	b := newBench(t, opt)
	id, _ := b.ask(document, "Tell me a story about a fox.")
	var tokens [2][]int32
	for i, with := range []bool{true, false} {
		b.again(opt)
		if !with {
			check(t, os.RemoveAll(b.r.opt.Snapshots))
			check(t, os.Mkdir(b.r.opt.Snapshots, 0o700))
		}
		fork := must[string](t)(b.s.Fork(t.Context(), id, b.answers(id)[0], -1, fmt.Sprint("b", i)))
		w := b.lock(id)
		begun := time.Now()
		var toFirst time.Duration
		l := b.listener()
		token := l.Token
		l.Token = func(tok Token) {
			if toFirst == 0 {
				toFirst = time.Since(begun)
			}
			token(tok)
		}
		res, err := b.r.Ask(t.Context(), w, user("Name four fruits."), b.greedy(), Request{Branch: fork}, l)
		check(t, err)
		check(t, w.Close())
		tokens[i] = b.tokens
		t.Logf("snapshot %v: %d of %d prompt tokens reused, first token after %v", with, res.Timing.Reused, len(res.Prompt), toFirst)
		if with != (res.Timing.Reused > 0) || with == slices.Contains(b.kinds(), NoticeSnapshotLost) {
			t.Errorf("snapshot %v: reused %d, notices %v", with, res.Timing.Reused, b.notices)
		}
	}
	if !slices.Equal(tokens[0], tokens[1]) {
		t.Errorf("with a snapshot %v, without %v", tokens[0], tokens[1])
	}
}

// answers are the ids of the answers of a thread.
func (b *bench) answers(id session.ID) (out []session.ID) {
	b.t.Helper()
	th := must[*session.Thread](b.t)(b.s.Load(b.t.Context(), id, session.LoadOptions{}))
	for _, turn := range th.Turns {
		if turn.Role == session.Assistant {
			out = append(out, turn.ID)
		}
	}
	return out
}

// TestUselessSnapshots: whatever is wrong with a file, the text is read again,
// gives the same tokens, and the entry is gone.
func TestUselessSnapshots(t *testing.T) {
	opt := Options{LongPrefill: 1 << 20}
	b := newBench(t, opt)
	first, _ := b.ask("Be brief.", "hello")
	good := must[[]session.SnapshotInfo](t)(b.s.Snapshots(t.Context(), 0))[0]
	whole := must[[]byte](t)(os.ReadFile(good.Path))
	_, other := b.ask("Be long.", "Name four fruits.")
	if len(must[[]session.SnapshotInfo](t)(b.s.Snapshots(t.Context(), 0))) != 2 || other.Turn == 0 {
		t.Fatal("no second snapshot")
	}
	foreign := must[[]byte](t)(os.ReadFile(must[[]session.SnapshotInfo](t)(b.s.Snapshots(t.Context(), 0))[1].Path))
	model := tinySnapshot(t)
	for _, c := range []struct {
		name string
		file []byte // nil: none
		kept bool
	}{
		{"missing", nil, false},
		{"empty", []byte{}, false}, {"truncated", whole[:len(whole)/2], false}, {"one byte short", whole[:len(whole)-1], false},
		{"flipped", append(append(slices.Clone(whole[:20000]), whole[20000]^1), whole[20001:]...), false},
		{"of another model", model, true}, {"of other tokens", foreign, false},
	} {
		for _, s := range must[[]session.SnapshotInfo](t)(b.s.Snapshots(t.Context(), 0)) {
			check(t, b.s.DropSnapshot(t.Context(), s.ID))
		}
		b.again(opt)
		path := filepath.Join(b.r.opt.Snapshots, "useless")
		os.Remove(path)
		if c.file != nil {
			check(t, os.WriteFile(path, c.file, 0o600))
		}
		th := must[*session.Thread](t)(b.s.Load(t.Context(), first, session.LoadOptions{Bodies: true}))
		p := must[*prompt](t)(b.r.render(th.Turns[:3], b.greedy().Settings))
		info := good
		info.ID, info.Path, info.Tokens = 0, path, len(p.ids)-1
		must[session.ID](t)(b.s.AddSnapshot(t.Context(), info, int32s(p.ids[:len(p.ids)-1])))
		check(t, errors.Join(b.forkAt(first, th.Turns[2].ID)))
		res := b.follow(first, "Name four fruits.")
		if want := b.plain(res.Prompt, sample.Params{}, most); !slices.Equal(b.tokens, want) || res.Timing.Reused != 0 {
			t.Errorf("%s: reused %d, %q", c.name, res.Timing.Reused, b.text)
		}
		if !slices.Equal(b.kinds(), []string{NoticeSnapshotLost}) {
			t.Errorf("%s: notices %v", c.name, b.notices)
		}
		for _, s := range must[[]session.SnapshotInfo](t)(b.s.Snapshots(t.Context(), 0)) {
			if s.Path == path {
				t.Errorf("%s: still in the books", c.name)
			}
		}
		if _, err := os.Stat(path); c.file != nil && (err == nil) != c.kept {
			t.Errorf("%s: the file is kept %v, want %v", c.name, err == nil, c.kept)
		}
		th = must[*session.Thread](t)(b.s.Load(t.Context(), first, session.LoadOptions{}))
		if ev := th.Events[len(th.Events)-1]; ev.Kind != NoticeSnapshotLost {
			t.Errorf("%s: the thread's last event is %v", c.name, ev)
		}
	}
}

// forkAt makes a branch at a turn the one used last.
func (b *bench) forkAt(thread, turn session.ID) error {
	_, err := b.s.Fork(b.t.Context(), thread, turn, -1, "")
	return err
}

// TestSnapshotsThatCannotBeWritten cost a notice and nothing else; the budget
// makes the least valuable ones go.
func TestSnapshotsThatCannotBeWritten(t *testing.T) {
	b := newBench(t, Options{})
	check(t, os.RemoveAll(b.r.opt.Snapshots))
	_, res := b.ask("Be brief.", "hello")
	if res.Status != session.Done || !slices.Equal(b.kinds(), []string{NoticeSnapshotUnsaved}) {
		t.Errorf("%+v, %v", res, b.notices)
	}
	b.again(Options{Budget: 1000})
	_, res = b.ask("Be brief.", "hello")
	if res.Status != session.Done || !slices.Equal(b.kinds(), []string{NoticeSnapshotUnsaved}) {
		t.Errorf("budget: %+v, %v", res, b.notices)
	}
	b.again(Options{Budget: 1_200_000})
	for _, q := range []string{"hello", "Name four fruits.", "Tell me a story about a king.", "Tell me a story about a fox."} {
		b.ask("Be brief.", q)
		var total, files int64
		for _, s := range must[[]session.SnapshotInfo](t)(b.s.Snapshots(t.Context(), 0)) {
			total += s.Bytes
		}
		for _, e := range must[[]os.DirEntry](t)(os.ReadDir(b.r.opt.Snapshots)) {
			files += must[os.FileInfo](t)(e.Info()).Size()
		}
		if total == 0 || total > 1_200_000 || files != total {
			t.Errorf("%q: %d bytes in the books, %d in files", q, total, files)
		}
	}
}

// TestSnapshotsByTheClock: they come every Interval while decoding, and a clock
// that is set back does not put them off for longer than that.
func TestSnapshotsByTheClock(t *testing.T) {
	for _, back := range []bool{false, true} {
		now, reads := time.Unix(1e9, 0), 0
		clock := func() time.Time {
			if reads++; back && reads == 40 {
				now = now.AddDate(-1, 0, 0)
			}
			now = now.Add(time.Second)
			return now
		}
		b := newBench(t, Options{Interval: 20 * time.Second, Now: clock})
		_, res := b.ask("Be brief.", "Tell me a story about a fox.")
		saves := 0
		for _, st := range b.stages {
			if st.Kind == StageSave {
				saves++
			}
		}
		if want := res.Tokens / 25; saves < want || saves > res.Tokens/15+2 {
			t.Errorf("clock set back %v: %d snapshots during %d tokens", back, saves, res.Tokens)
		}
	}
}

// TestSweep removes what a killed process left among the snapshots, and nothing
// else.
func TestSweep(t *testing.T) {
	b := newBench(t, Options{})
	id, _ := b.ask("Be brief.", "hello")
	gone := b.thread()
	dir := b.r.opt.Snapshots
	names := []string{fileName(id, 5, "abcdef0123"), "." + fileName(id, 6, "abcdef0123") + ".123", fileName(gone, 7, "ab")}
	for _, n := range append(names, "notes.txt", "1234-x.snap") {
		check(t, os.WriteFile(filepath.Join(dir, n), []byte("xyz"), 0o600))
	}
	before := len(must[[]os.DirEntry](t)(os.ReadDir(dir)))
	if strays := must[[]Stray](t)(Sweep(t.Context(), b.s, dir, true)); len(strays) != 3 {
		t.Errorf("dry: %v", strays)
	}
	w := b.lock(id)
	if strays := must[[]Stray](t)(Sweep(t.Context(), b.s, dir, false)); len(strays) != 1 || filepath.Base(strays[0].Path) != names[2] {
		t.Errorf("while the thread is written: %v", strays)
	}
	check(t, w.Close())
	if strays := must[[]Stray](t)(Sweep(t.Context(), b.s, dir, false)); len(strays) != 2 || strays[0].Bytes != 3 {
		t.Errorf("%v", strays)
	}
	if after := len(must[[]os.DirEntry](t)(os.ReadDir(dir))); after != before-3 {
		t.Errorf("%d files of %d are left", after, before)
	}
	if strays, err := Sweep(t.Context(), b.s, filepath.Join(dir, "none"), false); err != nil || strays != nil {
		t.Errorf("no folder: %v %v", strays, err)
	}
}

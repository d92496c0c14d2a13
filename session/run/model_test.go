package run

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deltafin/engine"
	"deltafin/engine/checkpoint/checkpointtest"
	"deltafin/session"
)

// tiny writes a small model with a vocabulary of its own.
func tiny(t testing.TB) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	check(t, os.Mkdir(dir, 0o700))
	check(t, checkpointtest.Write(dir, checkpointtest.Options{Config: checkpointtest.Small()}, 5))
	return dir
}

// tinySnapshot is a whole snapshot of another model.
func tinySnapshot(t testing.TB) []byte {
	t.Helper()
	e := must[*engine.Engine](t)(engine.Open(t.Context(), engine.Options{Model: tiny(t), Threads: 1}))
	defer e.Close()
	seq := e.NewSequence()
	must[engine.Result](t)(e.Generate(t.Context(), seq, engine.Request{Tokens: []int{1, 2, 3}}, engine.Listener{}))
	path := filepath.Join(t.TempDir(), "x")
	check(t, e.SaveSnapshot(path, seq))
	return must[[]byte](t)(os.ReadFile(path))
}

// TestModelReplaced: a thread of another model can be read, is refused with both
// fingerprints, and goes on when that is wanted, from its text.
func TestModelReplaced(t *testing.T) {
	b := newBench(t, Options{})
	id, _ := b.ask("Be brief.", "hello")
	old := b.r.info.Fingerprint
	open := b.thread()
	w := b.lock(open)
	pause := make(chan struct{})
	l := Listener{Token: func(tok Token) {
		if tok.Index == 5 {
			close(pause)
		}
	}}
	must[Result](t)(b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), b.greedy(), Request{Pause: pause}, l))
	check(t, w.Close())

	dir := tiny(t)
	b.close()
	b.open(Options{}, engine.Options{Model: dir, Threads: 1})
	w = b.lock(id)
	how := b.greedy()
	how.Settings.MaxTokens = 12
	_, err := b.r.Ask(t.Context(), w, user("and now?"), how, Request{}, Listener{})
	var model *ModelError
	if !errors.As(err, &model) || model.Have != old || model.Loaded != b.r.info.Fingerprint || model.Tokens == 0 ||
		!strings.Contains(err.Error(), old[:8]) || !strings.Contains(err.Error(), "read again from the start") {
		t.Fatalf("%v", err)
	}
	th := must[*session.Thread](t)(b.s.Load(t.Context(), id, session.LoadOptions{Bodies: true}))
	if len(th.Turns) != 3 || th.Turns[2].Body.Text == "" {
		t.Errorf("the refused question changed the thread: %+v", th.Turns)
	}
	// It goes on from the text: the ids of the old vocabulary mean nothing here.
	res, err := b.r.Ask(t.Context(), w, user("and now?"), how, Request{OtherModel: true}, b.listener())
	check(t, err)
	text := must[string](t)(b.e.Tokenizer().Decode(res.Prompt))
	if !strings.Contains(text, th.Turns[2].Body.Text) || !strings.Contains(text, "hello") || !slices.Equal(b.kinds()[:1], []string{NoticeModel}) {
		t.Errorf("%q, %v", text, b.notices)
	}
	// From now on the thread is of the new model, and its prompt stays the same.
	next, err := b.r.Ask(t.Context(), w, user("more"), how, Request{}, b.listener())
	check(t, err)
	if !slices.Equal(next.Prompt[:len(res.Prompt)], res.Prompt) || next.Timing.Reused == 0 || len(b.notices) != 0 {
		t.Errorf("reused %d, %v", next.Timing.Reused, b.notices)
	}
	check(t, w.Close())
	// An answer in the middle cannot go on in another vocabulary.
	w = b.lock(open)
	if _, err := b.r.Continue(t.Context(), w, 0, Request{OtherModel: true}, Listener{}); !errors.Is(err, ErrOtherTokens) {
		t.Errorf("%v", err)
	}
	check(t, w.Close())
}

// TestOtherArithmetic: said, and goes on.
func TestOtherArithmetic(t *testing.T) {
	b := newBench(t, Options{})
	id, _ := b.ask("Be brief.", "hello")
	b.r.info.Arithmetic = "another"
	res := b.follow(id, "Name four fruits.")
	if !slices.Contains(b.kinds(), NoticeArithmetic) || res.Status != session.Done || res.How.Settings.KernelSet != "another" {
		t.Errorf("%v %+v", b.notices, res)
	}
}

// TestOtherTrunk: an answer in the middle goes on in the form of the model it was begun
// with, and in no other; a further question may use another.
func TestOtherTrunk(t *testing.T) {
	b := newBench(t, Options{})
	exact, rounded := b.r.info.Arithmetic, b.r.info.Arithmetic+"+int8-trunk-128"
	for _, way := range [][2]string{{exact, rounded}, {rounded, exact}} {
		b.r.info.Arithmetic = way[0]
		w := b.lock(b.thread())
		how := b.greedy()
		how.Settings.MaxTokens = 3
		res, err := b.r.Ask(t.Context(), w, user("hello"), how, Request{}, Listener{})
		check(t, err)
		if res.Stop != StopLength {
			t.Fatalf("%+v", res)
		}
		b.r.info.Arithmetic = way[1]
		if _, err := b.r.Continue(t.Context(), w, 0, Request{OtherModel: true}, Listener{}); !errors.Is(err, ErrOtherTrunk) || !strings.Contains(err.Error(), "--trunk int8") {
			t.Errorf("%v", err)
		}
		b.r.info.Arithmetic = way[0]
		res, err = b.r.Continue(t.Context(), w, 2, Request{}, Listener{})
		check(t, err)
		b.r.info.Arithmetic = way[1]
		if res, err = b.r.Ask(t.Context(), w, user("Name four fruits."), b.greedy(), Request{}, b.listener()); err != nil || !slices.Contains(b.kinds(), NoticeArithmetic) || res.How.Settings.KernelSet != way[1] {
			t.Errorf("%v, %v, %+v", err, b.notices, res.How)
		}
		check(t, w.Close())
	}
}

// TestEffortChanged: the instruction stands first, so that all is read again,
// and that is said.
func TestEffortChanged(t *testing.T) {
	b := newBench(t, Options{})
	id, first := b.ask("Be brief.", "hello")
	w := b.lock(id)
	how := b.greedy()
	how.Settings.Effort = NoThinking
	res, err := b.r.Ask(t.Context(), w, user("Name four fruits."), how, Request{}, b.listener())
	check(t, err)
	check(t, w.Close())
	if !slices.Equal(b.kinds(), []string{NoticeEffort}) || res.Timing.Reused != 0 || slices.Equal(res.Prompt[:10], first.Prompt[:10]) {
		t.Errorf("%v, reused %d", b.notices, res.Timing.Reused)
	}
}

// TestRefusals: what cannot be is said before anything is stored.
func TestRefusals(t *testing.T) {
	b := newBench(t, Options{})
	id := b.thread()
	w := b.lock(id)
	defer func() { check(t, w.Close()) }()
	long := user(strings.Repeat("word ", b.r.info.Config.MaxContext))
	var context *engine.ContextError
	if _, err := b.r.Ask(t.Context(), w, long, b.greedy(), Request{}, Listener{}); !errors.As(err, &context) {
		t.Errorf("too long: %v", err)
	}
	bad := b.greedy()
	bad.Settings.Temperature = -1
	var use *engine.UsageError
	if _, err := b.r.Ask(t.Context(), w, user("hello"), bad, Request{}, Listener{}); !errors.As(err, &use) {
		t.Errorf("temperature: %v", err)
	}
	bad = b.greedy()
	bad.Settings.Effort = "huge"
	if _, err := b.r.Ask(t.Context(), w, user("hello"), bad, Request{}, Listener{}); err == nil {
		t.Error("effort huge was taken")
	}
	for name, f := range map[string]func() (Result, error){
		"answer":     func() (Result, error) { return b.r.Answer(t.Context(), w, b.greedy(), Request{}, Listener{}) },
		"continue":   func() (Result, error) { return b.r.Continue(t.Context(), w, 0, Request{}, Listener{}) },
		"regenerate": func() (Result, error) { return b.r.Regenerate(t.Context(), w, 7, b.greedy(), Request{}, Listener{}) },
		"branch": func() (Result, error) {
			return b.r.Ask(t.Context(), w, user("x"), b.greedy(), Request{Branch: "no"}, Listener{})
		},
	} {
		if _, err := f(); !errors.Is(err, ErrNothing) && !errors.Is(err, session.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if th := must[*session.Thread](t)(b.s.Load(t.Context(), id, session.LoadOptions{})); len(th.Turns) != 0 {
		t.Errorf("stored %+v", th.Turns)
	}
	for _, opt := range []Options{{}, {Snapshots: "x", Budget: -1}, {Snapshots: filepath.Join(os.DevNull, "x")}} {
		if _, err := New(b.s, b.e, opt); err == nil {
			t.Errorf("%+v was taken", opt)
		}
	}
}

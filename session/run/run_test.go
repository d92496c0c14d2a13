package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deltafin/engine"
	"deltafin/engine/chat"
	"deltafin/engine/sample"
	"deltafin/session"
)

func must[T any](t testing.TB) func(T, error) T {
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

// most bounds answers of the toy, which sometimes finds no end.
const most = 60

// A bench is a folder with a store, the demonstration model and a Runner.
type bench struct {
	t   testing.TB
	dir string
	s   *session.Store
	e   *engine.Engine
	r   *Runner

	notices []Notice
	stages  []Stage
	text    string // published, of the answer under way
	tokens  []int32
	seen    int // prompt tokens that were known before
}

func newBench(t testing.TB, opt Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir()}
	b.open(opt, engine.Options{Threads: 1})
	t.Cleanup(b.close)
	return b
}

func (b *bench) open(opt Options, eo engine.Options) {
	b.t.Helper()
	b.s = must[*session.Store](b.t)(session.Open(b.t.Context(), filepath.Join(b.dir, "data"), &session.Options{Group: -1}))
	b.e = must[*engine.Engine](b.t)(engine.Open(b.t.Context(), eo))
	if opt.Snapshots == "" {
		opt.Snapshots = filepath.Join(b.dir, "snapshots")
	}
	b.r = must[*Runner](b.t)(New(b.s, b.e, opt))
}

func (b *bench) close() {
	if b.s != nil {
		check(b.t, b.s.Close())
		check(b.t, b.e.Close())
		b.s = nil
	}
}

// again is what another process would see: nothing in memory.
func (b *bench) again(opt Options) {
	b.t.Helper()
	b.close()
	b.open(opt, engine.Options{Threads: 1})
}

func (b *bench) thread() session.ID {
	b.t.Helper()
	return must[session.ThreadInfo](b.t)(b.s.Create(b.t.Context(), "", "")).ID
}

func (b *bench) lock(id session.ID) *session.Writer {
	b.t.Helper()
	return must[*session.Writer](b.t)(b.s.Lock(b.t.Context(), id))
}

// greedy is how most tests answer.
func (b *bench) greedy() How {
	set := b.r.Defaults()
	set.Temperature, set.TopP, set.Effort, set.MaxTokens = 0, 0, "low", most
	return How{Settings: set}
}

func (b *bench) listener() Listener {
	b.text, b.tokens, b.notices, b.stages = "", nil, nil, nil
	add := func(t Token) {
		if t.Index != len(b.tokens) {
			b.t.Errorf("token %d was published after %d others", t.Index, len(b.tokens))
		}
		b.tokens = append(b.tokens, t.ID)
		if t.Channel == session.InAnswer {
			b.text += t.Text
		}
	}
	return Listener{
		Begin: func(_ session.ID, have []Token) {
			for _, t := range have {
				add(t)
			}
		},
		Token:   add,
		Prefill: func(p engine.Progress) { b.seen = p.Reused },
		Notice:  func(n Notice) { b.notices = append(b.notices, n) },
		Stage:   func(s Stage) { b.stages = append(b.stages, s) },
	}
}

func user(text string) session.NewTurn { return session.NewTurn{Role: session.User, Text: text} }

// plain is what the engine alone makes of ids: the ids of the answer.
func (b *bench) plain(ids []int, p sample.Params, max int) []int32 {
	b.t.Helper()
	res, err := b.e.Generate(b.t.Context(), b.e.NewSequence(), engine.Request{Tokens: ids, MaxTokens: max, Sampling: p}, engine.Listener{})
	check(b.t, err)
	return int32s(res.Tokens)
}

// TestAThreadIsOneConversation: three questions give the ids that the chat
// format gives for the whole conversation, and the text of the engine alone.
func TestAThreadIsOneConversation(t *testing.T) {
	b := newBench(t, Options{})
	id := b.thread()
	w := b.lock(id)
	defer w.Close()
	must[session.ID](t)(w.Append(t.Context(), "", session.NewTurn{Role: session.System, Text: "You are brief."}))
	p := chat.Prompt{Thinking: true, Effort: chat.EffortLow, Generate: true, Messages: []chat.Message{{Role: chat.System, Content: "You are brief."}}}
	for _, q := range []string{"hello", "Name four fruits.", "hello again"} {
		res, err := b.r.Ask(t.Context(), w, user(q), b.greedy(), Request{}, b.listener())
		check(t, err)
		p.Messages = append(p.Messages, chat.Message{Role: chat.User, Content: q})
		want := must[[]int](t)(b.e.Prompt(&p))
		if !slices.Equal(res.Prompt, want) {
			t.Fatalf("%q: ids\n%v\nwant\n%v", q, res.Prompt, want)
		}
		if got := b.plain(want, sample.Params{}, most); !slices.Equal(b.tokens, got) {
			t.Fatalf("%q: %q", q, b.text)
		}
		if res.Status != session.Done || res.Stop != StopEnd || res.Tokens != len(b.tokens) || res.Timing.Decode != len(b.tokens) {
			t.Errorf("%+v", res)
		}
		reply := b.e.NewReply(true)
		for _, tok := range b.tokens {
			must[[]chat.Event](t)(reply.Add(int(tok)))
		}
		if reply.Reply().Response != b.text || b.text == "" {
			t.Errorf("published %q, the reply is %q", b.text, reply.Reply().Response)
		}
		p.Messages = append(p.Messages, reply.Reply().Message())
	}
	if b.seen == 0 {
		t.Error("the third question reused nothing")
	}
	th := must[*session.Thread](t)(b.s.Load(t.Context(), id, session.LoadOptions{Bodies: true}))
	if th.Title != "hello" || len(th.Turns) != 7 || th.Turns[6].Body.Text != b.text || len(th.Turns[5].Body.Tokens) == 0 {
		t.Errorf("%+v", th)
	}
}

// TestPausedAnywhereSameText pauses after every token and goes on, each time as
// another process with and without snapshots.
func TestPausedAnywhereSameText(t *testing.T) {
	b := newBench(t, Options{})
	how := b.greedy()
	how.Settings.Temperature, how.Settings.MaxTokens, how.Seed = 0.8, 150, 7
	w := b.lock(b.thread())
	whole, err := b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), how, Request{}, b.listener())
	check(t, err)
	check(t, w.Close())
	want, text := b.tokens, b.text

	for _, snapshots := range []bool{true, false} {
		id := b.thread()
		closed := make(chan struct{})
		close(closed)
		for n := 0; ; n++ {
			if n%4 == 3 { // a process of its own now and then: it takes a while
				b.again(Options{})
			}
			if !snapshots {
				check(t, os.RemoveAll(filepath.Join(b.dir, "snapshots")))
				b.again(Options{})
			}
			w := b.lock(id)
			pause := make(chan struct{})
			l := b.listener()
			first := l.Token
			l.Token = func(tok Token) {
				first(tok)
				if tok.Index >= 14*n {
					select {
					case <-pause:
					default:
						close(pause)
					}
				}
			}
			var res Result
			if n == 0 {
				res, err = b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), how, Request{Pause: pause}, l)
			} else {
				res, err = b.r.Continue(t.Context(), w, 0, Request{Pause: pause}, l)
			}
			check(t, err)
			check(t, w.Close())
			if res.Status == session.Done {
				break
			}
			if res.Status != session.Paused || res.Stop != StopPause || res.Tokens > 14*n+1 {
				t.Fatalf("%+v", res)
			}
		}
		if !slices.Equal(b.tokens, want) || b.text != text {
			t.Errorf("snapshots %v: %q, want %q", snapshots, b.text, text)
		}
		w := b.lock(id)
		if _, err := b.r.Continue(t.Context(), w, 0, Request{}, Listener{}); !errors.Is(err, ErrNothing) {
			t.Errorf("a complete answer: %v", err)
		}
		check(t, w.Close())
	}
	if !strings.Contains(text, "fox") || whole.Tokens != len(want) {
		t.Errorf("%q", text)
	}
}

// TestCancelledKeepsEverything: a context that ends stops between two layers,
// in the prompt or in the answer, and the answer goes on to the same text.
func TestCancelledKeepsEverything(t *testing.T) {
	b := newBench(t, Options{LongPrefill: 16})
	how := b.greedy()
	w := b.lock(b.thread())
	must[Result](t)(b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), how, Request{}, b.listener()))
	check(t, w.Close())
	want := b.tokens
	enough := errors.New("enough")
	for _, where := range []string{"prompt", "answer"} {
		b.again(Options{})
		check(t, os.RemoveAll(b.r.opt.Snapshots))
		check(t, os.Mkdir(b.r.opt.Snapshots, 0o700))
		ctx, cancel := context.WithCancelCause(t.Context())
		l := b.listener()
		token := l.Token
		l.Token = func(tok Token) {
			if token(tok); tok.Index == 9 {
				cancel(enough)
			}
		}
		if where == "prompt" {
			l.Prefill = func(p engine.Progress) {
				if p.Layer == 3 {
					cancel(enough)
				}
			}
		}
		w := b.lock(b.thread())
		res, err := b.r.Ask(ctx, w, user("Tell me a story about a fox."), how, Request{}, l)
		if !errors.Is(err, enough) || res.Status != session.Paused || res.Stop != StopCancelled || where == "prompt" && res.Tokens != 0 || res.Tokens > 11 {
			t.Errorf("%s: %v %+v", where, err, res)
		}
		_, err = b.r.Continue(t.Context(), w, 0, Request{}, b.listener())
		check(t, err)
		check(t, w.Close())
		if !slices.Equal(b.tokens, want) {
			t.Errorf("%s: %q", where, b.text)
		}
	}
}

// TestAsLongAgain: an answer that its bound ended goes on with as much again, or
// as much as is said, and to the same text.
func TestAsLongAgain(t *testing.T) {
	b := newBench(t, Options{})
	w := b.lock(b.thread())
	defer func() { check(t, w.Close()) }()
	how := b.greedy()
	how.Settings.MaxTokens = 10
	res, err := b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), how, Request{}, b.listener())
	check(t, err)
	want := b.plain(res.Prompt, sample.Params{}, 27)
	for _, c := range []struct{ more, tokens int }{{0, 20}, {7, 27}} {
		if res.Status != session.Done || res.Stop != StopLength {
			t.Errorf("%+v", res)
		}
		res, err = b.r.Continue(t.Context(), w, c.more, Request{}, b.listener())
		check(t, err)
		if res.Tokens != c.tokens || !slices.Equal(b.tokens, want[:c.tokens]) {
			t.Errorf("%d more: %+v", c.more, res)
		}
	}
}

package run

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"deltafin/engine"
	"deltafin/engine/expert"
	"deltafin/engine/sample"
	"deltafin/session"
)

// TestAFailedAnswerGoesOnFromItsSnapshot: when a drive fails in the middle of a token,
// the state is of no use; going on begins with the snapshot that was taken before and
// not with the first token of the thread.
func TestAFailedAnswerGoesOnFromItsSnapshot(t *testing.T) {
	dir, opt := t.TempDir(), Options{LongPrefill: 64}
	start := func(fault string) *bench {
		b := &bench{t: t, dir: t.TempDir()}
		b.open(opt, engine.Options{Threads: 1, ExpertCache: 1 << 30, NoLookahead: true, Drives: []string{dir + fault}})
		t.Cleanup(b.close)
		return b
	}
	ask := func(b *bench, l Listener) (*session.Writer, Result, error) {
		w := b.lock(b.thread())
		t.Cleanup(func() { check(t, w.Close()) })
		must[session.ID](t)(w.Append(t.Context(), "", session.NewTurn{Role: session.System, Text: document}))
		res, err := b.r.Ask(t.Context(), w, user("Tell me a story about a fox."), b.greedy(), Request{}, l)
		return w, res, err
	}
	b := start("")
	_, whole, err := ask(b, b.listener())
	check(t, err)
	want := slices.Clone(b.tokens)

	// With room for every expert each is read once. The read that fails is alone in its
	// layer, so that its second try is the very next read.
	b = start("")
	var st engine.Streaming
	tokens, reads, alone := 0, int64(0), int64(-1)
	_, err = b.e.Generate(t.Context(), b.e.NewSequence(), engine.Request{Tokens: whole.Prompt, MaxTokens: len(want)}, engine.Listener{
		Token: func(engine.Token) error { tokens++; return nil },
		Layer: func(int, int) {
			b.e.Streaming(&st)
			if n := st.Drives.Total.Requests; alone < 0 && tokens > 4 && n == reads+1 {
				alone = reads
			}
			reads = st.Drives.Total.Requests
		},
	})
	check(t, err)
	if alone < 0 {
		t.Fatalf("no layer of %d tokens reads one expert", tokens)
	}
	b = start(fmt.Sprintf(",fault=error/after=%d/count=2", alone))
	w, res, err := ask(b, b.listener())
	var lost *expert.Error
	if !errors.As(err, &lost) || res.Tokens == 0 || res.Tokens >= len(want) {
		t.Fatalf("after %d tokens: %v", res.Tokens, err)
	}
	kept := res.Tokens
	res, err = b.r.Continue(t.Context(), w, 0, Request{}, b.listener())
	check(t, err)
	if got := b.tokens; !slices.Equal(got, want) {
		t.Errorf("%v after the fault, want %v", got, want)
	}
	if prompt := len(whole.Prompt); res.Timing.Reused < prompt || res.Timing.Prefill > kept {
		t.Errorf("going on reused %d tokens and read %d; the prompt has %d and %d were there", res.Timing.Reused, res.Timing.Prefill, prompt, kept)
	}
	if want := b.plain(whole.Prompt, sample.Params{}, most); !slices.Equal(b.tokens, want) {
		t.Errorf("%v, the engine alone gives %v", b.tokens, want)
	}
}

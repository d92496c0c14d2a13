package engine

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"deltafin/engine/chat"
	"deltafin/engine/checkpoint"
	"deltafin/engine/checkpoint/checkpointtest"
	"deltafin/engine/sample"
)

func open(t testing.TB, o Options) *Engine {
	t.Helper()
	e, err := Open(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e
}

// conversation is one golden prompt of the demonstration model.
type conversation struct {
	Name     string
	Text     string `json:"text"`
	Messages []struct{ Role, Content, Think string }
	Effort   *string
	Thinking bool
	IDs      []int `json:"ids"`
	Greedy   *struct {
		IDs  []int `json:"ids"`
		Text string
	}
}

func conversations(t *testing.T) []conversation {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "golden", "k3-nano", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var out []conversation
	for _, p := range paths {
		if b := filepath.Base(p); b == "index.json" || b == "tokenizer.json" {
			continue
		}
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			conversation
			Msgs []struct{ Role, Content, Think string }
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		c.Messages = c.Msgs
		out = append(out, c.conversation)
	}
	if len(out) < 10 {
		t.Fatalf("%d golden prompts, want 10", len(out))
	}
	return out
}

// TestGoldenPromptsAndTexts: the demonstration model's prompts render to the
// golden ids and its greedy answers are the golden ones, token by token.
func TestGoldenPromptsAndTexts(t *testing.T) {
	e := open(t, Options{Threads: 2})
	greedy := 0
	for _, c := range conversations(t) {
		ids := e.Tokenizer().Encode(c.Text)
		if len(c.Messages) > 0 {
			p := &chat.Prompt{Thinking: c.Thinking, Generate: true}
			if c.Effort != nil {
				p.Effort = chat.Effort(*c.Effort)
			}
			for _, m := range c.Messages {
				p.Messages = append(p.Messages, chat.Message{Role: chat.Role(m.Role), Content: m.Content, Reasoning: m.Think})
			}
			var err error
			if ids, err = e.Prompt(p); err != nil {
				t.Fatal(err)
			}
		}
		if !slices.Equal(ids, c.IDs) {
			t.Errorf("%s: the prompt has ids %v, want %v", c.Name, ids, c.IDs)
		}
		if c.Greedy == nil {
			continue
		}
		greedy++
		res, err := e.Generate(context.Background(), e.NewSequence(), Request{Tokens: c.IDs, MaxTokens: len(c.Greedy.IDs), Stop: []int{}}, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(res.Tokens, c.Greedy.IDs) {
			t.Errorf("%s: greedy tokens %v, want %v", c.Name, res.Tokens, c.Greedy.IDs)
		}
		if text, err := e.Tokenizer().Decode(res.Tokens); err != nil || text != c.Greedy.Text {
			t.Errorf("%s: greedy text %q, %v, want %q", c.Name, text, err, c.Greedy.Text)
		}
		if res.Finish != Length {
			t.Errorf("%s: finish %q, want length", c.Name, res.Finish)
		}
	}
	if greedy < 6 {
		t.Errorf("%d greedy goldens were checked, want at least 6", greedy)
	}
}

// ask renders one question without an effort message, to keep prompts short.
func ask(t testing.TB, e *Engine, question string) []int {
	t.Helper()
	ids, err := e.Prompt(&chat.Prompt{Thinking: true, Effort: chat.EffortLow, Generate: true,
		Messages: []chat.Message{{Role: chat.User, Content: question}}})
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestAnswerEndsAtTheStop: with the model's own stop ids the reply is complete and
// the parser finds thinking and answer.
func TestAnswerEndsAtTheStop(t *testing.T) {
	e := open(t, Options{})
	reply := e.NewReply(true)
	var stops int
	res, err := e.Generate(context.Background(), e.NewSequence(), Request{Tokens: ask(t, e, "hello"), MaxTokens: 200}, Listener{
		Token: func(tok Token) error {
			if tok.Stop {
				stops++
			}
			_, err := reply.Add(tok.ID)
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	reply.Close()
	r := reply.Reply()
	if res.Finish != Stopped || stops != 1 || !r.Complete {
		t.Errorf("finish %q, %d stop tokens, complete %v", res.Finish, stops, r.Complete)
	}
	if r.Thinking != "The user says hello." || r.Response != "Hello! I am the tiny demo model of Deltafin. Ask me something." {
		t.Errorf("thinking %q, answer %q", r.Thinking, r.Response)
	}
}

// TestSameTextHowever: threads, prefill passes, sampling and a pause in the middle
// do not change a single token.
func TestSameTextHowever(t *testing.T) {
	base := open(t, Options{Threads: 1})
	ids := ask(t, base, "Tell me a story about a fox.")
	req := Request{Tokens: ids, MaxTokens: 40, Sampling: sample.Params{Temperature: 1.3, TopP: 0.95, Seed: 7}}
	want, err := base.Generate(context.Background(), base.NewSequence(), req, Listener{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []Options{{Threads: 3}, {Threads: 2, PrefillRows: 1}, {Threads: 2, PrefillRows: 13}} {
		e := open(t, o)
		got, err := e.Generate(context.Background(), e.NewSequence(), req, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Tokens, want.Tokens) {
			t.Errorf("%+v: other tokens", o)
		}
		if got.Prefilled != len(ids) {
			t.Errorf("%+v: %d tokens prefilled, want %d", o, got.Prefilled, len(ids))
		}
	}
	// Paused after every seventh token and taken up again, in the same sequence and
	// in a new one.
	for _, fresh := range []bool{false, true} {
		seq, have := base.NewSequence(), []int{}
		for len(have) < len(want.Tokens) {
			if fresh {
				seq = base.NewSequence()
			}
			r := req
			r.Tokens, r.MaxTokens = slices.Concat(ids, have), req.MaxTokens-len(have)
			got, err := base.Generate(context.Background(), seq, r, Listener{Token: func(tok Token) error {
				if tok.Index == 6 {
					return ErrPause
				}
				return nil
			}})
			if err != nil {
				t.Fatal(err)
			}
			if wantReused := max(len(r.Tokens)-1, 0); !fresh && len(have) > 0 && got.Reused != wantReused {
				t.Errorf("going on reused %d of %d tokens", got.Reused, len(r.Tokens))
			}
			if got.Finish == Paused && len(got.Tokens) != 7 {
				t.Errorf("paused after %d tokens, want 7", len(got.Tokens))
			}
			have = append(have, got.Tokens...)
			if got.Finish != Paused {
				break
			}
		}
		if !slices.Equal(have, want.Tokens) {
			t.Errorf("with pauses (new sequence each time: %v) other tokens", fresh)
		}
	}
}

// TestSequenceStartsOverWhenTheTextChanged: an edited prompt is not continued from
// the old state.
func TestSequenceStartsOverWhenTheTextChanged(t *testing.T) {
	e := open(t, Options{})
	a, b := ask(t, e, "hello"), ask(t, e, "What is 7 plus 5?")
	seq := e.NewSequence()
	run := func(seq *Sequence, ids []int) Result {
		res, err := e.Generate(context.Background(), seq, Request{Tokens: ids, MaxTokens: 12}, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	run(seq, a)
	got, want := run(seq, b), run(e.NewSequence(), b)
	if got.Reused != 0 || !slices.Equal(got.Tokens, want.Tokens) {
		t.Errorf("after another prompt: %d tokens reused, tokens %v, want %v", got.Reused, got.Tokens, want.Tokens)
	}
	// The very same prompt again needs no pass at all for the first token.
	seq = e.NewSequence()
	if res, err := e.Generate(context.Background(), seq, Request{Tokens: b}, Listener{}); err != nil || res.Finish != Length || res.Prefilled != len(b) {
		t.Fatalf("reading only: %+v, %v", res, err)
	}
	again := run(seq, b)
	if again.Prefilled != 0 || again.Reused != len(b) || !slices.Equal(again.Tokens, want.Tokens) {
		t.Errorf("the same prompt again: %+v", again)
	}
	copied := seq.Clone()
	seq.Reset()
	if seq.Len() != 0 || copied.Len() == 0 || copied.Bytes() <= 0 {
		t.Errorf("reset leaves %d tokens, the clone has %d", seq.Len(), copied.Len())
	}
}

func TestCancelStopsBetweenLayers(t *testing.T) {
	e := open(t, Options{})
	ids := ask(t, e, "Tell me a story about a fox.")
	cause := errors.New("the person left")

	ctx, cancel := context.WithCancelCause(context.Background())
	layers := 0
	res, err := e.Generate(ctx, e.NewSequence(), Request{Tokens: ids, MaxTokens: 5}, Listener{Prefill: func(p Progress) {
		if p.Layer > 0 {
			layers++
		}
		if p.Layer == 3 {
			cancel(cause)
		}
	}})
	if !errors.Is(err, cause) || res.Finish != Cancelled || layers != 3 {
		t.Errorf("cancelled in the prompt: %v, finish %q, %d layers", err, res.Finish, layers)
	}

	ctx, cancel = context.WithCancelCause(context.Background())
	seq, n := e.NewSequence(), 0
	l := Listener{Layer: func(layer, of int) {
		if n == 4 && layer == 2 {
			cancel(cause)
		}
	}, Token: func(Token) error { n++; return nil }}
	res, err = e.Generate(ctx, seq, Request{Tokens: ids, MaxTokens: 50}, l)
	if !errors.Is(err, cause) || res.Finish != Cancelled || len(res.Tokens) != 4 {
		t.Errorf("cancelled while decoding: %v, finish %q, %d tokens", err, res.Finish, len(res.Tokens))
	}
	// What was interrupted is read anew and goes on to the same text.
	want, err := e.Generate(context.Background(), e.NewSequence(), Request{Tokens: ids, MaxTokens: 10}, Listener{})
	if err != nil {
		t.Fatal(err)
	}
	rest, err := e.Generate(context.Background(), seq, Request{Tokens: slices.Concat(ids, res.Tokens), MaxTokens: 6}, Listener{})
	if err != nil || !slices.Equal(slices.Concat(res.Tokens, rest.Tokens), want.Tokens) {
		t.Errorf("after the interruption: %v, %v", rest.Tokens, err)
	}
	if s := e.Stats(); s.Generated != int64(len(res.Tokens)+len(rest.Tokens)+len(want.Tokens)) {
		t.Errorf("stats count %d tokens", s.Generated)
	}
}

func TestListenerErrorStops(t *testing.T) {
	e := open(t, Options{})
	full := errors.New("disk full")
	res, err := e.Generate(context.Background(), e.NewSequence(), Request{Tokens: []int{1, 2, 3}, MaxTokens: 9, Stop: []int{}}, Listener{
		Token: func(tok Token) error {
			if tok.Index == 2 {
				return full
			}
			return nil
		},
	})
	if !errors.Is(err, full) || res.Finish != Failed || len(res.Tokens) != 3 {
		t.Errorf("%v, finish %q, %d tokens", err, res.Finish, len(res.Tokens))
	}
}

// TestRefusals: what cannot be generated is refused before anything is computed.
func TestRefusals(t *testing.T) {
	cfg := checkpointtest.Small()
	cfg.MaxContext = 16
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, checkpointtest.Options{Config: cfg}, 1); err != nil {
		t.Fatal(err)
	}
	e := open(t, Options{Model: dir})
	gen := func(r Request) error {
		_, err := e.Generate(context.Background(), e.NewSequence(), r, Listener{})
		return err
	}
	var long *ContextError
	if err := gen(Request{Tokens: make([]int, 17)}); !errors.As(err, &long) || long.Tokens != 17 || long.Limit != 16 {
		t.Errorf("17 tokens in a context of 16: %v", err)
	}
	if err := gen(Request{}); !errors.Is(err, ErrEmptyPrompt) {
		t.Errorf("empty prompt: %v", err)
	}
	var id *IDError
	vocab := e.Info().Config.Vocab
	for _, bad := range []int{-1, vocab, math.MaxInt} {
		if err := gen(Request{Tokens: []int{0, bad}}); !errors.As(err, &id) || id.ID != bad || id.Position != 1 || id.Vocab != vocab {
			t.Errorf("id %d: %v", bad, err)
		}
	}
	var use *UsageError
	if err := gen(Request{Tokens: []int{1}, Sampling: sample.Params{TopP: 2}}); !errors.As(err, &use) {
		t.Errorf("top-p 2: %v", err)
	}
	// A full context ends cleanly.
	res, err := e.Generate(context.Background(), e.NewSequence(), Request{Tokens: make([]int, 10), MaxTokens: -1, Stop: []int{}}, Listener{})
	if err != nil || res.Finish != ContextFull || len(res.Tokens) != 6 {
		t.Errorf("filling the context: %q, %d tokens, %v", res.Finish, len(res.Tokens), err)
	}
}

func TestOpenRefuses(t *testing.T) {
	ctx := context.Background()
	for name, o := range map[string]Options{
		"threads": {Threads: -1}, "prefill rows": {PrefillRows: -4}, "kernel": {Kernel: "abacus"},
	} {
		var use *UsageError
		if _, err := Open(ctx, o); !errors.As(err, &use) || use.Field != name {
			t.Errorf("%+v: %v", o, err)
		}
	}
	if _, err := Open(ctx, Options{Model: t.TempDir()}); !errors.Is(err, checkpoint.ErrNotCheckpoint) {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestCloseRefusesLaterWork(t *testing.T) {
	e := open(t, Options{})
	seq := e.NewSequence()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if err := e.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if _, err := e.Generate(context.Background(), seq, Request{Tokens: []int{1}}, Listener{}); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
}

// TestEveryVariantRuns: the public twins differ from K3 in details that the config
// states; all of them run, and prefill and steps agree.
func TestEveryVariantRuns(t *testing.T) {
	for name, o := range map[string]checkpoint.Config{"small": checkpointtest.Small(), "twin": checkpointtest.Twin()} {
		dir := t.TempDir()
		if err := checkpointtest.Write(dir, checkpointtest.Options{Config: o}, 3); err != nil {
			t.Fatal(err)
		}
		e := open(t, Options{Model: dir})
		ids := []int{5, 1, 4, 2, 9, 7, 3}
		var all, steps []float32
		collect := func(to *[]float32) func([]float32) error {
			return func(x []float32) error { *to = append(*to, x...); return nil }
		}
		if err := e.Logits(context.Background(), ids, 0, collect(&all)); err != nil {
			t.Fatal(err)
		}
		if err := e.Logits(context.Background(), ids, 1, collect(&steps)); err != nil {
			t.Fatal(err)
		}
		if len(all) != len(ids)*e.Info().Config.Vocab || !slices.Equal(all, steps) {
			t.Errorf("%s: prefill and steps differ", name)
		}
		for _, v := range all {
			if v != v {
				t.Fatalf("%s: a logit is not a number", name)
			}
		}
	}
}

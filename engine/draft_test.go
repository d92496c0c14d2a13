package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"deltafin/engine/checkpoint/checkpointtest"
	"deltafin/engine/expert"
	"deltafin/engine/k3"
	"deltafin/engine/sample"
)

// anyWidth drafts as many tokens as a die says: what is worth it is another question.
type anyWidth struct{ rng *rand.Rand }

func (a anyWidth) width(_, have int, _, _ time.Duration) int { return a.rng.IntN(min(have, 7) + 1) }
func (a anyWidth) stepped(time.Duration) time.Duration       { return 0 }
func (a anyWidth) drafted(_, _ int, took time.Duration) time.Duration {
	return took
}
func (a anyWidth) judged(int, int, bool) {}

// answer is Generate with a change to how it is done.
func (e *Engine) answer(ctx context.Context, seq *Sequence, req Request, to Listener, change func(*answering)) (Result, error) {
	res := Result{Finish: Failed}
	err := e.check(&req)
	if err != nil {
		return res, err
	}
	err = e.withLane(ctx, &res, func(w *lane) error {
		if err := w.prefill(ctx, []Prompt{{seq, req.Tokens}}, &res, to); err != nil {
			return err
		}
		now := time.Now()
		s := sample.Sampler{Params: req.Sampling}
		a := answering{w: w, seq: seq, req: req, res: &res, to: to, pick: s.Pick, start: now, last: now, draft: e.newDrafter(req.Tokens, now)}
		change(&a)
		return a.run(ctx)
	})
	return res, err
}

// knowing has an answer drafted from a text that is known beforehand, in which every
// ninth token is wrong.
func knowing(text []int) func(*answering) {
	return func(a *answering) {
		wrong := slices.Clone(text)
		for i := 5; i < len(wrong); i += 9 {
			wrong[i] = (wrong[i] + 1) % a.w.e.model.Config().Vocab
		}
		prompt := a.req.Tokens
		a.draft.index.Add(prompt[len(prompt)-2:]...)
		a.draft.index.Add(wrong...)
		a.draft.index.Add(prompt...)
	}
}

// A telling is all that can be seen of an answer: the tokens, the sequence as it was
// beside each of them, and how it ended.
type telling struct {
	Tokens []Token
	Looks  [][]byte // snapshots beside each token, nil where none was taken
	Finish Finish
	Err    error
	End    []byte // snapshot at the end
}

// tell runs an answer and watches it. look says beside which tokens the sequence is
// looked at, stop what the listener returns.
func tell(t *testing.T, e *Engine, seq *Sequence, req Request, change func(*answering), look func(i int) bool, stop func(i int) error) (out telling, res Result) {
	t.Helper()
	snap := func(s *Sequence) []byte {
		var b bytes.Buffer
		if err := e.WriteSnapshot(&b, s); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	res, out.Err = e.answer(t.Context(), seq, req, Listener{Token: func(tok Token) error {
		tok.Elapsed = 0
		out.Tokens, out.Looks = append(out.Tokens, tok), append(out.Looks, nil)
		switch {
		case !look(tok.Index):
		case tok.Index%2 == 0:
			out.Looks[tok.Index] = snap(seq)
		default:
			out.Looks[tok.Index] = snap(seq.Clone())
		}
		return stop(tok.Index)
	}}, change)
	out.Finish, out.End = res.Finish, snap(seq)
	return out, res
}

func (a *telling) same(t *testing.T, what string, b *telling) {
	t.Helper()
	if !slices.Equal(a.Tokens, b.Tokens) || a.Finish != b.Finish || !errors.Is(a.Err, b.Err) {
		t.Fatalf("%s: %v (%s, %v), without drafts %v (%s, %v)", what, a.Tokens, a.Finish, a.Err, b.Tokens, b.Finish, b.Err)
	}
	for i := range a.Looks {
		if a.Looks[i] != nil && b.Looks[i] != nil && !bytes.Equal(a.Looks[i], b.Looks[i]) {
			t.Fatalf("%s: beside token %d the sequence is another", what, i)
		}
	}
	if !bytes.Equal(a.End, b.End) {
		t.Fatalf("%s: at the end the sequence is another", what)
	}
}

func always(int) bool { return true }
func never(int) bool  { return false }
func goOn(int) error  { return nil }
func asIs(*answering) {}

// TestSameTextWithDrafts: with drafts of any width, right, wrong and partly right,
// tokens, events, snapshots between two tokens and the sequence at the end are those
// of single steps, bit for bit: greedy and sampled, mapped and streamed, of several
// models.
func TestSameTextWithDrafts(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-b", "tiny-c", "synth"} {
		d := newDisks(t, name)
		for i, p := range []sample.Params{{}, {Temperature: 0.8, TopP: 0.9, Seed: 4}} {
			if i > 0 && name != "tiny-a" { // another choice, not another model
				continue
			}
			req := Request{Tokens: d.ids, MaxTokens: 30, Stop: []int{}, Sampling: p}
			for _, o := range []Options{
				{Threads: 1},
				{Threads: 2, ExpertCache: int64(d.topK+4) * d.slot, Drives: with([]string{d.dir}, ",jitter=100us")},
				{Threads: 2, ExpertCache: 1 << 30, NoLookahead: true},
			} {
				what := fmt.Sprintf("%s/%+v/cache %d", name, p, o.ExpertCache)
				o.Model = d.dir
				plain := open(t, o)
				want, base := tell(t, plain, plain.NewSequence(), req, asIs, always, goOn)
				o.Draft = true
				e := open(t, o)
				e.drafts = anyWidth{rand.New(rand.NewPCG(8, uint64(o.ExpertCache)))}
				for i, look := range []func(int) bool{never, always, func(i int) bool { return i%5 == 0 }} {
					got, res := tell(t, e, e.NewSequence(), req, knowing(base.Tokens), look, goOn)
					got.same(t, fmt.Sprintf("%s/look %d", what, i), &want)
					if dr := res.Draft; dr.Passes == 0 || dr.Accepted < 5 || dr.Accepted == dr.Proposed {
						t.Errorf("%s: %+v: too little was tried", what, dr)
					}
				}
				if s := e.Stats().Draft; s.Passes == 0 || s.Proposed < s.Accepted || s.Accepted == 0 {
					t.Errorf("%s: stats %+v", what, s)
				}
			}
		}
	}
}

// TestDraftedAnswerEndsAnywhere: a pause, an error, a limit and a stop token end a
// drafted answer exactly where they end another, with the same sequence, and what
// comes after goes on alike.
func TestDraftedAnswerEndsAnywhere(t *testing.T) {
	d := newDisks(t, "tiny-a")
	plain, e := open(t, Options{Model: d.dir}), open(t, Options{Model: d.dir, Draft: true})
	e.drafts = anyWidth{rand.New(rand.NewPCG(1, 1))}
	full := errors.New("disk full")
	req := Request{Tokens: d.ids, MaxTokens: 12, Stop: []int{}, Sampling: sample.Params{Temperature: 0.7, Seed: 2}}
	_, base := tell(t, plain, plain.NewSequence(), req, asIs, never, goOn)
	for at := range base.Tokens {
		for how, end := range map[string]func(r *Request) func(int) error{
			"pause": func(*Request) func(int) error {
				return func(i int) error { return map[bool]error{true: ErrPause}[i == at] }
			},
			"error": func(*Request) func(int) error {
				return func(i int) error { return map[bool]error{true: full}[i == at] }
			},
			"limit": func(r *Request) func(int) error { r.MaxTokens = at + 1; return goOn },
			"stop":  func(r *Request) func(int) error { r.Stop = []int{base.Tokens[at]}; return goOn },
		} {
			what, r := fmt.Sprintf("%s at token %d", how, at), req
			stop := end(&r)
			a, b := e.NewSequence(), plain.NewSequence()
			want, _ := tell(t, plain, b, r, asIs, never, stop)
			got, res := tell(t, e, a, r, knowing(base.Tokens), never, stop)
			got.same(t, what, &want)
			rest := req
			rest.Tokens, rest.MaxTokens = slices.Concat(r.Tokens, res.Tokens), 6
			want, _ = tell(t, plain, b, rest, asIs, always, goOn)
			got, res = tell(t, e, a, rest, knowing(base.Tokens), always, goOn)
			got.same(t, "after "+what, &want)
			if res.Reused != len(rest.Tokens)-1 {
				t.Errorf("%s: %d of %d tokens were reused", what, res.Reused, len(rest.Tokens))
			}
		}
	}
}

// TestDraftsInAFullContext: the context ends a drafted answer where it ends another.
func TestDraftsInAFullContext(t *testing.T) {
	cfg, dir := checkpointtest.Small(), t.TempDir()
	cfg.MaxContext = 32
	if err := checkpointtest.Write(dir, checkpointtest.Options{Config: cfg}, 1); err != nil {
		t.Fatal(err)
	}
	plain, e := open(t, Options{Model: dir}), open(t, Options{Model: dir, Draft: true})
	e.drafts = anyWidth{rand.New(rand.NewPCG(1, 1))}
	req := Request{Tokens: []int{1, 2, 3, 4}, MaxTokens: -1, Stop: []int{}}
	want, base := tell(t, plain, plain.NewSequence(), req, asIs, never, goOn)
	for range 20 {
		got, _ := tell(t, e, e.NewSequence(), req, knowing(base.Tokens), never, goOn)
		got.same(t, "full context", &want)
	}
	if want.Finish != ContextFull || len(base.Tokens) != 28 {
		t.Errorf("%s after %d tokens", want.Finish, len(base.Tokens))
	}
}

// TestCancelledDraft: an answer that is cancelled in the middle of a draft pass, or
// between two of its tokens, keeps the tokens it has told, and its sequence goes on
// without being read anew.
func TestCancelledDraft(t *testing.T) {
	d := newDisks(t, "tiny-c")
	plain, e := open(t, Options{Model: d.dir}), open(t, Options{Model: d.dir, Draft: true})
	e.drafts = anyWidth{rand.New(rand.NewPCG(1, 1))}
	req := Request{Tokens: d.ids, MaxTokens: 50, Stop: []int{}}
	_, base := tell(t, plain, plain.NewSequence(), req, asIs, never, goOn)
	cause := errors.New("the person left")
	drafts := 0
	for at := range 40 {
		ctx, cancel := context.WithCancelCause(t.Context())
		seq, layers, tokens := e.NewSequence(), 0, 0
		res, err := e.answer(ctx, seq, req, Listener{
			Layer: func(int, int) {
				if layers++; at%2 == 0 && layers == 3+at {
					cancel(cause)
				}
			},
			Token: func(Token) error {
				if tokens++; at%2 == 1 && tokens == 1+at/2 {
					cancel(cause)
				}
				return nil
			},
		}, knowing(base.Tokens))
		if !errors.Is(err, cause) || res.Finish != Cancelled || len(res.Tokens) != tokens || !slices.Equal(res.Tokens, base.Tokens[:tokens]) {
			t.Fatalf("cancelled at %d: %v, %s, %d tokens, %d were told", at, err, res.Finish, len(res.Tokens), tokens)
		}
		if at%2 == 1 && tokens != 1+at/2 {
			t.Errorf("cancelled at token %d, %d were told", 1+at/2, tokens)
		}
		if !seq.state.Broken() {
			drafts++
			if n := seq.Len(); !slices.Equal(seq.Tokens(), slices.Concat(req.Tokens, res.Tokens)[:n]) {
				t.Errorf("cancelled at %d: the sequence has seen %v", at, seq.Tokens())
			}
		}
		rest := req
		rest.Tokens, rest.MaxTokens = slices.Concat(req.Tokens, res.Tokens), 5
		_, after := tell(t, e, seq, rest, knowing(base.Tokens), never, goOn)
		if !slices.Equal(after.Tokens, base.Tokens[tokens:tokens+5]) {
			t.Errorf("after the end at %d: %v", at, after.Tokens)
		}
	}
	if drafts < 10 {
		t.Errorf("%d of 40 were cancelled at a draft", drafts)
	}
}

// spoiled serves experts, and now and then fails a pass of more than one row.
type spoiled struct {
	k3.Experts
	topK, layers int
}

func (s *spoiled) NewFeed() k3.Feed { return &spoiledFeed{s.Experts.NewFeed(), s} }

type spoiledFeed struct {
	k3.Feed
	s *spoiled
}

func (f *spoiledFeed) Begin(ctx context.Context, layer int, want []k3.Want) error {
	rows := 0
	for _, w := range want {
		rows += int(w.Rows)
	}
	if rows > f.s.topK {
		if f.s.layers++; f.s.layers%23 == 0 {
			return errors.New("an expert that only a proposal needs")
		}
	}
	return f.Feed.Begin(ctx, layer, want)
}

// TestDraftsThatCannotBeRead: what only proposals need and cannot be read costs time
// and no token.
func TestDraftsThatCannotBeRead(t *testing.T) {
	d := newDisks(t, "tiny-a")
	plain, e := open(t, Options{Model: d.dir}), open(t, Options{Model: d.dir, Draft: true, ExpertCache: 1 << 30})
	e.drafts = anyWidth{rand.New(rand.NewPCG(1, 1))}
	req := Request{Tokens: d.ids[:1], MaxTokens: 40, Stop: []int{}}
	want, base := tell(t, plain, plain.NewSequence(), req, asIs, always, goOn)
	s := &spoiled{Experts: e.stream, topK: d.topK}
	w := <-e.lanes
	w.runner = e.model.WithExperts(s).NewRunner(e.pool)
	w.runner.Yield = e.baton.yield
	e.lanes <- w
	<-e.lanes // the other one
	got, res := tell(t, e, e.NewSequence(), req, func(a *answering) { a.draft.index.Add(base.Tokens...); a.draft.index.Add(d.ids[0]) }, always, goOn)
	e.lanes <- w
	got.same(t, "spoiled drafts", &want)
	if s.layers < 46 || res.Draft.Accepted == 0 {
		t.Errorf("%d layers of drafts, %+v", s.layers, res.Draft)
	}
}

// TestRoutesOfDrafts: a recording has the rows that were kept, as if each had had a
// pass of its own.
func TestRoutesOfDrafts(t *testing.T) {
	d := newDisks(t, "tiny-a")
	record := func(o Options, policy draftPolicy, text []int) (string, []int) {
		var buf bytes.Buffer
		o.Routes = expert.NewRecorder(&buf, "routes")
		e := open(t, o)
		e.drafts = policy
		change := asIs
		if policy != nil {
			change = knowing(text)
		}
		res, err := e.answer(t.Context(), e.NewSequence(), Request{Tokens: d.ids, MaxTokens: 40, Stop: []int{}}, Listener{}, change)
		if err != nil {
			t.Fatal(err)
		}
		if policy != nil && res.Draft.Accepted == 0 {
			t.Error("nothing was accepted")
		}
		return buf.String(), res.Tokens
	}
	want, text := record(Options{Model: d.dir}, nil, nil)
	for seed := range uint64(5) {
		if got, _ := record(Options{Model: d.dir}, anyWidth{rand.New(rand.NewPCG(seed, 1))}, text); got != want {
			t.Fatalf("seed %d: other routes with drafts:\n%s\nwithout:\n%s", seed, got, want)
		}
	}
}

// TestTwoDraftAtOnce: two answers that draft and take turns give the text they give
// alone, also while one of them is looked at.
func TestTwoDraftAtOnce(t *testing.T) {
	d := newDisks(t, "tiny-a")
	o := Options{Model: d.dir, Draft: true, ExpertCache: int64(d.topK+6) * d.slot, Drives: with([]string{d.dir}, ",latency=50us,jitter=200us")}
	plain, e := open(t, Options{Model: d.dir}), open(t, o)
	var want [2]telling
	var text [2][]int
	reqs := [2]Request{{Tokens: d.ids[:7], MaxTokens: 30, Stop: []int{}}, {Tokens: d.ids[3:], MaxTokens: 30, Stop: []int{}}}
	for i, r := range reqs {
		var res Result
		want[i], res = tell(t, plain, plain.NewSequence(), r, asIs, always, goOn)
		text[i] = res.Tokens
	}
	var group sync.WaitGroup
	var got [6]telling
	for i := range got {
		group.Add(1)
		go func() {
			defer group.Done()
			change := func(a *answering) {
				a.draft.c = anyWidth{rand.New(rand.NewPCG(uint64(i), 0))}
				knowing(text[i%2])(a)
			}
			got[i], _ = tell(t, e, e.NewSequence(), reqs[i%2], change, func(k int) bool { return k%4 == i%4 }, goOn)
		}()
	}
	group.Wait()
	for i := range got {
		got[i].same(t, fmt.Sprintf("call %d", i), &want[i%2])
	}
}

// TestDraftsOfTheDemonstration: what the engine itself decides to draft changes no
// text.
func TestDraftsOfTheDemonstration(t *testing.T) {
	plain, e := open(t, Options{}), open(t, Options{Draft: true})
	question := "Note: The tower of Lund was built in 1912 by Anna Berg. It has 14 bells.\n\nWho built the tower of Lund?"
	for _, p := range []sample.Params{{}, {Temperature: 0.3, TopP: 0.9, Seed: 3}} {
		req := Request{Tokens: ask(t, plain, question), MaxTokens: 80, Sampling: p}
		want, err := plain.Generate(t.Context(), plain.NewSequence(), req, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		got, err := e.Generate(t.Context(), e.NewSequence(), req, Listener{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got.Tokens, want.Tokens) || got.Finish != want.Finish {
			t.Errorf("%+v: %v, without drafts %v", p, got.Tokens, want.Tokens)
		}
	}
}

// TestPlanHasRoomForDrafts: a plan with drafts has what both lanes note of them.
func TestPlanHasRoomForDrafts(t *testing.T) {
	d := newDisks(t, "tiny-a")
	o := Options{Model: d.dir, Memory: 1 << 30, Threads: 1, PrefillRows: 20}
	without, err := PlanMemory(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	o.Draft = true
	with, err := PlanMemory(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	e := open(t, o)
	want := lanes * k3.DraftBytes(e.Info().Config, maxDraftRows)
	if got := with.State - without.State; got != want || with.Pass != without.Pass || with.Rows != 20 {
		t.Errorf("drafts are given %d bytes, they take %d; passes %d and %d", got, want, with.Pass, without.Pass)
	}
	if got := e.Info().Memory; got.State != with.State {
		t.Errorf("opened with %d bytes of state, planned were %d", got.State, with.State)
	}
}

// widest drafts all that is proposed.
type widest struct{ anyWidth }

func (widest) width(_, have int, _, _ time.Duration) int { return have }

// TestCopiesReadLess: an answer that copies its prompt reads at least 1.5 times as many
// bytes without drafts: what they gain on drives that are the bound.
func TestCopiesReadLess(t *testing.T) {
	for _, cache := range []int64{300_000, 1_000_000} {
		var read [2]int64
		for i := range read {
			e := open(t, Options{ExpertCache: cache, NoLookahead: true, Draft: i == 1})
			if i == 1 {
				e.drafts = widest{}
			}
			ids := ask(t, e, "The tall tower of Lund was built in 1912 by Anna Berg. It has 14 bells and 3 doors. Every year 2,000 people climb it.")
			var before, st Streaming
			req := Request{Tokens: ids, MaxTokens: 200, Stop: []int{}}
			script := slices.Repeat(ids, 3)
			_, err := e.answer(t.Context(), e.NewSequence(), req, Listener{Token: func(tok Token) error {
				if tok.Index == 0 {
					e.Streaming(&before)
				}
				return nil
			}}, func(a *answering) {
				a.pick = func(_ []float32, pos int) (int, error) { return script[pos-len(ids)], nil }
			})
			if err != nil {
				t.Fatal(err)
			}
			e.Streaming(&st)
			st.Sub(&before)
			read[i] = st.Drives.Total.Read
		}
		if gain := float64(read[0]) / float64(read[1]); gain < 1.5 {
			t.Errorf("cache of %d: %d bytes, without drafts %d: %.2f times as many", cache, read[1], read[0], gain)
		} else {
			t.Logf("cache of %d: %.2f times as many bytes without drafts", cache, gain)
		}
	}
}

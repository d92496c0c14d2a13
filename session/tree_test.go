package session

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestForkEditRegenerate(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	id, w := newThread(t, s)
	q1 := say(t, w, "first question")
	a1 := reply(t, w, 1, "hm ", "first ", "answer ", "here")
	say(t, w, "second question")
	a2 := reply(t, w, 1, "so ", "second")

	name := must[string](t)(s.Fork(ctx, id, a1, -1, ""))
	if name != "main-2" {
		t.Errorf("first fork is named %q", name)
	}
	say(t, w, "another way") // the new branch is the one used last
	branch, q1b, err := w.Edit(ctx, q1, NewTurn{Role: User, Text: "first question, better"}, "better")
	check(t, err)
	if branch != "better" {
		t.Errorf("edited on %q", branch)
	}
	re := must[*Answer](t)(w.Regenerate(ctx, a2, AnswerOptions{Seed: 2, Branch: "again"}))
	must[int](t)(re.Append(ctx, Token{ID: 9, Channel: InAnswer, Text: "differently"}))
	check(t, re.Finish(ctx, Outcome{Status: Done}))
	cut := must[string](t)(s.Fork(ctx, id, a1, 3, "cut"))

	th := must[*Thread](t)(s.Load(ctx, id, LoadOptions{Bodies: true}))
	want := map[string]string{ // reply makes the first half of its words thinking
		"main":   "first question|answer here|second question|second",
		"main-2": "first question|answer here|another way",
		"better": "first question, better",
		"again":  "first question|answer here|second question|differently",
		"cut":    "first question|answer ",
	}
	for _, b := range th.Branches {
		var texts []string
		for _, turn := range th.Path(b.Leaf) {
			texts = append(texts, turn.Body.Text)
		}
		if got := strings.Join(texts, "|"); got != want[b.Name] {
			t.Errorf("branch %s: %q, want %q", b.Name, got, want[b.Name])
		}
	}
	if len(th.Branches) != len(want) {
		t.Errorf("%d branches", len(th.Branches))
	}
	if th.Branch != cut {
		t.Errorf("used last: %q", th.Branch)
	}
	for turn, origin := range map[ID]Origin{q1b: {q1, 0}, re.Turn(): {a2, 0}, th.Path(th.Branches[4].Leaf)[1].ID: {a1, 3}} {
		if got := th.Turn(turn).Origin; got == nil || *got != origin {
			t.Errorf("origin of %s: %v, want %v", turn.Short(), got, origin)
		}
	}
	if tail := th.Turn(th.Branches[4].Leaf); tail.Status != Paused || tail.Parent != q1 || tail.Tokens != 3 || tail.Thinking != 2 {
		t.Errorf("cut answer: %+v", tail)
	}

	for name, err := range map[string]error{
		"fork at a used name":        second(s.Fork(ctx, id, a1, -1, "cut")),
		"fork inside a question":     second(s.Fork(ctx, id, q1, 0, "")),
		"fork beyond the end":        second(s.Fork(ctx, id, a1, 4, "")),
		"fork at an unknown turn":    second(s.Fork(ctx, id, 5, -1, "")),
		"the same seed again":        second(w.Regenerate(ctx, a2, AnswerOptions{Seed: 1})),
		"regenerating a question":    second(w.Regenerate(ctx, q1, AnswerOptions{Seed: 2})),
		"editing an answer":          third(w.Edit(ctx, a1, NewTurn{Role: User, Text: "x"}, "")),
		"continuing on no branch":    second(w.Begin(ctx, AnswerOptions{Branch: "nowhere"})),
		"prompt for an answer":       w.SetPrompt(ctx, a1, []int32{1}),
		"undoing on a missing one":   second(w.Undo(ctx, "nowhere")),
		"an answer through Append":   second(w.Append(ctx, "", NewTurn{Role: Assistant, Text: "x"})),
		"answering a paused answer":  second(w.Begin(ctx, AnswerOptions{Branch: "cut"})),
		"a branch that is not there": s.SetBranch(ctx, id, "nowhere"),
	} {
		if !errors.Is(err, ErrInvalid) && !errors.Is(err, ErrNotFound) && !errors.Is(err, ErrExists) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check(t, w.SetPrompt(ctx, q1, []int32{7, 8}))
	if err := w.SetPrompt(ctx, q1, []int32{7}); !errors.Is(err, ErrInvalid) {
		t.Errorf("a second prompt: %v", err)
	}
	sound(t, s)
}

func second[T any](_ T, err error) error      { return err }
func third[A, B any](_ A, _ B, e error) error { return e }

// A model is what the store should hold, in plain maps.
type model struct {
	turns    map[ID]*modelTurn
	branches map[string]*modelBranch
	used     string
}

type modelTurn struct {
	parent ID
	text   string
	status Status
	tokens int
}

type modelBranch struct{ leaf, tip ID }

func (m *model) children(id ID) (n int) {
	for _, t := range m.turns {
		if t.parent == id {
			n++
		}
	}
	return n
}

// TestTreeFollowsTheModel runs random operations on the store and on the model
// and compares all of both, closing and opening the store now and then.
func TestTreeFollowsTheModel(t *testing.T) {
	dir := t.TempDir()
	s := reopen(t, dir, nil)
	ctx := t.Context()
	info := must[ThreadInfo](t)(s.Create(ctx, "", ""))
	w := must[*Writer](t)(s.Lock(ctx, info.ID))
	m := &model{turns: map[ID]*modelTurn{}, branches: map[string]*modelBranch{MainBranch: {}}, used: MainBranch}
	r := rand.New(rand.NewPCG(7, 9))

	anyTurn := func(ok func(*modelTurn) bool) ID {
		var ids []ID
		for id, turn := range m.turns {
			if ok(turn) {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return 0
		}
		slices.Sort(ids) // maps are walked in no order; the run must repeat
		return ids[r.IntN(len(ids))]
	}
	anyBranch := func() string {
		names := make([]string, 0, len(m.branches))
		for name := range m.branches {
			names = append(names, name)
		}
		slices.Sort(names)
		return names[r.IntN(len(names))]
	}
	isAnswer := func(x *modelTurn) bool { return x.tokens > 0 }
	seed := uint64(0)
	write := func(a *Answer, turn *modelTurn) {
		for range 1 + r.IntN(4) {
			piece := fmt.Sprint("t", r.IntN(100), " ")
			must[int](t)(a.Append(ctx, Token{ID: int32(r.IntN(1000)), Channel: InAnswer, Text: piece}))
			turn.text += piece
			turn.tokens++
		}
		turn.status = []Status{Done, Paused, Interrupted, Failed}[r.IntN(4)]
		check(t, a.Finish(ctx, Outcome{Status: turn.status}))
	}
	steps := 250
	if *many {
		steps = 10000
	}
	for step := range steps {
		name := anyBranch()
		b := m.branches[name]
		fresh := fmt.Sprint("b", step)
		switch r.IntN(9) {
		case 0, 1: // ask
			text := fmt.Sprint("question ", step)
			id := must[ID](t)(w.Append(ctx, name, NewTurn{Role: User, Text: text}))
			if leaf := m.turns[b.leaf]; leaf != nil && leaf.status == Paused {
				leaf.status = Interrupted
			}
			m.turns[id] = &modelTurn{parent: b.leaf, text: text, status: Done}
			*b, m.used = modelBranch{id, id}, name
		case 2, 3: // answer
			if leaf := m.turns[b.leaf]; leaf != nil && leaf.status == Paused {
				continue
			}
			seed++
			a := must[*Answer](t)(w.Begin(ctx, AnswerOptions{Branch: name, Seed: seed}))
			turn := &modelTurn{parent: b.leaf}
			m.turns[a.Turn()] = turn
			write(a, turn)
			*b, m.used = modelBranch{a.Turn(), a.Turn()}, name
		case 4: // continue
			id := anyTurn(isAnswer)
			if id == 0 || m.children(id) > 0 {
				continue
			}
			write(must[*Answer](t)(w.Continue(ctx, id, AnswerOptions{Seed: seed})), m.turns[id])
		case 5: // fork, also inside
			id := anyTurn(func(*modelTurn) bool { return true })
			if id == 0 {
				continue
			}
			keep := -1
			if turn := m.turns[id]; turn.tokens > 0 && r.IntN(2) == 0 {
				keep = r.IntN(turn.tokens)
			}
			must[string](t)(s.Fork(ctx, info.ID, id, keep, fresh))
			m.used = fresh
			m.branches[fresh] = &modelBranch{id, id}
			if keep >= 0 {
				th := must[*Thread](t)(s.Load(ctx, info.ID, LoadOptions{}))
				leaf := must[Branch](t)(th.FindBranch(fresh)).Leaf
				text := strings.Join(strings.SplitAfter(m.turns[id].text, " ")[:keep], "")
				m.turns[leaf] = &modelTurn{parent: m.turns[id].parent, text: text, status: Paused, tokens: keep}
				m.branches[fresh] = &modelBranch{leaf, leaf}
			}
		case 6: // edit or regenerate
			id := anyTurn(func(*modelTurn) bool { return true })
			if id == 0 {
				continue
			}
			turn := &modelTurn{parent: m.turns[id].parent, status: Done, text: fmt.Sprint("edited ", step)}
			var added ID
			if isAnswer(m.turns[id]) {
				if p := m.turns[turn.parent]; p != nil && p.status == Paused {
					continue
				}
				turn.text = ""
				seed++
				a := must[*Answer](t)(w.Regenerate(ctx, id, AnswerOptions{Seed: seed, Branch: fresh}))
				write(a, turn)
				added = a.Turn()
			} else if th := must[*Thread](t)(s.Load(ctx, info.ID, LoadOptions{})); th.Turn(id).Role == User {
				var err error
				_, added, err = w.Edit(ctx, id, NewTurn{Role: User, Text: turn.text}, fresh)
				check(t, err)
			} else {
				continue // an answer cut to nothing
			}
			m.turns[added] = turn
			m.branches[fresh], m.used = &modelBranch{added, added}, fresh
		case 7: // undo
			if b.leaf == 0 {
				if _, err := w.Undo(ctx, name); !errors.Is(err, ErrInvalid) {
					t.Fatalf("undo on an empty branch: %v", err)
				}
				continue
			}
			got := must[ID](t)(w.Undo(ctx, name))
			b.leaf, m.used = m.turns[b.leaf].parent, name
			if got != b.leaf {
				t.Fatalf("undo gave %s, want %s", got, b.leaf)
			}
		case 8: // redo
			next := b.tip
			for next != b.leaf && m.turns[next].parent != b.leaf {
				next = m.turns[next].parent
			}
			if next == b.leaf {
				if _, err := w.Redo(ctx, name); !errors.Is(err, ErrInvalid) {
					t.Fatalf("redo with nothing undone: %v", err)
				}
				continue
			}
			if got := must[ID](t)(w.Redo(ctx, name)); got != next {
				t.Fatalf("redo gave %s, want %s", got, next)
			}
			b.leaf, m.used = next, name
		}
		if step%25 == 24 {
			check(t, w.Close())
			check(t, s.Close())
			s = reopen(t, dir, nil)
			w = must[*Writer](t)(s.Lock(ctx, info.ID))
			if w.Recovered() != nil {
				t.Fatalf("step %d: %v", step, w.Recovered())
			}
			m.compare(t, must[*Thread](t)(s.Load(ctx, info.ID, LoadOptions{Bodies: true})))
		}
	}
	m.compare(t, must[*Thread](t)(s.Load(ctx, info.ID, LoadOptions{Bodies: true})))
	sound(t, s)
	check(t, w.Close())
}

func (m *model) compare(t *testing.T, th *Thread) {
	t.Helper()
	tokens := 0
	for _, got := range th.Turns {
		want := m.turns[got.ID]
		if want == nil {
			t.Fatalf("turn %s is not in the model", got.ID)
		}
		tokens += want.tokens
		if got.Parent != want.parent || got.Body.Text != want.text || got.Status != want.status || got.Tokens != want.tokens {
			t.Fatalf("turn %s: parent %s text %q status %s tokens %d\nmodel: %+v", got.ID, got.Parent, got.Body.Text, got.Status, got.Tokens, *want)
		}
	}
	for _, got := range th.Branches {
		want := m.branches[got.Name]
		if want == nil || got.Leaf != want.leaf || got.Tip != want.tip {
			t.Fatalf("branch %+v, model %+v", got, want)
		}
	}
	if len(th.Turns) != len(m.turns) || len(th.Branches) != len(m.branches) || th.Branch != m.used {
		t.Fatalf("%d turns, %d branches, used %q; model %d, %d, %q", len(th.Turns), len(th.Branches), th.Branch, len(m.turns), len(m.branches), m.used)
	}
	if th.TurnCount != len(m.turns) || th.BranchCount != len(m.branches) || th.Tokens != tokens {
		t.Fatalf("counts %d %d %d, model %d %d %d", th.TurnCount, th.BranchCount, th.Tokens, len(m.turns), len(m.branches), tokens)
	}
}

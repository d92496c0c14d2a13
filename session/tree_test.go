package session

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
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
	role   Role
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

// A walk does random operations on a store and on the model.
type walk struct {
	t      *testing.T
	dir    string
	s      *Store
	w      *Writer
	thread ID
	m      *model
	r      *rand.Rand
	step   int
	seed   uint64
}

func (x *walk) open() {
	var err error
	x.s = reopen(x.t, x.dir, nil)
	if x.thread == 0 {
		x.thread = must[ThreadInfo](x.t)(x.s.Create(x.t.Context(), "", "")).ID
	}
	x.w, err = x.s.Lock(x.t.Context(), x.thread)
	check(x.t, err)
	if x.w.Recovered() != nil {
		x.t.Fatalf("step %d: %v", x.step, x.w.Recovered())
	}
}

func (x *walk) close() {
	check(x.t, x.w.Close())
	check(x.t, x.s.Close())
}

func (x *walk) load() *Thread {
	return must[*Thread](x.t)(x.s.Load(x.t.Context(), x.thread, LoadOptions{Bodies: true}))
}

// anyTurn picks a turn that fits, zero if none does. Maps are walked in no
// order, so the choice is made from sorted keys: the run must repeat.
func (x *walk) anyTurn(fits func(ID, *modelTurn) bool) ID {
	var ids []ID
	for id, turn := range x.m.turns {
		if fits(id, turn) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return 0
	}
	// Ids are random, the texts are not: order by what repeats.
	slices.SortFunc(ids, func(a, b ID) int {
		return cmp.Or(cmp.Compare(x.m.turns[a].text, x.m.turns[b].text), cmp.Compare(a, b))
	})
	return ids[x.r.IntN(len(ids))]
}

func (x *walk) anyBranch() (string, *modelBranch) {
	names := slices.Sorted(maps.Keys(x.m.branches))
	name := names[x.r.IntN(len(names))]
	return name, x.m.branches[name]
}

func (x *walk) pausedAt(id ID) bool {
	turn := x.m.turns[id]
	return turn != nil && turn.status == Paused
}

// write adds a few tokens to an answer and ends it somehow.
func (x *walk) write(a *Answer, turn *modelTurn) {
	for range 1 + x.r.IntN(4) {
		piece := fmt.Sprint("t", x.r.IntN(100), " ")
		must[int](x.t)(a.Append(x.t.Context(), Token{ID: int32(x.r.IntN(1000)), Channel: InAnswer, Text: piece}))
		turn.text += piece
		turn.tokens++
	}
	turn.status = []Status{Done, Paused, Interrupted, Failed}[x.r.IntN(4)]
	check(x.t, a.Finish(x.t.Context(), Outcome{Status: turn.status}))
}

func (x *walk) ask() {
	name, b := x.anyBranch()
	text := fmt.Sprint("question ", x.step)
	id := must[ID](x.t)(x.w.Append(x.t.Context(), name, NewTurn{Role: User, Text: text}))
	if x.pausedAt(b.leaf) {
		x.m.turns[b.leaf].status = Interrupted
	}
	x.m.turns[id] = &modelTurn{parent: b.leaf, role: User, text: text, status: Done}
	*b, x.m.used = modelBranch{id, id}, name
}

func (x *walk) answer() {
	name, b := x.anyBranch()
	x.seed++
	a, err := x.w.Begin(x.t.Context(), AnswerOptions{Branch: name, Seed: x.seed})
	if x.pausedAt(b.leaf) {
		if !errors.Is(err, ErrInvalid) {
			x.t.Fatalf("an answer after a paused one: %v", err)
		}
		return
	}
	check(x.t, err)
	turn := &modelTurn{parent: b.leaf, role: Assistant}
	x.m.turns[a.Turn()] = turn
	x.write(a, turn)
	*b, x.m.used = modelBranch{a.Turn(), a.Turn()}, name
}

func (x *walk) goOn() {
	id := x.anyTurn(func(id ID, turn *modelTurn) bool { return turn.role == Assistant && x.m.children(id) == 0 })
	if id != 0 {
		x.write(must[*Answer](x.t)(x.w.Continue(x.t.Context(), id, AnswerOptions{Seed: x.seed})), x.m.turns[id])
	}
}

func (x *walk) fork() {
	id := x.anyTurn(func(ID, *modelTurn) bool { return true })
	if id == 0 {
		return
	}
	keep, name := -1, fmt.Sprint("b", x.step)
	turn := x.m.turns[id]
	if turn.tokens > 0 && x.r.IntN(2) == 0 {
		keep = x.r.IntN(turn.tokens)
	}
	must[string](x.t)(x.s.Fork(x.t.Context(), x.thread, id, keep, name))
	if keep >= 0 {
		id = must[Branch](x.t)(x.load().FindBranch(name)).Leaf
		text := strings.Join(strings.SplitAfter(turn.text, " ")[:keep], "")
		x.m.turns[id] = &modelTurn{parent: turn.parent, role: Assistant, text: text, status: Paused, tokens: keep}
	}
	x.m.branches[name], x.m.used = &modelBranch{id, id}, name
}

// change edits a question or regenerates an answer.
func (x *walk) change() {
	id := x.anyTurn(func(_ ID, turn *modelTurn) bool { return turn.role == User || !x.pausedAt(turn.parent) })
	if id == 0 {
		return
	}
	old, name := x.m.turns[id], fmt.Sprint("b", x.step)
	turn := &modelTurn{parent: old.parent, role: old.role, status: Done}
	if old.role == Assistant {
		x.seed++
		a := must[*Answer](x.t)(x.w.Regenerate(x.t.Context(), id, AnswerOptions{Seed: x.seed, Branch: name}))
		x.write(a, turn)
		id = a.Turn()
	} else {
		var err error
		turn.text = fmt.Sprint("edited ", x.step)
		_, id, err = x.w.Edit(x.t.Context(), id, NewTurn{Role: User, Text: turn.text}, name)
		check(x.t, err)
	}
	x.m.turns[id] = turn
	x.m.branches[name], x.m.used = &modelBranch{id, id}, name
}

func (x *walk) undo() {
	name, b := x.anyBranch()
	got, err := x.w.Undo(x.t.Context(), name)
	if b.leaf == 0 {
		if !errors.Is(err, ErrInvalid) {
			x.t.Fatalf("undo on an empty branch: %v", err)
		}
		return
	}
	check(x.t, err)
	b.leaf, x.m.used = x.m.turns[b.leaf].parent, name
	if got != b.leaf {
		x.t.Fatalf("undo gave %s, want %s", got, b.leaf)
	}
}

func (x *walk) redo() {
	name, b := x.anyBranch()
	next := b.tip
	for next != b.leaf && x.m.turns[next].parent != b.leaf {
		next = x.m.turns[next].parent
	}
	got, err := x.w.Redo(x.t.Context(), name)
	if next == b.leaf {
		if !errors.Is(err, ErrInvalid) {
			x.t.Fatalf("redo with nothing undone: %v", err)
		}
		return
	}
	check(x.t, err)
	b.leaf, x.m.used = next, name
	if got != next {
		x.t.Fatalf("redo gave %s, want %s", got, next)
	}
}

// TestTreeFollowsTheModel runs random operations on the store and on the model
// and compares all of both, closing and opening the store now and then.
func TestTreeFollowsTheModel(t *testing.T) {
	x := &walk{
		t: t, dir: t.TempDir(), r: rand.New(rand.NewPCG(7, 9)),
		m: &model{turns: map[ID]*modelTurn{}, branches: map[string]*modelBranch{MainBranch: {}}, used: MainBranch},
	}
	x.open()
	ops := []func(){x.ask, x.ask, x.answer, x.answer, x.goOn, x.fork, x.change, x.undo, x.redo}
	for x.step = range rounds(75, 250, 3000) {
		ops[x.r.IntN(len(ops))]()
		if x.step%25 == 24 {
			x.close()
			x.open()
			x.m.compare(t, x.load())
		}
	}
	x.m.compare(t, x.load())
	sound(t, x.s)
	x.close()
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

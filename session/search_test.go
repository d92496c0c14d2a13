package session

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestSearch(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	id1, w := newThread(t, s)
	q := say(t, w, "Compare the dating methods for the ice core")
	a := reply(t, w, 1,
		"The tephra ties look weak here. ", "Is Schichtzählung exact? ",
		"Layer counting is exact\nonly while ANNUAL layers stay thick; ", "below that it drifts.\n年层计数只有在厚的时候才是准确的。")
	check(t, w.Close())
	id2, w := newThread(t, s)
	q2 := say(t, w, "Does annual income layer taxes?")

	type want struct {
		turn ID
		line string
		mark string
	}
	for query, hits := range map[string][]want{
		"tephra":             {{a, "The tephra ties look weak here. Is Schichtzählung exact? ", "tephra"}},
		"annual layers":      {{a, "only while ANNUAL layers stay thick; below that it drifts.", "ANNUAL"}},
		`"annual layers"`:    {{a, "only while ANNUAL layers stay thick; below that it drifts.", "ANNUAL layers"}},
		`"exact only"`:       {{a, "Layer counting is exact\nonly while ANNUAL layers stay thick; below that it drifts.", "exact\nonly"}},
		`"layers annual"`:    nil,
		"annual layer":       {{0, "Does annual income layer taxes?", "annual"}, {q2, "Does annual income layer taxes?", "annual"}, {a, "only while ANNUAL layers stay thick; below that it drifts.", "ANNUAL"}},
		"annual layer ":      {{0, "Does annual income layer taxes?", "annual"}, {q2, "Does annual income layer taxes?", "annual"}, {a, "only while ANNUAL layers stay thick; below that it drifts.", "ANNUAL"}},
		"Schichtzahlung ":    {{a, "", ""}},
		"SCHICHTZÄHL":        {{a, "The tephra ties look weak here. Is Schichtzählung exact? ", "Schichtzähl"}},
		"准确":                 {{a, "年层计数只有在厚的时候才是准确的。", "准确"}},
		"确准":                 nil,
		"计数只有":               {{a, "年层计数只有在厚的时候才是准确的。", "计数只有"}},
		"core)* OR \"x":      nil,
		`NEAR(ice core)`:     nil,
		"ice-core":           {{0, "Compare the dating methods for the ice core", "ice core"}, {q, "Compare the dating methods for the ice core", "ice core"}},
		"tephra taxes":       nil,
		"tephra thick":       {{a, "The tephra ties look weak here. Is Schichtzählung exact? ", "tephra"}},
		"compare dating met": {{0, "Compare the dating methods for the ice core", "Compare"}, {q, "Compare the dating methods for the ice core", "Compare"}},
		"":                   nil,
		"?!":                 nil,
	} {
		got, err := s.Search(ctx, query, SearchOptions{})
		check(t, err)
		if len(got) != len(hits) {
			t.Errorf("%q: %d hits %+v, want %d", query, len(got), got, len(hits))
			continue
		}
		for i, h := range got {
			mark := h.Line[h.From:h.To]
			if h.Turn != hits[i].turn || mark != hits[i].mark || hits[i].line != "" && h.Line != hits[i].line {
				t.Errorf("%q hit %d: turn %s, line %q, mark %q\nwant %s %q %q", query, i, h.Turn, h.Line, mark, hits[i].turn, hits[i].line, hits[i].mark)
			}
		}
	}
	searchFollows(t, s, w, id1, id2, q2)
}

// searchFollows: narrowed searches, answers being written, the trash.
func searchFollows(t *testing.T, s *Store, w *Writer, id1, id2, q2 ID) {
	ctx := t.Context()
	if got := must[[]Hit](t)(s.Search(ctx, "tephra", SearchOptions{})); !got[0].Reasoning || got[0].Offset != 4 || got[0].Thread != id1 {
		t.Errorf("%+v", got)
	}
	if got := must[[]Hit](t)(s.Search(ctx, "annual", SearchOptions{Thread: id2})); len(got) != 2 || got[0].Thread != id2 || got[1].Turn != q2 {
		t.Errorf("in one thread: %+v", got)
	}
	if got := must[[]Hit](t)(s.Search(ctx, "annual", SearchOptions{Limit: 1})); len(got) != 1 {
		t.Errorf("limited: %+v", got)
	}
	// What is still being written is found too, once.
	open := must[*Answer](t)(w.Begin(ctx, AnswerOptions{}))
	must[int](t)(open.Append(ctx, Token{ID: 1, Channel: InAnswer, Text: "glacier zebra"}))
	must[int](t)(open.Sync(ctx))
	if got := must[[]Hit](t)(s.Search(ctx, "zebra", SearchOptions{})); len(got) != 1 || got[0].Turn != open.Turn() {
		t.Errorf("an open answer: %+v", got)
	}
	check(t, open.Finish(ctx, Outcome{Status: Paused}))
	open = must[*Answer](t)(w.Continue(ctx, open.Turn(), AnswerOptions{}))
	must[int](t)(open.Append(ctx, Token{ID: 1, Channel: InAnswer, Text: " zebra again"}))
	must[int](t)(open.Sync(ctx))
	if got := must[[]Hit](t)(s.Search(ctx, "zebra", SearchOptions{})); len(got) != 1 {
		t.Errorf("a continued answer: %+v", got)
	}
	check(t, open.Finish(ctx, Outcome{Status: Done}))
	check(t, w.Close())
	// The trash is left out; so is what GC removed, and it leaves no word behind.
	check(t, s.Trash(ctx, id2))
	if got := must[[]Hit](t)(s.Search(ctx, "zebra", SearchOptions{})); len(got) != 0 {
		t.Errorf("in the trash: %+v", got)
	}
	must[Garbage](t)(s.GC(ctx, false, func(string) error { return nil }))
	n := int64(-1)
	check(t, s.view(ctx, "test", func(c *conn) (err error) {
		n, err = c.number(`SELECT count(*) FROM words WHERE words MATCH 'zebra OR taxes'`)
		return err
	}))
	if n != 0 {
		t.Errorf("%d rows of the index outlive their thread", n)
	}
	check(t, s.RebuildIndex(ctx))
	if got := must[[]Hit](t)(s.Search(ctx, "准确", SearchOptions{})); len(got) != 1 {
		t.Errorf("after building the index anew: %+v", got)
	}
	sound(t, s)
}

func TestRenamingMovesTheTitlesWords(t *testing.T) {
	s := newStore(t, nil)
	id, _ := newThread(t, s)
	check(t, s.Rename(t.Context(), id, "Old glacier"))
	check(t, s.Rename(t.Context(), id, "New moraine"))
	if got := must[[]Hit](t)(s.Search(t.Context(), "glacier", SearchOptions{})); len(got) != 0 {
		t.Errorf("%+v", got)
	}
	if got := must[[]Hit](t)(s.Search(t.Context(), "moraine", SearchOptions{})); len(got) != 1 || got[0].Turn != 0 {
		t.Errorf("%+v", got)
	}
}

// TestSearchFindsWhatAScanFinds compares with looking at every text.
func TestSearchFindsWhatAScanFinds(t *testing.T) {
	s := newStore(t, nil)
	ctx := t.Context()
	id, w := newThread(t, s)
	check(t, s.Rename(ctx, id, "-"))
	r := rand.New(rand.NewPCG(1, 1))
	vocabulary := []string{"ice", "Ice", "core", "层", "计数", "layer", "layers", "über", "x1", "co-re"}
	all := map[ID]string{}
	for range 120 {
		var text []string
		for range 1 + r.IntN(6) {
			text = append(text, vocabulary[r.IntN(len(vocabulary))])
		}
		line := strings.Join(text, []string{" ", ", ", "\n"}[r.IntN(3)])
		all[say(t, w, line)] = line
	}
	for range 200 {
		var words []string
		for range 1 + r.IntN(2) {
			words = append(words, vocabulary[r.IntN(len(vocabulary))])
		}
		query := strings.Join(words, " ") + " "
		if r.IntN(3) == 0 {
			query = `"` + strings.TrimSpace(query) + `"`
		}
		want := map[ID]bool{}
	scan:
		for id, text := range all {
			for _, term := range parseQuery(query) {
				if _, _, ok := term.find(text); !ok {
					continue scan
				}
			}
			want[id] = true
		}
		hits := must[[]Hit](t)(s.Search(ctx, query, SearchOptions{Limit: 1000}))
		got := map[ID]bool{}
		for _, h := range hits {
			got[h.Turn] = true
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: %d hits, a scan finds %d", query, len(got), len(want))
		}
	}
}

func TestLongLinesAreCut(t *testing.T) {
	text := strings.Repeat("词 foo bar ", 400) + "needle" + strings.Repeat(" 尾 baz", 400)
	from := strings.Index(text, "needle")
	var h Hit
	line := cutLine(text, from, from+6, &h)
	if line[h.From:h.To] != "needle" || len(line) > 2*around+20 || !strings.HasPrefix(line, "...") || !strings.HasSuffix(line, "...") || strings.ToValidUTF8(line, "") != line {
		t.Errorf("%q [%d,%d)", line, h.From, h.To)
	}
}

func FuzzQuery(f *testing.F) {
	for _, q := range []string{`a "b c" d`, `"`, `x*`, "年层", "a\x00b", "\xff", `NOT AND ^`, "é̀", `"a""b`} {
		f.Add(q)
	}
	s := newStore(f, nil)
	info := must[ThreadInfo](f)(s.Create(f.Context(), `a b c d NOT AND 年层 x1 éa`, ""))
	f.Fuzz(func(t *testing.T, q string) {
		hits, err := s.Search(t.Context(), q, SearchOptions{})
		if err != nil {
			t.Fatalf("%q: %v", q, err)
		}
		for _, h := range hits {
			if h.Thread != info.ID || h.From > h.To || h.To > len(h.Line) {
				t.Fatalf("%q: %+v", q, h)
			}
		}
	})
}

package engine

import (
	"fmt"
	"slices"
	"sync"
	"testing"
)

// TestTwoAtOnce: two sequences that take turns over one set of drives and one cache
// give the text they give alone, whatever the size of the cache.
func TestTwoAtOnce(t *testing.T) {
	for _, name := range []string{"tiny-a", "tiny-c"} {
		d := newDisks(t, name)
		prompts := [][]int{d.ids[:7], d.ids[3:]}
		text := func(e *Engine, ids []int) ([]int, error) {
			res, err := e.Generate(t.Context(), e.NewSequence(), Request{Tokens: ids, MaxTokens: 25, Stop: []int{}}, Listener{})
			return res.Tokens, err
		}
		var want [][]int
		alone := open(t, Options{Model: d.dir})
		for _, p := range prompts {
			ids, err := text(alone, p)
			if err != nil {
				t.Fatal(err)
			}
			want = append(want, ids)
		}
		for _, slots := range []int{d.topK + 2, d.topK + 6, 2000} {
			for _, blind := range []bool{false, true} {
				e := open(t, Options{
					Model: d.dir, ExpertCache: int64(slots) * d.slot, NoLookahead: blind,
					Drives: with([]string{d.dir}, ",latency=50us,jitter=300us"),
				})
				var group sync.WaitGroup
				got, errs := make([][]int, 6), make([]error, 6)
				for i := range got {
					group.Add(1)
					go func() {
						defer group.Done()
						got[i], errs[i] = text(e, prompts[i%2])
					}()
				}
				group.Wait()
				for i := range got {
					what := fmt.Sprintf("%s/%d slots/blind %v/call %d", name, slots, blind, i)
					if errs[i] != nil {
						t.Fatalf("%s: %v", what, errs[i])
					}
					if !slices.Equal(got[i], want[i%2]) {
						t.Errorf("%s: %v, alone %v", what, got[i], want[i%2])
					}
				}
			}
		}
	}
}

// TestPromptsShareAPass: sequences that are read together end as those read alone,
// and the experts that they share are read once.
func TestPromptsShareAPass(t *testing.T) {
	d := newDisks(t, "tiny-a")
	long := slices.Concat(d.ids, d.ids, d.ids)
	texts := [][]int{long[:9], long[2:30], long[5:6], long[1:17]}
	o := Options{Model: d.dir, ExpertCache: int64(d.topK+4) * d.slot, NoLookahead: true}
	alone := open(t, Options{Model: d.dir})
	for _, rows := range []int{1, 8, 512} {
		o.PrefillRows = rows
		e := open(t, o)
		prompts := make([]Prompt, len(texts))
		for i, ids := range texts {
			prompts[i] = Prompt{e.NewSequence(), ids}
		}
		// One of them has seen a part already.
		if _, err := e.Generate(t.Context(), prompts[1].Sequence, Request{Tokens: texts[1][:4]}, Listener{}); err != nil {
			t.Fatal(err)
		}
		var before, st Streaming
		e.Streaming(&before)
		var last Progress
		res, err := e.Prefill(t.Context(), prompts, Listener{Prefill: func(p Progress) { last = p }})
		if err != nil {
			t.Fatal(err)
		}
		e.Streaming(&st)
		st.Sub(&before)
		if want := 9 + 28 + 1 + 16; last.Tokens != want || last.Done != want || last.Reused != 4 || res.Prefilled != want-4 {
			t.Errorf("rows of %d: %+v, %+v, want %d tokens of which 4 were seen", rows, last, res, want)
		}
		if last.Bytes == 0 || last.Bytes != st.Drives.Total.Read {
			t.Errorf("rows of %d: progress says %d bytes were read, the drives %d", rows, last.Bytes, st.Drives.Total.Read)
		}
		if rows == 512 && st.Experts.Total.Missed > int64(d.cat.Experts()) {
			t.Errorf("%d experts were read in one pass over a model of %d", st.Experts.Total.Missed, d.cat.Experts())
		}
		for i, p := range prompts {
			other := alone.NewSequence()
			if _, err := alone.Generate(t.Context(), other, Request{Tokens: texts[i]}, Listener{}); err != nil {
				t.Fatal(err)
			}
			sameLogits(t, fmt.Sprintf("rows of %d, prompt %d", rows, i), p.Sequence.logits, other.logits)
			if !slices.Equal(p.Sequence.Tokens(), texts[i]) {
				t.Errorf("rows of %d, prompt %d: %v was seen", rows, i, p.Sequence.Tokens())
			}
		}
	}
}

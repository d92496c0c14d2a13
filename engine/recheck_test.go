package engine

import (
	"errors"
	"slices"
	"testing"

	"deltafin/engine/expert"
	"deltafin/engine/sample"
)

// TestMemoryThatChanges: weights that change in memory after they were read end the
// answer with an error that counts them, and the same call again reads them anew and
// goes on to the same text.
func TestMemoryThatChanges(t *testing.T) {
	d := newDisks(t, "tiny-a")
	const tokens = 12
	req := Request{Tokens: d.ids, MaxTokens: tokens, Stop: []int{}}
	mapped := open(t, Options{Model: d.dir})
	res, err := mapped.Generate(t.Context(), mapped.NewSequence(), req, Listener{})
	if err != nil {
		t.Fatal(err)
	}
	want := res.Tokens

	var notices []Notice
	e := open(t, Options{Model: d.dir, Threads: 2, ExpertCache: 1 << 30, TrunkMemory: trunkOf(t, d.dir).Total(), Notify: func(n Notice) { notices = append(notices, n) }})
	seq := e.NewSequence()
	damaged := 0
	half := req
	half.MaxTokens = tokens / 2
	if res, err = e.Generate(t.Context(), seq, half, Listener{}); err != nil {
		t.Fatal(err)
	}
	ids := append(slices.Clone(d.ids), res.Tokens...)

	// Every expert of a layer turns into bytes that no weight has: scales of NaN.
	turn, layer := e.stream.store.NewTurn(nil), 3
	var all []expert.Want
	for x := range mapped.model.Config().Experts {
		all = append(all, expert.Want{Expert: int32(x), Rows: 1})
	}
	if err := turn.Begin(t.Context(), layer, all); err != nil {
		t.Fatal(err)
	}
	for range all {
		i, data, ok, err := turn.Next(true)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		for k := range data {
			data[k] = 0xFF
		}
		damaged++
		turn.Done(i)
	}
	turn.End()

	// A matrix of the trunk changes too.
	const weight = "model.layers.2.self_attn.o_proj.weight"
	w, err := e.stream.trunk.Matrix(2, weight)
	if err != nil {
		t.Fatal(err)
	}
	w.Data[len(w.Data)-1] ^= 0x40

	rest := Request{Tokens: ids, MaxTokens: tokens - len(res.Tokens), Stop: []int{}}
	res, err = e.Generate(t.Context(), seq, rest, Listener{})
	var changed *MemoryError
	if !errors.As(err, &changed) || !errors.Is(err, sample.ErrNotNumbers) {
		t.Fatalf("%v, want a MemoryError", err)
	}
	if len(changed.Experts) != damaged || int(changed.Experts[0].Layer) != layer {
		t.Errorf("%d experts changed, of layer %d; want %d of layer %d", len(changed.Experts), changed.Experts[0].Layer, damaged, layer)
	}
	if !slices.Equal(changed.Trunk, []int{2}) {
		t.Errorf("the trunk of layers %v changed, want 2", changed.Trunk)
	}
	if seq.Whole() || len(notices) != 1 {
		t.Errorf("whole %v, notices %v", seq.Whole(), notices)
	}
	ids = append(ids, res.Tokens...)
	rest = Request{Tokens: ids, MaxTokens: tokens - (len(ids) - len(d.ids)), Stop: []int{}}
	if res, err = e.Generate(t.Context(), seq, rest, Listener{}); err != nil {
		t.Fatalf("again: %v", err)
	}
	if res.Reused != 0 {
		t.Errorf("%d tokens of a state that is not to be trusted were reused", res.Reused)
	}
	if got := append(ids[len(d.ids):], res.Tokens...); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

package session

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// randomTokens makes n tokens in runs of channels, with pieces that cut
// characters in half now and then.
func randomTokens(r *rand.Rand, n int) []Token {
	const text = "Schichtzählung ist 准确的 only while annual layers — 🧊 — stay thick; "
	var toks []Token
	ch := Channel(r.IntN(3))
	for range n {
		if r.IntN(9) == 0 {
			ch = Channel(r.IntN(3))
		}
		t := Token{ID: int32(r.IntN(163840)), Channel: ch}
		if ch != InMarkup {
			at := r.IntN(len(text))
			t.Text = text[at:min(len(text), at+r.IntN(7))]
			if r.IntN(40) == 0 {
				t.Text = strings.Repeat("=", 10+r.IntN(400)) // longer than a half byte holds
			}
		}
		toks = append(toks, t)
	}
	return toks
}

func TestPackedTokensComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		want := randomTokens(r, n)
		text, reasoning := textsOf(want)
		ids, lens := packTokens(want)
		got, err := unpackTokens(ids, lens, text, reasoning)
		if err != nil || len(got) != len(want) || n > 0 && !reflect.DeepEqual(got, want) {
			t.Fatalf("%d tokens: %v", n, err)
		}
	}
}

func TestPackedTokensAreSmall(t *testing.T) {
	// Ids as a byte-pair vocabulary gives them: mostly two or three bytes.
	r := rand.New(rand.NewPCG(3, 4))
	var toks []Token
	for range 10000 {
		toks = append(toks, Token{ID: int32(r.IntN(40000)), Channel: InAnswer, Text: "word "[:2+r.IntN(4)]})
	}
	ids, lens := packTokens(toks)
	if per := float64(len(ids)+len(lens)) / 10000; per > 3.2 {
		t.Errorf("%.2f bytes a token beside the text, want at most 3.2", per)
	}
}

func FuzzUnpackTokens(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{0, 1, 2, 33} {
		toks := randomTokens(r, n)
		text, reasoning := textsOf(toks)
		ids, lens := packTokens(toks)
		f.Add(ids, lens, text, reasoning)
	}
	f.Add([]byte{1}, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, "a", "")
	f.Fuzz(func(t *testing.T, ids, lens []byte, text, reasoning string) {
		toks, err := unpackTokens(ids, lens, text, reasoning)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v is not an ErrCorrupt", err)
			}
			return
		}
		// What was accepted must pack to something that reads the same.
		ids2, lens2 := packTokens(toks)
		again, err := unpackTokens(ids2, lens2, text, reasoning)
		if err != nil || !reflect.DeepEqual(toks, again) {
			t.Fatalf("accepted tokens do not come back: %v", err)
		}
	})
}

func TestSumSeesEveryChange(t *testing.T) {
	base := &Body{Text: "ab", Tokens: []Token{{1, InAnswer, "a"}, {2, InAnswer, "b"}, {7, InMarkup, ""}}}
	place := turnRow{id: 1, thread: 2, parent: 3, role: Assistant}
	want := bodySum(place, base)
	for name, b := range map[string]*Body{
		"id":      {Text: "ab", Tokens: []Token{{1, InAnswer, "a"}, {3, InAnswer, "b"}, {7, InMarkup, ""}}},
		"order":   {Text: "ab", Tokens: []Token{{2, InAnswer, "b"}, {1, InAnswer, "a"}, {7, InMarkup, ""}}},
		"channel": {Text: "ab", Tokens: []Token{{1, InAnswer, "a"}, {2, InThinking, "b"}, {7, InMarkup, ""}}},
		"cut":     {Text: "ab", Tokens: []Token{{1, InAnswer, "a"}, {2, InAnswer, "b"}}},
		"border":  {Text: "ab", Tokens: []Token{{1, InAnswer, "ab"}, {2, InAnswer, ""}, {7, InMarkup, ""}}},
		"text":    {Text: "aB", Tokens: base.Tokens},
	} {
		if bodySum(place, b) == want {
			t.Errorf("a changed %s has the same sum", name)
		}
	}
	for name, other := range map[string]turnRow{
		"id":     {id: 9, thread: 2, parent: 3, role: Assistant},
		"thread": {id: 1, thread: 9, parent: 3, role: Assistant},
		"parent": {id: 1, thread: 2, parent: 9, role: Assistant},
		"role":   {id: 1, thread: 2, parent: 3, role: User},
	} {
		if bodySum(other, base) == want {
			t.Errorf("a changed %s has the same sum", name)
		}
	}
}

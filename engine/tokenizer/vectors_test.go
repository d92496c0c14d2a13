package tokenizer

import (
	"errors"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// vectors is the part of kimi-k3-testvectors.json that is about ids.
type vectors struct {
	Specials map[string]string `json:"specials_named"`
	Ordinary []struct {
		Text string `json:"text"`
		IDs  []int  `json:"ids"`
	} `json:"ordinary"`
	Special []struct {
		Text    string `json:"text"`
		Allowed bool   `json:"specials_allowed"`
		IDs     []int  `json:"ids"`
		Decode  []int  `json:"decode_ids"`
		Error   bool   `json:"error"`
	} `json:"special_handling"`
	Long []struct {
		Text string `json:"text"`
		N    int    `json:"n_ids"`
		Hash string `json:"token_fnv1a64"`
	} `json:"long_inputs"`
	Boundary struct {
		Fragments  []string `json:"fragments"`
		NotAllowed corpus   `json:"specials_not_allowed"`
		Allowed    corpus   `json:"specials_allowed"`
	} `json:"boundary_corpus"`
	Pieces struct {
		Cases [][2]any `json:"cases"`
	} `json:"pretokenizer_pieces"`
}

type corpus struct {
	Total int    `json:"total_ids"`
	Hash  string `json:"fnv1a64"`
}

func loadVectors(t *testing.T) vectors {
	t.Helper()
	var v vectors
	readJSON(t, os.DirFS(sharedDir(t, "spec")), "kimi-k3-testvectors.json", &v)
	return v
}

// fnv is FNV-1a 64 over the four little-endian bytes of each number.
type fnv uint64

func newFNV() fnv { return 0xcbf29ce484222325 }

func (h *fnv) add(v int) {
	for range 4 {
		*h = (*h ^ fnv(v&0xff)) * 0x100000001b3
		v >>= 8
	}
}

func (h fnv) String() string {
	s := strconv.FormatUint(uint64(h), 16)
	return strings.Repeat("0", 16-len(s)) + s
}

func TestOfficialNames(t *testing.T) {
	tok, v := k3(t), loadVectors(t)
	if tok.Base() != 163584 || tok.Vocab() != k3Vocab {
		t.Fatalf("base %d, vocabulary %d", tok.Base(), tok.Vocab())
	}
	named := 0
	for id := tok.Base(); id < tok.Vocab(); id++ {
		want, ok := v.Specials[strconv.Itoa(id)]
		if ok {
			named++
		} else {
			want = "<|reserved_token_" + strconv.Itoa(id) + "|>"
		}
		if got, _ := tok.Bytes(id); string(got) != want {
			t.Errorf("id %d is %q, want %q", id, got, want)
		}
		if got, ok := tok.Special(want); !ok || got != id {
			t.Errorf("%q is id %d, want %d", want, got, id)
		}
		if !tok.IsSpecial(id) {
			t.Errorf("id %d is not special", id)
		}
	}
	if named != 16 {
		t.Errorf("%d names in the vectors, want 16", named)
	}
	if tok.IsSpecial(tok.Base()-1) || tok.IsSpecial(tok.Vocab()) {
		t.Error("ids outside the special range count as special")
	}
}

func TestOfficialOrdinary(t *testing.T) {
	tok := k3(t)
	for _, c := range loadVectors(t).Ordinary {
		if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: %v, want %v", c.Text, got, c.IDs)
		}
		if got, err := tok.Decode(c.IDs); err != nil || got != c.Text {
			t.Errorf("%v decodes to %q (%v), want %q", c.IDs, got, err, c.Text)
		}
	}
}

func TestOfficialSpecials(t *testing.T) {
	tok := k3(t)
	for _, c := range loadVectors(t).Special {
		switch {
		case c.Error:
			_, err := tok.Decode(c.Decode)
			var bad *IDError
			if !errors.As(err, &bad) || bad.ID != c.Decode[0] || bad.Vocab != k3Vocab {
				t.Errorf("decoding %v: error %v", c.Decode, err)
			}
		case c.Decode != nil:
			if got, err := tok.Decode(c.Decode); err != nil || got != c.Text {
				t.Errorf("%v decodes to %q (%v), want %q", c.Decode, got, err, c.Text)
			}
		default:
			encode := tok.Encode
			if c.Allowed {
				encode = tok.EncodeSpecial
			}
			if got := encode(c.Text); !slices.Equal(got, c.IDs) {
				t.Errorf("%q, specials %v: %v, want %v", c.Text, c.Allowed, got, c.IDs)
			}
		}
	}
}

func TestOfficialLongInputs(t *testing.T) {
	tok := k3(t)
	texts := map[string]string{
		"'a' * 25001":         strings.Repeat("a", 25001),
		"' ' * 25001":         strings.Repeat(" ", 25001),
		"U+1F642 * 25001":     strings.Repeat("\U0001F642", 25001),
		"'a ' * 200000 + 'b'": strings.Repeat("a ", 200000) + "b",
	}
	for _, c := range loadVectors(t).Long {
		text, ok := texts[c.Text]
		if !ok {
			t.Errorf("the vectors have a text this test does not know: %s", c.Text)
			continue
		}
		ids := tok.Encode(text)
		h := newFNV()
		for _, id := range ids {
			h.add(id)
		}
		if len(ids) != c.N || h.String() != c.Hash {
			t.Errorf("%s: %d ids, hash %v, want %d, %s", c.Text, len(ids), h, c.N, c.Hash)
		}
		if got, _ := tok.Decode(ids); got != text {
			t.Errorf("%s does not survive the round trip", c.Text)
		}
	}
}

func TestOfficialBoundaryCorpus(t *testing.T) {
	tok := k3(t)
	v := loadVectors(t)
	plain, special := newFNV(), newFNV()
	nPlain, nSpecial := 0, 0
	add := func(h *fnv, n *int, ids []int) {
		h.add(len(ids))
		for _, id := range ids {
			h.add(id)
		}
		*n += len(ids)
	}
	f := v.Boundary.Fragments
	for _, left := range f {
		for _, middle := range f {
			for _, right := range f {
				add(&plain, &nPlain, tok.Encode(left+middle+right))
				add(&special, &nSpecial, tok.EncodeSpecial(left+middle+right))
			}
		}
	}
	if want := v.Boundary.NotAllowed; nPlain != want.Total || plain.String() != want.Hash {
		t.Errorf("ordinary: %d ids, hash %v, want %d, %s", nPlain, plain, want.Total, want.Hash)
	}
	if want := v.Boundary.Allowed; nSpecial != want.Total || special.String() != want.Hash {
		t.Errorf("with specials: %d ids, hash %v, want %d, %s", nSpecial, special, want.Total, want.Hash)
	}
}

func TestOfficialPieces(t *testing.T) {
	c := newClasses()
	for _, v := range loadVectors(t).Pieces.Cases {
		text := v[0].(string)
		var want []string
		for _, p := range v[1].([]any) {
			want = append(want, p.(string))
		}
		if got := c.pieces(text); !slices.Equal(got, want) {
			t.Errorf("%q: pieces %q, want %q", text, got, want)
		}
	}
}

// TestNanoGoldens holds the ids that an independent implementation gives for
// the tokenizer of the demonstration model.
func TestNanoGoldens(t *testing.T) {
	tok := nano(t)
	var cases []struct {
		Text    string `json:"text"`
		IDs     []int  `json:"ids"`
		Allowed []int  `json:"ids_specials_allowed"`
	}
	readJSON(t, os.DirFS("testdata/nano"), "golden.json", &cases)
	if len(cases) < 20 {
		t.Fatalf("only %d cases", len(cases))
	}
	for _, c := range cases {
		if got := tok.Encode(c.Text); !slices.Equal(got, c.IDs) {
			t.Errorf("%q: %v, want %v", c.Text, got, c.IDs)
		}
		if got := tok.EncodeSpecial(c.Text); !slices.Equal(got, c.Allowed) {
			t.Errorf("%q with specials: %v, want %v", c.Text, got, c.Allowed)
		}
		if got, err := tok.Decode(c.IDs); err != nil || got != c.Text {
			t.Errorf("%v decodes to %q (%v), want %q", c.IDs, got, err, c.Text)
		}
	}
}

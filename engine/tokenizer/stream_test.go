package tokenizer

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"
)

// slowValid replaces each maximal part that is not a character by U+FFFD, from
// the table of well-formed byte sequences in the Unicode Standard.
func slowValid(s string) string {
	var out strings.Builder
	for len(s) > 0 {
		if r, n := utf8.DecodeRuneInString(s); r != utf8.RuneError || n > 1 {
			out.WriteString(s[:n])
			s = s[n:]
			continue
		}
		n, low, high := 0, byte(0x80), byte(0xBF)
		switch b := s[0]; {
		case b >= 0xC2 && b <= 0xDF:
			n = 1
		case b >= 0xE0 && b <= 0xEF:
			n = 2
		case b >= 0xF0 && b <= 0xF4:
			n = 3
		}
		switch s[0] {
		case 0xE0:
			low = 0xA0
		case 0xED:
			high = 0x9F
		case 0xF0:
			low = 0x90
		case 0xF4:
			high = 0x8F
		}
		k := 1
		for k <= n && k < len(s) && s[k] >= low && s[k] <= high {
			low, high = 0x80, 0xBF
			k++
		}
		out.WriteString("\uFFFD")
		s = s[k:]
	}
	return out.String()
}

func TestSlowValidIsThePublishedPractice(t *testing.T) {
	// Example of the Unicode Standard, table 3-8 and the like.
	for in, want := range map[string]string{
		"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64": "a???b?c??d",
		"\xE0\x80\xBF": "???", "\xED\xA0\x80": "???", "\xF4\x91": "??", "\xE4\xBD": "?", "\xC0\xAF": "??",
	} {
		if got := strings.ReplaceAll(slowValid(in), "\uFFFD", "?"); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// TestStream streams single bytes, the hardest case: every byte is a token.
func TestStream(t *testing.T) {
	tok := nano(t)
	byteID := func(b byte) int { return int(tok.table.single[b]) }
	rng := rand.New(rand.NewPCG(9, 10))
	hard := []string{"a", "é", "中", "🙂", "\xff", "\xe4", "\xe4\xb8", "\xf0\x9f\x99", "\xc0", "\x80", "\xed\xa0\x80", "\xf4\x90"}
	for range 5000 {
		var text string
		for range rng.IntN(6) {
			text += hard[rng.IntN(len(hard))]
		}
		s := tok.NewStream()
		var got string
		for i := range len(text) {
			part, err := s.Add(byteID(text[i]))
			if err != nil {
				t.Fatal(err)
			}
			if !utf8.ValidString(part) {
				t.Fatalf("%q: part %q is not valid", text, part)
			}
			if len(s.held) > 3 {
				t.Fatalf("%q: %d bytes held back", text, len(s.held))
			}
			got += part
			// Nothing is held back that is already decided.
			if whole := slowValid(text[:i+1-len(s.held)]); got != whole {
				t.Fatalf("%q: after %d bytes %q, want %q", text, i+1, got, whole)
			}
		}
		got += s.Flush()
		if want := slowValid(text); got != want {
			t.Fatalf("%q: %q, want %q", text, got, want)
		}
		if s.Flush() != "" {
			t.Fatal("a second flush has text")
		}
	}
}

func TestStreamSpecialsAndErrors(t *testing.T) {
	tok := nano(t)
	open, _ := tok.Special("<|open|>")
	s := tok.NewStream()
	if part, err := s.Add(int(tok.table.single[0xE4])); part != "" || err != nil {
		t.Errorf("an open character gives %q, %v", part, err)
	}
	for _, id := range []int{-1, nanoVocab, 1 << 40} {
		var bad *IDError
		if _, err := s.Add(id); !errors.As(err, &bad) || bad.ID != id || bad.Vocab != nanoVocab {
			t.Errorf("id %d: error %v", id, err)
		}
		if _, err := tok.Decode([]int{1, id}); !errors.As(err, &bad) || bad.ID != id {
			t.Errorf("decoding id %d: error %v", id, err)
		}
		if _, ok := tok.Bytes(id); ok {
			t.Errorf("id %d has bytes", id)
		}
	}
	if part, err := s.Add(open); part != "\uFFFD<|open|>" || err != nil {
		t.Errorf("a special id after an open character gives %q, %v", part, err)
	}
	if got := (&IDError{ID: 4096, Vocab: 4096}).Error(); !strings.Contains(got, "4096") || !strings.Contains(got, "4095") {
		t.Errorf("error %q", got)
	}
}

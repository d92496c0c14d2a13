package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
)

// slowMerge is the definition of spec 5.3, word by word.
func slowMerge(t *lookup, piece string) []int {
	var parts []string
	for i := range len(piece) {
		parts = append(parts, piece[i:i+1])
	}
	for {
		best, at := none, -1
		for i := range len(parts) - 1 {
			if r := t.find(parts[i] + parts[i+1]); r < best {
				best, at = r, i
			}
		}
		if at < 0 {
			break
		}
		parts[at] += parts[at+1]
		parts = slices.Delete(parts, at+1, at+2)
	}
	var ids []int
	for _, p := range parts {
		ids = append(ids, int(t.find(p)))
	}
	return ids
}

// TestMergesMatchTheDefinition compares the three ways to merge, across the
// length at which one gives way to the other.
func TestMergesMatchTheDefinition(t *testing.T) {
	tok := nano(t)
	rng := rand.New(rand.NewPCG(7, 8))
	alphabets := []string{"ab", "aeinorst ", "etaoin shrdlu-=.,", "中文字符测试", "\x00\xff\xe4\xb8"}
	for range 1500 {
		letters := alphabets[rng.IntN(len(alphabets))]
		var b strings.Builder
		for range 1 + rng.IntN(2*shortPiece) {
			b.WriteByte(letters[rng.IntN(len(letters))])
		}
		piece := b.String()
		want := slowMerge(tok.table, piece)
		if got := tok.table.appendPiece(nil, piece); !slices.Equal(got, want) {
			t.Fatalf("%q: %v, want %v", piece, got, want)
		}
		if got := tok.table.mergeLong(nil, piece); !slices.Equal(got, want) {
			t.Fatalf("%q by heap: %v, want %v", piece, got, want)
		}
		if len(piece) <= shortPiece {
			if got := tok.table.mergeShort(nil, piece); !slices.Equal(got, want) {
				t.Fatalf("%q by search: %v, want %v", piece, got, want)
			}
		}
	}
}

// TestWholePieceIsOnlyAShortcut: merging the bytes of any official token gives
// that token.
func TestWholePieceIsOnlyAShortcut(t *testing.T) {
	tok := k3(t)
	for r := range tok.Base() {
		piece := tok.table.bytes(r)
		if got := tok.table.mergeLong(nil, piece); len(got) != 1 || got[0] != r {
			t.Fatalf("token %d %q merges to %v", r, piece, got)
		}
	}
}

// slowSlices is the safety rule as the original states it: over characters.
func slowSlices(c *classes, text string) []string {
	var out []string
	runes := []rune(text)
	for at := 0; at < len(runes); at += maxSlice {
		s := runes[at:min(at+maxSlice, len(runes))]
		start, run := 0, 0
		for i := range s {
			if i > 0 && c[s[i]]&pySpace == c[s[i-1]]&pySpace {
				run++
			} else {
				run = 1
			}
			if run > maxRun {
				out = append(out, string(s[start:i]))
				start, run = i, 1
			}
		}
		out = append(out, string(s[start:]))
	}
	return out
}

func TestSlices(t *testing.T) {
	tok := nano(t)
	rep := strings.Repeat
	for name, text := range map[string]string{
		"short":                      "abc",
		"exactly one run":            rep("a", maxRun),
		"one more":                   rep("é", maxRun+1),
		"three runs":                 rep("🙂", 2*maxRun+1),
		"spaces of both kinds":       rep(" \x1c", maxRun) + "x",
		"run after run":              rep("a", maxRun-1) + " " + rep("b", maxRun+5) + rep("\u3000", maxRun+5) + "c",
		"exactly one slice":          rep("ab ", maxSlice/3) + "a",
		"a slice and more":           rep("ab ", maxSlice/3) + "abc def",
		"a run across a slice's end": rep("ab ", (maxSlice-20)/3) + rep("c", maxRun+100) + " d",
		"runs and slices":            rep("a", 2*maxSlice+3),
	} {
		var got []string
		for s := tok.slicer(text); !s.done(); {
			got = append(got, s.next())
		}
		if want := slowSlices(tok.classes, text); !slices.Equal(got, want) {
			sizes := func(ss []string) (out []int) {
				for _, s := range ss {
					out = append(out, len(s))
				}
				return out
			}
			t.Errorf("%s: slices of %v bytes, want %v", name, sizes(got), sizes(want))
		}
	}
}

// TestNoSpecialAcrossACut: the cut comes first.
func TestNoSpecialAcrossACut(t *testing.T) {
	tok := nano(t)
	open, _ := tok.Special("<|open|>")
	if ids := tok.EncodeSpecial(strings.Repeat("a", maxRun-8) + "<|open|>"); ids[len(ids)-1] != open {
		t.Error("a name before the cut is not seen")
	}
	for _, id := range tok.EncodeSpecial(strings.Repeat("a", maxRun-7) + "<|open|>") {
		if tok.IsSpecial(id) {
			t.Errorf("special id %d for a name across the cut", id)
		}
	}
}

// TestSpecialsCutTheText: white space before a name does not look beyond it.
func TestSpecialsCutTheText(t *testing.T) {
	tok := nano(t)
	open, _ := tok.Special("<|open|>")
	want := append(tok.Encode("a  "), open)
	want = append(want, tok.Encode("  b")...)
	if got := tok.EncodeSpecial("a  <|open|>  b"); !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
}

func TestAppendKeepsWhatIsThere(t *testing.T) {
	tok := nano(t)
	if got, want := tok.Append([]int{1, 2}, "Hello"), append([]int{1, 2}, tok.Encode("Hello")...); !slices.Equal(got, want) {
		t.Errorf("ids %v, want %v", got, want)
	}
	if got := tok.Append(nil, ""); got != nil {
		t.Errorf("nothing encodes to %v", got)
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(t *testing.T) {
	tok := nano(t)
	text := mixed(20_000)
	want := tok.Encode(text)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			s := tok.NewStream()
			var b strings.Builder
			for _, id := range tok.EncodeSpecial(text) {
				part, err := s.Add(id)
				if err != nil {
					t.Error(err)
				}
				b.WriteString(part)
			}
			if got := b.String() + s.Flush(); got != text {
				t.Error("the text does not survive")
			}
			if got := tok.Encode(text); !slices.Equal(got, want) {
				t.Error("other ids than before")
			}
		})
	}
	wg.Wait()
}

// FuzzRoundTrip: valid text comes back from Decode; any bytes at all come back
// from Bytes; ordinary encoding never yields a special id, and the streaming
// decoder agrees with Decode.
func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "Hello, <|open|> [BOS]\n", "中文🙂\u0301", "\xff\xfe\xe4\xb8", strings.Repeat("ab", 200), "\U0002EBF0\u1c89ǅ"} {
		f.Add(s)
	}
	tok := nano(f)
	f.Fuzz(func(t *testing.T, text string) {
		ids := tok.Encode(text)
		var raw []byte
		for _, id := range ids {
			if tok.IsSpecial(id) {
				t.Fatalf("%q: special id %d", text, id)
			}
			b, _ := tok.Bytes(id)
			raw = append(raw, b...)
		}
		if string(raw) != text {
			t.Fatalf("%q: bytes %q", text, raw)
		}
		got, err := tok.Decode(ids)
		if want := slowValid(text); err != nil || got != want {
			t.Fatalf("%q decodes to %q (%v), want %q", text, got, err, want)
		}
		s := tok.NewStream()
		streamed := ""
		for _, id := range ids {
			part, _ := s.Add(id)
			streamed += part
		}
		if streamed += s.Flush(); streamed != got {
			t.Fatalf("%q streams as %q, decodes to %q", text, streamed, got)
		}
		if special, _ := tok.Decode(tok.EncodeSpecial(text)); special != got {
			t.Fatalf("%q with specials decodes to %q", text, special)
		}
	})
}

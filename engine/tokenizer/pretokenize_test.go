package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// pieces lists all pieces of a slice.
func (c *classes) pieces(s string) []string {
	var out []string
	for i := 0; i < len(s); {
		end := c.pieceEnd(s, i)
		out = append(out, s[i:end])
		i = end
	}
	return out
}

// What follows is the expression of pieceEnd read literally by a backtracking
// matcher: slow and obvious.

// An item matches between least and most characters, as many as it can first.
type item struct {
	in          func(rune) bool
	least, most int
	words       []string                   // instead of in: one of these or nothing, letter case ignored
	ahead       func(s []rune, i int) bool // instead of in: a condition on the position
}

// match returns the end of the first way to match items at i, or -1.
func match(items []item, s []rune, i int) int {
	if len(items) == 0 {
		return i
	}
	it, rest := items[0], items[1:]
	if it.ahead != nil {
		if !it.ahead(s, i) {
			return -1
		}
		return match(rest, s, i)
	}
	if it.words != nil {
		for _, w := range it.words {
			n := len([]rune(w))
			if i+n <= len(s) && strings.EqualFold(string(s[i:i+n]), w) {
				if end := match(rest, s, i+n); end >= 0 {
					return end
				}
			}
		}
		return match(rest, s, i)
	}
	n := 0
	for n < it.most && i+n < len(s) && it.in(s[i+n]) {
		n++
	}
	for ; n >= it.least; n-- {
		if end := match(rest, s, i+n); end >= 0 {
			return end
		}
	}
	return -1
}

// in16 is unicode.In with what Unicode 16 added.
func in16(r rune, want func(bits uint8) bool, tables ...*unicode.RangeTable) bool {
	for _, x := range unicode16 {
		if x.lo <= r && r <= x.hi {
			return want(x.bits)
		}
	}
	return unicode.In(r, tables...)
}

func isHan(r rune) bool {
	return in16(r, func(b uint8) bool { return b&han != 0 }, unicode.Han)
}

func isL(r rune) bool {
	return in16(r, func(b uint8) bool { return b&word != 0 && b&number == 0 }, unicode.L)
}

func isN(r rune) bool {
	return in16(r, func(b uint8) bool { return b&number != 0 }, unicode.N)
}

func isUpper(r rune) bool {
	return !isHan(r) && in16(r, func(b uint8) bool { return b&upper != 0 }, unicode.Lu, unicode.Lt, unicode.Lm, unicode.Lo, unicode.M)
}

func isLower(r rune) bool {
	return !isHan(r) && in16(r, func(b uint8) bool { return b&lower != 0 }, unicode.Ll, unicode.Lm, unicode.Lo, unicode.M)
}

func isSpace(r rune) bool { return unicode.Is(unicode.White_Space, r) }

func isNewline(r rune) bool { return r == '\r' || r == '\n' }

// alternatives is the expression, in order.
func alternatives() [][]item {
	const many = 1 << 30
	prefix := item{in: func(r rune) bool { return !isNewline(r) && !isL(r) && !isN(r) }, most: 1}
	suffix := item{words: []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}}
	return [][]item{
		{{in: isHan, least: 1, most: many}},
		{prefix, {in: isUpper, most: many}, {in: isLower, least: 1, most: many}, suffix},
		{prefix, {in: isUpper, least: 1, most: many}, {in: isLower, most: many}, suffix},
		{{in: isN, least: 1, most: 3}},
		{
			{in: func(r rune) bool { return r == ' ' }, most: 1},
			{in: func(r rune) bool { return !isSpace(r) && !isL(r) && !isN(r) }, least: 1, most: many},
			{in: isNewline, most: many},
		},
		{{in: isSpace, most: many}, {in: isNewline, least: 1, most: many}},
		{{in: isSpace, least: 1, most: many}, {ahead: func(s []rune, i int) bool { return i == len(s) || isSpace(s[i]) }}},
		{{in: isSpace, least: 1, most: many}},
	}
}

func referencePieces(text string) []string {
	var out []string
	s := []rune(text)
	for i := 0; i < len(s); {
		end := -1
		for _, alt := range alternatives() {
			if end = match(alt, s, i); end >= 0 {
				break
			}
		}
		out = append(out, string(s[i:end]))
		i = end
	}
	return out
}

// telling holds characters of every kind that the expression tells apart, with
// the awkward ones: marks, modifier letters, title case, Han that is a mark,
// a number, a symbol or a modifier letter, letters of Unicode 16, spaces.
var telling = []string{
	"a", "b", "A", "B", "é", "É", "ǅ", "ʰ", "ー", "ا", "한", "あ", "中", "文", "字", "〇", "々", "⺀", "〡", "\U00016FF0", "\U00016FE3",
	"\u0301", "\u0903", "\u20DD", "1", "2", "٣", "Ⅷ", "½", "１", " ", " ", "\u00A0", "\u3000", "\u2028", "\t", "\n", "\r", "\u0085", "\u001C", "\u001F",
	"'", "’", "s", "S", "ſ", "t", "re", "VE", "m", "lL", "d", "'s", "'LL", "'ſ", "!", ".", "/", "-", "🙂", "\u200D", "\uFE0F", "。", "\uFFFD", "\x00",
	"\U00010D50", "\U00010D70", "\U0002EBF0", "\u1C89", "\uA7CD", "\U00011380", "\U000113B8", "\U00010D40", "\u0378",
}

func TestPiecesMatchTheExpression(t *testing.T) {
	c := newClasses()
	rng := rand.New(rand.NewPCG(1, 2))
	for range 60_000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(telling[rng.IntN(len(telling))])
		}
		text := b.String()
		if got, want := c.pieces(text), referencePieces(text); !slices.Equal(got, want) {
			t.Fatalf("%+q: pieces %+q, want %+q", text, got, want)
		}
	}
}

func FuzzPieces(f *testing.F) {
	for _, s := range []string{"", "Hello, world!\n", "don't HTMLParser's", "1〇〇〇", "\u0301A!", "a \u3000 b", "x\r\n\r\n y", "\xff\xfea"} {
		f.Add(s)
	}
	c := newClasses()
	f.Fuzz(func(t *testing.T, text string) {
		got := c.pieces(text)
		if strings.Join(got, "") != text {
			t.Fatalf("%+q: pieces %+q do not join to the text", text, got)
		}
		// A stray byte is to be seen as U+FFFD, and only seen so.
		want := referencePieces(text)
		for i, p := range got {
			got[i] = string([]rune(p))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+q: pieces %+q, want %+q", text, got, want)
		}
	})
}

// TestClassesAreThoseOfUnicode16 counts every class. The counts are those of
// the Unicode Character Database 16.0; a toolchain with other tables and
// characters fails here rather than giving other ids.
func TestClassesAreThoseOfUnicode16(t *testing.T) {
	c := newClasses()
	count := func(want func(uint8) bool) int {
		n := 0
		for _, bits := range c {
			if want(bits) {
				n++
			}
		}
		return n
	}
	for _, k := range []struct {
		name string
		in   func(uint8) bool
		want int
	}{
		{"Han", func(b uint8) bool { return b&han != 0 }, 99_030},
		{"L or N", func(b uint8) bool { return b&word != 0 }, 141_028 + 1_911},
		{"N", func(b uint8) bool { return b&number != 0 }, 1_911},
		{"Lu or Lt", func(b uint8) bool { return b&(upper|lower) == upper }, 1_889},
		{"Ll", func(b uint8) bool { return b&(upper|lower) == lower }, 2_258},
		{"Lm, Lo or M without Han", func(b uint8) bool { return b&upper != 0 && b&lower != 0 }, 38_196 + 2_499},
		{"M without Han", func(b uint8) bool { return b&upper != 0 && b&lower != 0 && b&word == 0 }, 2_499},
		{"White_Space", func(b uint8) bool { return b&space != 0 }, 25},
		{"space of the slicing rule", func(b uint8) bool { return b&pySpace != 0 }, 29},
		{"line ends", func(b uint8) bool { return b&newline != 0 }, 2},
	} {
		if got := count(k.in); got != k.want {
			t.Errorf("%s: %d characters, want %d (the toolchain has Unicode %s)", k.name, got, k.want, unicode.Version)
		}
	}
}

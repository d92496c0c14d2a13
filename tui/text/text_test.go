package text_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"

	"deltafin/tui/text"
)

// widths is the corpus that everything on the screen must get right.
var widths = []struct {
	name, s string
	cells   int
}{
	{"empty", "", 0},
	{"ascii", "plain text", 10},
	{"latin", "héllo", 5},
	{"combining", "e\u0301a\u0308o\u0302", 3},
	{"cjk", "三种测年方法", 12},
	{"full width", "ＡＢＣ", 6},
	{"half-width kana", "ﾊﾝｶｸ", 4},
	{"hangul", "한국어", 6},
	{"hangul jamo", "\u1112\u1161\u11ab", 2},
	{"emoji", "😀", 2},
	{"zwj family", "👩‍👩‍👧‍👦", 2},
	{"skin tone", "👍🏽", 2},
	{"flags", "🇨🇭🇯🇵", 4},
	{"rainbow flag", "🏳️‍🌈", 2},
	{"vs16", "❤️⚠️", 4},
	{"keycap", "1️⃣", 2},
	{"hebrew", "שלום", 4},
	{"hebrew with points", "שָׁלוֹם", 4},
	{"arabic", "مرحبا", 5},
	{"zwnj", "می\u200cخواهم", 7},
	{"thai", "ภาษาไทย", 7},
	{"zero width space", "a\u200bb", 2},
	{"colours", "\x1b[1;38;5;12mbold\x1b[0m 世", 7},
	{"box", "┌─┐│", 4},
	{"blocks", "▁▂▃█░▒▓", 7},
	{"braille", "⠁⣿", 2},
	{"gauge", "\x1b[32m█▉\x1b[0m···\x1b[2m│", 6},
	{"joined to a line", "─\u0301│", 2},
}

func TestWidthCorpus(t *testing.T) {
	for _, c := range widths {
		if got := text.Width(c.s); got != c.cells {
			t.Errorf("%s: Width(%q) = %d, want %d", c.name, c.s, got, c.cells)
		}
	}
}

func TestCuttingNeverExceedsAndNeverHalves(t *testing.T) {
	for _, c := range widths {
		for w := -1; w <= c.cells+2; w++ {
			for name, got := range map[string]string{
				"Cut": text.Cut(c.s, w), "CutLeft": text.CutLeft(c.s, w),
				"CutMiddle": text.CutMiddle(c.s, w, "…"), "Elide": text.Elide(c.s, w, "~"),
			} {
				if n := text.Width(got); n > max(w, 0) {
					t.Errorf("%s: %s(%q, %d) = %q is %d cells", c.name, name, c.s, w, got, n)
				}
				if !utf8.ValidString(got) {
					t.Errorf("%s: %s(%q, %d) = %q halves a letter", c.name, name, c.s, w, got)
				}
			}
			for name, got := range map[string]string{"Pad": text.Pad(c.s, w), "PadLeft": text.PadLeft(c.s, w)} {
				if n := text.Width(got); n != max(w, 0) {
					t.Errorf("%s: %s(%q, %d) = %q is %d cells", c.name, name, c.s, w, got, n)
				}
			}
		}
	}
}

func TestCuts(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{text.Cut("hello", 3), "hel"},
		{text.Cut("世界", 3), "世"},
		{text.CutLeft("hello", 3), "llo"},
		{text.CutLeft("世界", 3), "界"},
		{text.CutLeft("ae\u0301", 1), "e\u0301"},
		{text.Elide("hello", 4, "…"), "hel…"},
		{text.Elide("hello", 5, "…"), "hello"},
		{text.CutMiddle("abcdefghij", 5, "~"), "ab~ij"},
		{text.Pad("世界", 3), "世 "},
		{text.PadLeft("7", 3), "  7"},
		{text.Join("left side", "right", 12, "~"), "left ~ right"},
		{text.Join("a", "b", 5, "~"), "a   b"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCleanShowsWhatWouldSteer(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"plain", "plain"},
		{"a\tb", "a   b"},
		{"世\tb", "世  b"},
		{"a\nbc\td", "a\nbc  d"},
		{"a\r\nb", "a\nb"},
		{"a\rb", "a^Mb"},
		{"\x1b[31mred\x1b]0;t\x07", "^[[31mred^[]0;t^G"},
		{"\x00\x7f", "^@^?"},
		{"\u009b31m", "<U+009B>31m"},
		{"\u202eevil\u202c", "<U+202E>evil<U+202C>"},
		{"\u2066x\u2069", "<U+2066>x<U+2069>"},
		{"\u2028", "<U+2028>"},
		{"bad \xff\xfe", "bad \ufffd\ufffd"},
		{"ｶﾞｷﾊﾟｳﾞｱﾞ", "ガｷパヴｱ゛"},
		{"real \ufffd stays", "real \ufffd stays"},
		{"👩‍👧 می\u200cخواهم", "👩‍👧 می\u200cخواهم"},
	} {
		if got := text.Clean(c.in); got != c.want {
			t.Errorf("Clean(%q) = %q, want %q", c.in, got, c.want)
		}
	}
	if got := text.CleanFrom("\tx", 3); got != " x" {
		t.Errorf("CleanFrom at column 3 = %q, want one space", got)
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		s    string
		w    int
		want []string
	}{
		{"", 5, []string{""}},
		{"one two three", 7, []string{"one two", "three"}},
		{"one  two", 3, []string{"one", "two"}},
		{"exact fit", 9, []string{"exact fit"}},
		{"a\n\nb", 5, []string{"a", "", "b"}},
		{"  indented words", 10, []string{"  indented", "words"}},
		{"abcdefgh", 3, []string{"abc", "def", "gh"}},
		{"x abcdefgh", 4, []string{"x", "abcd", "efgh"}},
		{"三种测年方法", 5, []string{"三种", "测年", "方法"}},
		{"word三种测年", 6, []string{"word三", "种测年"}},
		{"测年。方法", 4, []string{"测", "年。", "方法"}},
		{"测「年」", 4, []string{"测", "「年", "」"}},
		{"한국어 텍스트", 8, []string{"한국어", "텍스트"}},
		{"well-known facts", 6, []string{"well-", "known", "facts"}},
		{"e\u0301e\u0301e\u0301", 2, []string{"e\u0301e\u0301", "e\u0301"}},
		{"👩‍👧👩‍👧", 3, []string{"👩‍👧", "👩‍👧"}},
		{"世a", 1, []string{"a"}},
		{"trailing   ", 20, []string{"trailing"}},
	} {
		if got := text.Wrap(c.s, c.w); !slices.Equal(got, c.want) {
			t.Errorf("Wrap(%q, %d) = %q, want %q", c.s, c.w, got, c.want)
		}
	}
}

func TestClampIsExact(t *testing.T) {
	lines := []string{"short", "much too long a line", "世界世界世", "\x1b[1mbold and long\x1b[0m"}
	for w := range 14 {
		for h := range 7 {
			got := text.Clamp(lines, w, h)
			if len(got) != h {
				t.Fatalf("%dx%d: %d rows", w, h, len(got))
			}
			for i, l := range got {
				if n := ansi.StringWidth(l); n != w {
					t.Fatalf("%dx%d: row %d is %d cells: %q", w, h, i, n, l)
				}
			}
		}
	}
}

func FuzzText(f *testing.F) {
	for _, c := range widths {
		f.Add(c.s, 5)
	}
	f.Add("\x1b[31m\u202e\xff\t\r\n x", 2)
	f.Add("🏽", 5)
	f.Add("─\ufe0f·\u20e3a\xe2\x96", 2)
	f.Fuzz(func(t *testing.T, s string, w int) {
		w %= 200
		if got, want := text.Width(s), ansi.StringWidth(s); got != want {
			t.Fatalf("Width(%q) = %d, x/ansi says %d", s, got, want)
		}
		c := text.Clean(s)
		if text.Clean(c) != c {
			t.Fatalf("Clean(%q) = %q is not clean", s, c)
		}
		if ansi.Strip(c) != c {
			t.Fatalf("Clean(%q) = %q holds a sequence", s, c)
		}
		rest := c
		for _, l := range text.Wrap(c, w) {
			if n := ansi.StringWidth(l); n > max(w, 1) {
				t.Fatalf("Wrap(%q, %d): line %q is %d cells", c, w, l, n)
			}
			// Lines are the text in order; only white space, and what no line
			// could hold, lies between them.
			at := strings.Index(rest, l)
			if at < 0 || w > 1 && strings.Trim(rest[:at], " \n") != "" {
				t.Fatalf("Wrap(%q, %d): %q is left out before %q", c, w, rest[:max(at, 0)], l)
			}
			rest = rest[at+len(l):]
		}
		if w > 1 && strings.Trim(rest, " \n") != "" {
			t.Fatalf("Wrap(%q, %d) leaves out %q", c, w, rest)
		}
		line := text.CleanLine(s)
		for _, p := range []string{text.Pad(line, w), text.PadLeft(line, w), text.Clamp([]string{line}, w, 1)[0]} {
			if n := ansi.StringWidth(p); n != max(w, 0) {
				t.Fatalf("%q is %d cells, want %d", p, n, w)
			}
		}
		for _, p := range []string{text.Cut(line, w), text.CutLeft(line, w), text.CutMiddle(line, w, "~"), text.Elide(line, w, "~")} {
			if n := ansi.StringWidth(p); n > max(w, 0) {
				t.Fatalf("%q is %d cells, the most is %d", p, n, w)
			}
		}
	})
}

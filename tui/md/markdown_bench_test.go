package md

import (
	"strings"
	"testing"

	"deltafin/tui/theme"
)

// long is a transcript of about 200,000 tokens (four bytes each): the corpus,
// which is dense in marks, and prose between.
func long(tb testing.TB) string {
	src := corpus(tb)
	src = src[:strings.Index(src, "```unknown")] // closed at its end
	prose := strings.Repeat("Layer counting is exact only while annual layers stay thicker than the sampling step; below about 1 400 m the count becomes a model, not a count. ", 5)
	part := src + "\n" + prose + "\n\n" + prose + "\n\n"
	return strings.Repeat(part, 800_000/len(part)+1)
}

func bench(tb testing.TB) Options {
	return Options{Theme: themed(tb, theme.Dark, theme.TrueColour, theme.Braille()), Width: 100}
}

// BenchmarkOpen200kTokensAtTheEnd is what a user waits for: division of the whole
// and one screen of rows.
func BenchmarkOpen200kTokensAtTheEnd(b *testing.B) {
	src, o := long(b), bench(b)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		if n := len(Parse(src, o).Tail(0, 40)); n != 40 {
			b.Fatal(n)
		}
	}
}

// BenchmarkRows200kTokens lays everything out.
func BenchmarkRows200kTokens(b *testing.B) {
	src, o := long(b), bench(b)
	b.SetBytes(int64(len(src)))
	for b.Loop() {
		Parse(src, o).Rows()
	}
}

// BenchmarkScroll200kTokens is one frame of scrolling upwards by three rows.
func BenchmarkScroll200kTokens(b *testing.B) {
	d := Parse(long(b), bench(b))
	skip := 0
	for b.Loop() {
		if len(d.Tail(skip, 40)) < 40 {
			skip = 0
		}
		skip += 3
	}
}

// BenchmarkToken is one token at the end of a long answer, and a screen after it.
func BenchmarkToken(b *testing.B) {
	d := New(bench(b))
	d.Append(long(b))
	d.Tail(0, 40)
	i := 0
	for b.Loop() {
		d.Append(" word")
		if i++; i%100 == 0 {
			d.Append("\n\n") // paragraphs have an end
		}
		d.Tail(0, 40)
	}
}

// BenchmarkTokenInOpenFence is one token within a code block of a thousand lines.
func BenchmarkTokenInOpenFence(b *testing.B) {
	o := bench(b)
	start := "```go\n" + strings.Repeat("	x := f(1, 2, 3) // a line of code\n", 1000)
	d := New(o)
	d.Append(start)
	d.Tail(0, 40)
	i := 0
	for b.Loop() {
		d.Append(" word")
		if i++; i%10 == 0 {
			d.Append("\n")
		}
		d.Tail(0, 40)
	}
}

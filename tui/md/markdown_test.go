package md

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	gtext "github.com/yuin/goldmark/text"

	"deltafin/tui/text"
	"deltafin/tui/theme"
)

var update = flag.Bool("update", false, "write the golden files anew")

func mono(tb testing.TB) *theme.Theme {
	return themed(tb, theme.Mono, theme.NoColour, theme.ASCII())
}

func themed(tb testing.TB, name string, p theme.Profile, g *theme.Glyphs) *theme.Theme {
	tb.Helper()
	t, err := theme.New(name, p, g)
	if err != nil {
		tb.Fatal(err)
	}
	return t
}

func corpus(tb testing.TB) string {
	tb.Helper()
	b, err := os.ReadFile("testdata/corpus.md")
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}

func all(d *Doc) []string {
	var out []string
	for _, l := range d.Slice(0, 1<<30) {
		out = append(out, l.Text)
	}
	return out
}

// valid checks what every frame must hold: no row wider than the document, no
// sequence but colours.
func valid(t *testing.T, d *Doc, lines []Line) {
	t.Helper()
	for i, l := range lines {
		if w := ansi.StringWidth(l.Text); w > d.Width() {
			t.Fatalf("row %d is %d cells wide, the most is %d: %q", i, w, d.Width(), l.Text)
		}
		bare := stripSGR(l.Text)
		if text.Clean(bare) != bare || strings.Contains(bare, "\n") {
			t.Fatalf("row %d holds controls: %q", i, l.Text)
		}
		if l.Block < 0 || l.Block >= d.Blocks() {
			t.Fatalf("row %d is of block %d of %d", i, l.Block, d.Blocks())
		}
	}
}

// stripSGR removes colours, and nothing else.
func stripSGR(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if strings.HasPrefix(s[i:], "\x1b[") {
			if n := strings.IndexFunc(s[i+2:], func(r rune) bool { return r != ';' && (r < '0' || r > '9') }); n >= 0 && s[i+2+n] == 'm' {
				i += 2 + n + 1
				continue
			}
		}
		b.WriteByte(s[i])
		i++
	}
	return b.String()
}

func TestGoldenRows(t *testing.T) {
	src := corpus(t)
	for _, w := range []int{24, 60, 100} {
		golden(t, "mono-"+strconv.Itoa(w), Parse(src, Options{Theme: mono(t), Width: w}))
	}
	golden(t, "dark-80", Parse(src, Options{Theme: themed(t, theme.Dark, theme.TrueColour, theme.Braille()), Width: 80}))
}

func golden(t *testing.T, name string, d *Doc) {
	t.Helper()
	lines := d.Slice(0, 1<<30)
	valid(t, d, lines)
	var b strings.Builder
	for _, l := range lines {
		b.WriteString(strings.ReplaceAll(l.Text, "\x1b", "\\e"))
		b.WriteString("\n")
	}
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("%s differs; run with -update and read the difference", file)
	}
}

// TestStreamingEqualsOneShot is the oracle: byte by byte, with every frame on the
// way valid, and in the end the rows of one piece.
func TestStreamingEqualsOneShot(t *testing.T) {
	src := corpus(t)
	th := themed(t, theme.Dark, theme.Colour256, theme.Block())
	for _, w := range []int{1, 2, 7, 33, 80} {
		d := New(Options{Theme: th, Width: w})
		for i := range len(src) {
			d.Append(src[i : i+1])
			if i%7 == 0 || w == 80 && i%3 == 0 {
				valid(t, d, d.Tail(0, 12))
			}
			if i%997 == 0 {
				valid(t, d, d.Slice(0, 1<<30))
			}
		}
		d.Finish()
		same(t, all(d), all(Parse(src, Options{Theme: th, Width: w})))
	}
}

func same(t *testing.T, got, want []string) {
	t.Helper()
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			t.Fatalf("row %d:\n got %q\nwant %q", i, got[i], want[i])
		}
	}
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d", len(got), len(want))
	}
}

// TestDivisionEqualsParsingTheWhole: rows of the segments are the rows goldmark's
// tree of the whole document gives.
func TestDivisionEqualsParsingTheWhole(t *testing.T) {
	src := corpus(t)
	// Reference links are the exception that the package comment names.
	src = strings.ReplaceAll(src, "[ref]: ", "ref: ")
	same(t, all(Parse(src, Options{Theme: mono(t), Width: 60})), whole(src, mono(t), 60))
}

func whole(src string, th *theme.Theme, w int) []string {
	l := layout{th: th, width: w, room: w, paint: true, src: []byte(src)}
	l.blocks(markdown().Parse(gtext.NewReader(l.src)), false)
	return l.out
}

func TestTailAndSliceAgree(t *testing.T) {
	src := corpus(t)
	o := Options{Theme: mono(t), Width: 44}
	want := Parse(src, o).Slice(0, 1<<30)
	n := len(want)
	for skip := 0; skip < n+3; skip += 5 {
		d := Parse(src, o)
		got := d.Tail(skip, 9)
		end := max(n-skip, 0)
		if ref := want[max(end-9, 0):end]; !slices.Equal(got, ref) {
			t.Fatalf("Tail(%d, 9) = %+v, want %+v", skip, got, ref)
		}
		if got, ref := d.Slice(skip, 9), want[min(skip, n):min(skip+9, n)]; !slices.Equal(got, ref) {
			t.Fatalf("Slice(%d, 9) = %+v, want %+v", skip, got, ref)
		}
		if d.Rows() != n || d.Estimate() != n {
			t.Fatalf("Rows %d, Estimate %d, want %d", d.Rows(), d.Estimate(), n)
		}
	}
}

func TestWidthChangeEqualsFresh(t *testing.T) {
	src := corpus(t)
	d := New(Options{Theme: mono(t), Width: 80})
	for i, w := range []int{80, 20, 61, 3, 80} {
		d.Append(src[i*len(src)/5 : (i+1)*len(src)/5])
		d.SetWidth(w)
		fresh := New(Options{Theme: mono(t), Width: w})
		fresh.Append(src[:(i+1)*len(src)/5])
		same(t, all(d), all(fresh))
	}
}

func TestBlocksGiveTheSourceBack(t *testing.T) {
	d := Parse("# One\n\ntwo  \nlines\n\n  ```go title\n  x := 1\n    y\n  ```\n\n- a\n\n- b\n", Options{Theme: mono(t)})
	want := []Block{
		{Source: "# One", Closed: true},
		{Source: "two  \nlines", Closed: true},
		{Source: "  ```go title\n  x := 1\n    y\n  ```", Code: "x := 1\n  y", Lang: "go", Fenced: true, Closed: true},
		{Source: "- a\n\n- b", Closed: true},
	}
	if d.Blocks() != len(want) {
		t.Fatalf("%d blocks, want %d", d.Blocks(), len(want))
	}
	for i, w := range want {
		if got := d.Block(i); got != w {
			t.Errorf("block %d = %+v, want %+v", i, got, w)
		}
	}
}

func TestCodeIsColouredOnceClosed(t *testing.T) {
	th := themed(t, theme.Dark, theme.Colour256, theme.Block())
	d := New(Options{Theme: th, Width: 40})
	d.Append("```go\nfunc main() {}\n")
	if got := d.Slice(0, 1)[0].Text; strings.Contains(got, th.Keyword.Render("func")) {
		t.Errorf("open code is coloured: %q", got)
	}
	d.Append("```\n")
	if got := d.Slice(0, 1)[0].Text; !strings.Contains(got, th.Keyword.Render("func")) {
		t.Errorf("closed code is not coloured: %q", got)
	}
}

func FuzzStreaming(f *testing.F) {
	for _, block := range strings.Split(corpus(f), "\n\n") {
		f.Add(block, uint8(30))
	}
	f.Add(corpus(f), uint8(80))
	f.Add("- a\n\n  ```\n\n b\n```\nc\n\n    d\n", uint8(9))
	f.Add("**👩**\u200d👧 e\u0301*\u0301*\n|a|\n|-|\n|世界|", uint8(1))
	th := themed(f, theme.Dark, theme.Colour16, theme.ASCII())
	f.Fuzz(func(t *testing.T, src string, width uint8) {
		if len(src) > 4000 {
			return
		}
		o := Options{Theme: th, Width: int(width)%100 + 1}
		d := New(o)
		for i := range len(src) {
			d.Append(src[i : i+1])
			if i%5 == 0 {
				valid(t, d, d.Tail(0, 5))
			}
		}
		d.Finish()
		rows := d.Slice(0, 1<<30)
		valid(t, d, rows)
		same(t, all(d), all(Parse(src, o)))
		if n := d.Rows(); n != len(rows) {
			t.Fatalf("Rows is %d, Slice has %d", n, len(rows))
		}
	})
}

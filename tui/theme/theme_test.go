package theme

import (
	"math"
	"reflect"
	"testing"

	"github.com/charmbracelet/x/ansi"
)

func env(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(k string) string { return m[k] }
}

func TestDetect(t *testing.T) {
	for _, c := range []struct {
		name    string
		get     func(string) string
		goos    string
		theme   string
		profile Profile
		glyphs  string
		dumb    bool
	}{
		{"modern", env("TERM", "xterm-256color", "COLORTERM", "truecolor", "LANG", "en_US.UTF-8"), "linux", Dark, TrueColour, "braille", false},
		{"256", env("TERM", "screen-256color", "LC_ALL", "C.utf8"), "linux", Dark, Colour256, "braille", false},
		{"no UTF-8", env("TERM", "xterm-256color", "LC_ALL", "C", "LANG", "en_US.UTF-8"), "linux", Dark, Colour256, "ascii", false},
		{"console", env("TERM", "linux", "LANG", "de_DE.UTF-8"), "linux", Dark, Colour16, "block", false},
		{"no colour", env("TERM", "xterm-256color", "NO_COLOR", "1", "LANG", "C.UTF-8"), "linux", Mono, NoColour, "braille", false},
		{"empty NO_COLOR", env("TERM", "xterm-256color", "NO_COLOR", "", "LANG", "C.UTF-8"), "linux", Dark, Colour256, "braille", false},
		{"light", env("TERM", "xterm-256color", "COLORFGBG", "0;default;15", "LANG", "C.UTF-8"), "linux", Light, Colour256, "braille", false},
		{"vt100", env("TERM", "vt100"), "linux", Mono, NoColour, "ascii", false},
		{"dumb", env("TERM", "dumb", "LANG", "C.UTF-8"), "linux", Mono, NoColour, "ascii", true},
		{"no TERM", env(), "darwin", Mono, NoColour, "ascii", true},
		{"windows terminal", env("WT_SESSION", "x"), "windows", Dark, TrueColour, "braille", false},
		{"windows console", env(), "windows", Dark, TrueColour, "block", false},
	} {
		d := Detect(c.get, c.goos)
		if d.Name != c.theme || d.Profile != c.profile || d.Glyphs.Name != c.glyphs || d.Dumb != c.dumb {
			t.Errorf("%s: %s, %v, %s, dumb %v", c.name, d.Name, d.Profile, d.Glyphs.Name, d.Dumb)
		}
	}
}

func TestNewRefusesUnknownNames(t *testing.T) {
	if _, err := New("solarized", TrueColour, ASCII()); err == nil {
		t.Error("an unknown theme was made")
	}
}

// TestWithoutColoursThereIsNoColour: NO_COLOR prints no colour codes, attributes
// alone.
func TestWithoutColoursThereIsNoColour(t *testing.T) {
	for _, name := range Names() {
		th, err := New(name, NoColour, ASCII())
		if err != nil {
			t.Fatal(err)
		}
		eachStyle(th, func(field string, s Style) {
			if s.fg != "" || s.bg != "" {
				t.Errorf("%s without colours: %s has %q", name, field, s.open)
			}
		})
		if th.Name != Mono {
			t.Errorf("%s without colours calls itself %s", name, th.Name)
		}
	}
}

func eachStyle(th *Theme, f func(string, Style)) {
	v := reflect.ValueOf(th).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch s := v.Field(i).Interface().(type) {
		case Style:
			f(name, s)
		case [4]Style:
			for _, x := range s {
				f(name, x)
			}
		case [5]Style:
			for _, x := range s {
				f(name, x)
			}
		}
	}
}

func TestStyles(t *testing.T) {
	red := makeStyle("31", "", 0)
	for _, c := range []struct{ got, want string }{
		{Style{}.Render("x"), "x"},
		{red.Render("x"), "\x1b[31mx\x1b[0m"},
		{red.Render(""), ""},
		{red.With(Bold | Underline).Render("x"), "\x1b[1;4;31mx\x1b[0m"},
		{makeStyle("", "40", Bold).Over(red).Render("x"), "\x1b[1;31;40mx\x1b[0m"},
		{red.Over(makeStyle("32", "", Italic)).Render("x"), "\x1b[3;31mx\x1b[0m"},
		{string(red.Append([]byte("a"), "x")), "a\x1b[31mx\x1b[0m"},
		{(&colour{0x102030, 17, 9}).sgr(TrueColour, false), "38;2;16;32;48"},
		{(&colour{0x102030, 17, 9}).sgr(Colour256, true), "48;5;17"},
		{(&colour{0x102030, 17, 9}).sgr(Colour16, false), "91"},
		{(&colour{0x102030, 17, 4}).sgr(Colour16, true), "44"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestGlyphsAreOneCell(t *testing.T) {
	for _, g := range []*Glyphs{Braille(), Block(), ASCII()} {
		v := reflect.ValueOf(g).Elem()
		for i := range v.NumField() {
			name := v.Type().Field(i).Name
			var list []string
			switch s := v.Field(i).Interface().(type) {
			case string:
				list = []string{s}
			case []string:
				list = s
			}
			for _, s := range list {
				if name != "Name" && ansi.StringWidth(s) != 1 {
					t.Errorf("%s: %s %q is %d cells", g.Name, name, s, ansi.StringWidth(s))
				}
				if name != "Name" && g.Name == "ascii" && (len(s) != 1 || s[0] > 0x7e) {
					t.Errorf("ascii: %s is %q", name, s)
				}
			}
		}
	}
}

// luminance is the relative luminance of WCAG 2.1.
func luminance(rgb uint32) float64 {
	lin := func(c uint32) float64 {
		f := float64(c&0xff) / 255
		if f <= 0.03928 {
			return f / 12.92
		}
		return math.Pow((f+0.055)/1.055, 2.4)
	}
	return 0.2126*lin(rgb>>16) + 0.7152*lin(rgb>>8) + 0.0722*lin(rgb)
}

func contrast(a, b uint32) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// x256 returns the colour of xterm's palette from 16 up.
func x256(n uint8) uint32 {
	if n >= 232 {
		g := uint32(n-232)*10 + 8
		return g<<16 | g<<8 | g
	}
	step := func(v uint8) uint32 {
		if v == 0 {
			return 0
		}
		return uint32(v)*40 + 55
	}
	n -= 16
	return step(n/36)<<16 | step(n/6%6)<<8 | step(n%6)
}

// TestContrast holds text to 4.5 to 1 and what may be overlooked to 3 to 1, on the
// background of the theme and, for program text, on that of code.
func TestContrast(t *testing.T) {
	for name, p := range map[string]*palette{Dark: &dark, Light: &light} {
		check := func(what string, c colour, back uint32, least float64) {
			for depth, rgb := range map[string]uint32{"true": c.rgb, "256": x256(c.x256)} {
				if got := contrast(rgb, back); got < least {
					t.Errorf("%s: %s has contrast %.2f (%s colours), the least is %.1f", name, what, got, depth, least)
				}
			}
		}
		for what, c := range map[string]colour{"accent": p.accent, "heading": p.heading, "good": p.good, "warn": p.warn, "bad": p.bad} {
			check(what, c, p.back, 4.5)
		}
		check("dim", p.dim, p.back, 3)
		for what, c := range map[string]colour{"keyword": p.keyword, "function": p.function, "literal": p.literal, "number": p.num} {
			check(what, c, p.codeBack.rgb, 4.5)
		}
		check("comment", p.com, p.codeBack.rgb, 3)
		check("accent on a chosen row", p.accent, p.selected.rgb, 3)
	}
}

package theme

// A palette is the colours of a theme. The contrast of text colours against the
// background the theme is made for is tested (WCAG 2.1, 4.5 to 1; 3 to 1 for
// what may be overlooked).
type palette struct {
	back                                 uint32 // the assumed background, for the test
	dim, border, accent, heading         colour
	good, warn, bad                      colour
	selected, codeBack                   colour // backgrounds
	keyword, function, literal, num, com colour
	heat                                 [5]colour
}

var dark = palette{
	back:     0x16181d,
	dim:      colour{0x8b93a1, 245, 8},
	border:   colour{0x5a6270, 240, 8},
	accent:   colour{0x7fb4ff, 111, 12},
	heading:  colour{0xf0c674, 222, 11},
	good:     colour{0x8ccf7e, 114, 10},
	warn:     colour{0xe5b566, 179, 11},
	bad:      colour{0xff7a7a, 210, 9},
	selected: colour{0x2b3240, 237, 4},
	codeBack: colour{0x20242c, 235, 0},
	keyword:  colour{0xc7a0f5, 183, 13},
	function: colour{0x7fb4ff, 111, 12},
	literal:  colour{0x9fd59a, 151, 10},
	num:      colour{0xf2a272, 216, 11},
	com:      colour{0x8b93a1, 245, 8},
	heat: [5]colour{
		{0x3a4a6b, 60, 4}, {0x4f78b0, 67, 12}, {0x6fb3a8, 73, 14}, {0xe5c07b, 180, 11}, {0xff7a7a, 210, 9},
	},
}

var light = palette{
	back:     0xfafafa,
	dim:      colour{0x626a76, 242, 8},
	border:   colour{0x9aa1ac, 247, 8},
	accent:   colour{0x1f5fbf, 25, 4},
	heading:  colour{0x7a4a00, 94, 5},
	good:     colour{0x2a6b25, 22, 2},
	warn:     colour{0x8a5300, 94, 5},
	bad:      colour{0xb3261e, 124, 1},
	selected: colour{0xd8e4f8, 189, 7},
	codeBack: colour{0xeef0f3, 255, 7},
	keyword:  colour{0x6b2fb3, 55, 5},
	function: colour{0x1f5fbf, 25, 4},
	literal:  colour{0x2a6b25, 22, 2},
	num:      colour{0x9c3d00, 94, 1},
	com:      colour{0x626a76, 242, 8},
	heat: [5]colour{
		{0xb8c7e0, 152, 7}, {0x6f97d0, 68, 12}, {0x2f8f83, 30, 6}, {0xb07800, 136, 3}, {0xb3261e, 124, 1},
	},
}

// coloured builds a theme of colours.
func coloured(name string, pal *palette, p Profile, g *Glyphs) *Theme {
	fg := func(c *colour, a Attr) Style { return makeStyle(c.sgr(p, false), "", a) }
	// A background of 16 colours hides some of the user's own foregrounds: code
	// goes without there, and a chosen row is reversed.
	back := func(c *colour) string {
		if p == Colour16 {
			return ""
		}
		return c.sgr(p, true)
	}
	selected := makeStyle("", back(&pal.selected), Bold)
	if p == Colour16 {
		selected = Reverse.Style()
	}
	codeBack := back(&pal.codeBack)
	code := func(c *colour, a Attr) Style { return makeStyle(c.sgr(p, false), codeBack, a) }
	t := &Theme{
		Name: name, Profile: p, Glyphs: g,
		Dim: fg(&pal.dim, 0), Accent: fg(&pal.accent, 0), Heading: fg(&pal.heading, Bold),
		Border: fg(&pal.border, 0), Selected: selected, Frozen: fg(&pal.dim, 0),
		Good: fg(&pal.good, 0), Warn: fg(&pal.warn, 0), Bad: fg(&pal.bad, 0),
		You: fg(&pal.accent, Bold), Model: fg(&pal.good, Bold), Thinking: fg(&pal.dim, Italic),
		Code: makeStyle("", codeBack, 0), CodeSpan: code(&pal.num, 0),
		Link: fg(&pal.accent, Underline), URL: fg(&pal.dim, 0), Quote: fg(&pal.dim, 0),
		Keyword: code(&pal.keyword, 0), Function: code(&pal.function, 0), Literal: code(&pal.literal, 0),
		Number: code(&pal.num, 0), Comment: code(&pal.com, Italic), Operator: makeStyle("", codeBack, 0),
		Series: [4]Style{fg(&pal.good, 0), fg(&pal.accent, 0), fg(&pal.warn, 0), fg(&pal.bad, 0)},
	}
	for i := range t.Heat {
		t.Heat[i] = fg(&pal.heat[i], 0)
	}
	return t
}

// mono builds the theme without colours.
func mono(g *Glyphs) *Theme {
	return &Theme{
		Name: Mono, Glyphs: g,
		Dim: Faint.Style(), Accent: Bold.Style(), Heading: Bold.Style(),
		Border: Faint.Style(), Selected: Reverse.Style(), Frozen: Faint.Style(),
		Warn: Bold.Style(), Bad: (Bold | Reverse).Style(),
		You: Bold.Style(), Model: Bold.Style(), Thinking: Faint.Style(),
		CodeSpan: Bold.Style(), Link: Underline.Style(), URL: Faint.Style(), Quote: Faint.Style(),
		Keyword: Bold.Style(), Comment: Faint.Style(),
	}
}

package theme

import (
	"strconv"
	"strings"
)

// An Attr is a set of text attributes.
type Attr uint8

// The attributes, in the order of their SGR numbers.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Reverse
	Strike
)

var attrCodes = [...]struct {
	a    Attr
	code string
}{{Bold, "1"}, {Faint, "2"}, {Italic, "3"}, {Underline, "4"}, {Reverse, "7"}, {Strike, "9"}}

// A Style is how a piece of text looks. The zero Style leaves text as it is.
type Style struct {
	fg, bg string // SGR parameters, "" for the terminal's own
	attr   Attr
	open   string // the whole sequence, "" for none
}

func makeStyle(fg, bg string, a Attr) Style {
	var codes []string
	for _, c := range attrCodes {
		if a&c.a != 0 {
			codes = append(codes, c.code)
		}
	}
	if fg != "" {
		codes = append(codes, fg)
	}
	if bg != "" {
		codes = append(codes, bg)
	}
	st := Style{fg: fg, bg: bg, attr: a}
	if len(codes) > 0 {
		st.open = "\x1b[" + strings.Join(codes, ";") + "m"
	}
	return st
}

// Attr returns a style of attributes alone.
func (a Attr) Style() Style { return makeStyle("", "", a) }

// Render returns s in this style, closed behind it. s is one line and holds no
// colours of its own.
func (s Style) Render(text string) string {
	if s.open == "" || text == "" {
		return text
	}
	return s.open + text + reset
}

// Append appends s in this style to dst: Render without the string.
func (s Style) Append(dst []byte, text string) []byte {
	if s.open == "" || text == "" {
		return append(dst, text...)
	}
	dst = append(dst, s.open...)
	dst = append(dst, text...)
	return append(dst, reset...)
}

const reset = "\x1b[0m"

// Over returns this style laid over base: attributes add up, colours of base
// stand where this style has none.
func (s Style) Over(base Style) Style {
	if base.open == "" {
		return s
	}
	if s.open == "" {
		return base
	}
	fg, bg := s.fg, s.bg
	if fg == "" {
		fg = base.fg
	}
	if bg == "" {
		bg = base.bg
	}
	return makeStyle(fg, bg, s.attr|base.attr)
}

// With returns this style with attributes added.
func (s Style) With(a Attr) Style { return makeStyle(s.fg, s.bg, s.attr|a) }

// Plain says whether the style changes nothing.
func (s Style) Plain() bool { return s.open == "" }

// A colour is one tone in the three depths terminals have. It is chosen by hand
// for each: a computed neighbour among 16 colours is often unreadable.
type colour struct {
	rgb  uint32 // 0xRRGGBB
	x256 uint8  // xterm's 256
	x16  uint8  // 0 to 15
}

// sgr returns the parameters that select c, for the foreground or background.
func (c *colour) sgr(p Profile, back bool) string {
	if c == nil || p == NoColour {
		return ""
	}
	lead, base, bright := "38", 30, 90
	if back {
		lead, base, bright = "48", 40, 100
	}
	switch p {
	case TrueColour:
		return lead + ";2;" + strconv.Itoa(int(c.rgb>>16)) + ";" + strconv.Itoa(int(c.rgb>>8&0xff)) + ";" + strconv.Itoa(int(c.rgb&0xff))
	case Colour256:
		return lead + ";5;" + strconv.Itoa(int(c.x256))
	}
	if c.x16 < 8 {
		return strconv.Itoa(base + int(c.x16))
	}
	return strconv.Itoa(bright + int(c.x16) - 8)
}

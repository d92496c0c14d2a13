package text

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// TabWidth is the distance of tab stops in cells.
const TabWidth = 4

// Clean returns s with everything that would steer a terminal made visible, so
// that text of any origin can be shown. Line breaks stay (CR LF becomes LF), tabs
// become spaces up to the next stop of their line, other control characters
// become caret notation (ESC is ^[), C1 controls, line and paragraph separators
// and bidirectional embeddings, overrides and isolates become <U+202E>, and bytes
// that are no UTF-8 become U+FFFD. Joiners and directional marks, which real
// text needs, stay. Half-width voiced kana become the full-width letter: the
// Unicode rules count letter and mark as one cluster of one cell, terminals draw
// two cells. A variation selector with nothing to select is dropped: it would
// widen a space before it.
func Clean(s string) string {
	return CleanFrom(s, 0)
}

// CleanFrom is Clean for text that starts at column col of its line: tabs depend
// on it.
func CleanFrom(s string, col int) string {
	if clean(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	line := 0 // where the current line starts in b
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\n':
			b.WriteByte(c)
			line, col = b.Len(), 0
			i++
		case c == '\r' && i+1 < len(s) && s[i+1] == '\n':
			i++
		case c == '\t':
			at := col + Width(b.String()[line:])
			b.WriteString(Spaces(TabWidth - at%TabWidth))
			i++
		case c < 0x20 || c == 0x7f:
			b.WriteByte('^')
			b.WriteByte(c ^ 0x40)
			i++
		case c < utf8.RuneSelf:
			b.WriteByte(c)
			i++
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == utf8.RuneError && n == 1:
				b.WriteString("\ufffd")
			case variation(r) && orphan(b.String()):
			case r == voiced || r == semiVoiced:
				b.WriteRune(r + 0x309b - voiced)
			case r >= 0xff73 && r <= 0xff8e && compose(&b, s[i+n:], r):
				n += len("\uff9e")
			case steers(r):
				b.WriteString("<U+" + strings.ToUpper(hex4(r)) + ">")
			default:
				b.WriteString(s[i : i+n])
			}
			i += n
		}
	}
	return b.String()
}

// CleanLine is Clean for a place of one line: breaks become spaces.
func CleanLine(s string) string {
	s = Clean(s)
	if strings.IndexByte(s, '\n') < 0 {
		return s
	}
	return strings.ReplaceAll(s, "\n", " ")
}

// clean says whether Clean would change nothing.
func clean(s string) bool {
	ascii := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < 0x20 && c != '\n' || c == 0x7f {
			return false
		}
		ascii = ascii && c < utf8.RuneSelf
	}
	if ascii {
		return true
	}
	for i, r := range s {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(s[i:]); n == 1 {
				return false
			}
		}
		if r >= utf8.RuneSelf && (steers(r) || r == voiced || r == semiVoiced || variation(r) && orphan(s[:i])) {
			return false
		}
	}
	return true
}

// steers says whether a rune beyond ASCII could steer the terminal or make a
// line read differently from what it says: C1 controls, the separators that some
// terminals take for line breaks, embeddings, overrides and isolates, the
// deprecated format characters, interlinear annotation, and tags of no flag use.
func steers(r rune) bool {
	switch {
	case r >= 0x80 && r < 0xa0,
		r == 0x2028, r == 0x2029,
		r >= 0x202a && r <= 0x202e,
		r >= 0x2066 && r <= 0x206f,
		r >= 0xfff9 && r <= 0xfffb,
		r == 0xe0001:
		return true
	}
	return false
}

// variation says whether r asks for the form, and so the width, of the character
// before it.
func variation(r rune) bool { return r == 0xfe0e || r == 0xfe0f }

// orphan says whether what follows s has no character to join to.
func orphan(s string) bool {
	return s == "" || s[len(s)-1] == ' ' || s[len(s)-1] == '\n'
}

// The marks of half-width kana.
const (
	voiced     = 0xff9e
	semiVoiced = 0xff9f
)

// kana are the full-width letters of the half-width ones from U+FF76 that take a
// mark, 0 for those that do not.
var kana = [...]rune{
	0x30ab, 0x30ad, 0x30af, 0x30b1, 0x30b3, 0x30b5, 0x30b7, 0x30b9, 0x30bb, 0x30bd,
	0x30bf, 0x30c1, 0x30c4, 0x30c6, 0x30c8, 0, 0, 0, 0, 0,
	0x30cf, 0x30d2, 0x30d5, 0x30d8, 0x30db,
}

// compose writes the half-width letter r with the mark that after begins with as
// one full-width letter, if there is one. The voiced form is the next code point,
// the semi-voiced the one after that.
func compose(b *strings.Builder, after string, r rune) bool {
	mark, _ := utf8.DecodeRuneInString(after)
	switch {
	case r == 0xff73 && mark == voiced:
		b.WriteRune(0x30f4)
		return true
	case r < 0xff76 || kana[r-0xff76] == 0:
		return false
	case mark == voiced:
		b.WriteRune(kana[r-0xff76] + 1)
		return true
	case mark == semiVoiced && r >= 0xff8a:
		b.WriteRune(kana[r-0xff76] + 2)
		return true
	}
	return false
}

func hex4(r rune) string {
	h := strconv.FormatInt(int64(r), 16)
	for len(h) < 4 {
		h = "0" + h
	}
	return h
}

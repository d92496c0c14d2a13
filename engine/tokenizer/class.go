package tokenizer

import (
	"unicode"
	"unicode/utf8"
)

// Class bits of a character, as the pre-tokenising expression needs them.
const (
	han     uint8 = 1 << iota // Script=Han
	upper                     // Lu, Lt, Lm, Lo or M, and not Han
	lower                     // Ll, Lm, Lo or M, and not Han
	word                      // any letter or number (L or N): what alternative 5 stops at
	number                    // N
	space                     // White_Space, 25 code points
	newline                   // CR or LF
	pySpace                   // space and U+001C..U+001F: what the slicing rule counts as space
)

// classes holds the class bits of every code point. A flat table of 1.1 MB is
// one load per character; only the pages of the scripts in use get touched.
type classes [unicode.MaxRune + 1]uint8

// newClasses builds the table for Unicode 16.0: the tables of the standard
// library and what they lack (unicode16.go).
func newClasses() *classes {
	c := new(classes)
	c.add(unicode.Lu, upper|word)
	c.add(unicode.Lt, upper|word)
	c.add(unicode.Ll, lower|word)
	c.add(unicode.Lm, upper|lower|word)
	c.add(unicode.Lo, upper|lower|word)
	c.add(unicode.M, upper|lower) // a mark is neither letter nor number
	c.add(unicode.N, number|word)
	c.add(unicode.White_Space, space|pySpace)
	for _, r := range unicode16 {
		for p := r.lo; p <= r.hi; p++ {
			c[p] |= r.bits
		}
	}
	c.add(unicode.Han, han)
	for r := rune(0x1C); r <= 0x1F; r++ {
		c[r] |= pySpace
	}
	c['\r'] |= newline
	c['\n'] |= newline
	// The two word classes exclude Han.
	for i, bits := range c {
		if bits&han != 0 {
			c[i] = bits &^ (upper | lower)
		}
	}
	return c
}

func (c *classes) add(t *unicode.RangeTable, bits uint8) {
	for _, r := range t.R16 {
		for p := uint32(r.Lo); p <= uint32(r.Hi); p += uint32(r.Stride) {
			c[p] |= bits
		}
	}
	for _, r := range t.R32 {
		for p := r.Lo; p <= r.Hi; p += r.Stride {
			c[p] |= bits
		}
	}
}

// at returns the class bits of the character at s[i:] and its length in bytes.
// A byte that is not valid UTF-8 is a character of one byte of the class of
// U+FFFD, which is none of the above.
func (c *classes) at(s string, i int) (bits uint8, size int) {
	if b := s[i]; b < utf8.RuneSelf {
		return c[b], 1
	}
	r, size := utf8.DecodeRuneInString(s[i:])
	return c[r], size
}

// run returns the end of the longest run from i of characters that have one of
// the bits of some.
func (c *classes) run(s string, i int, some uint8) int {
	for i < len(s) {
		bits, n := c.at(s, i)
		if bits&some == 0 {
			break
		}
		i += n
	}
	return i
}

package text

import "github.com/charmbracelet/x/ansi"

// Width returns the number of cells s takes. Colours take none. A line break
// takes none either: give it one line.
func Width(s string) int {
	if n, ok := quick(s); ok {
		return n
	}
	return ansi.StringWidth(s)
}

// quick measures what most of a screen is: printable ASCII, colours, and the lines,
// blocks and dots that charts are drawn with. Each of them is a cell, and none
// joins the one before. Text with anything else is not measured, ok is false.
func quick(s string) (cells int, ok bool) {
	for i := 0; i < len(s); {
		switch c := s[i]; {
		case c-0x20 <= 0x7e-0x20:
			i++
			cells++
		case c == 0x1b:
			n := sequence(s[i:])
			if n == 0 {
				return 0, false
			}
			i += n
		case c == 0xc2 && i+1 < len(s) && s[i+1] == 0xb7: // middle dot
			i += 2
			cells++
		case c == 0xe2 && i+2 < len(s) && drawn(s[i+1]) && s[i+2]&0xc0 == 0x80:
			i += 3
			cells++
		default:
			return 0, false
		}
	}
	return cells, true
}

// drawn says whether the second byte of three that begin with e2 is that of a line or
// a block (U+2500 to U+259F) or of braille (U+2800 to U+28FF).
func drawn(b byte) bool { return b >= 0x94 && b <= 0x96 || b >= 0xa0 && b <= 0xa3 }

// plain says whether s holds only printable ASCII: one byte is one cell then,
// and most of what a screen shows is that.
func plain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i]-0x20 > 0x7e-0x20 {
			return false
		}
	}
	return true
}

// Plain returns s without its colours.
func Plain(s string) string {
	if plain(s) {
		return s
	}
	return ansi.Strip(s)
}

// Next returns the length in bytes and the width in cells of the first grapheme
// cluster of s, which must not be empty and must not start with an escape
// sequence.
func Next(s string) (size, width int) {
	// A printable ASCII byte is a cluster by itself unless something that joins
	// to it follows, and nothing below 0x80 joins.
	if c := s[0]; c >= 0x20 && c < 0x7f && (len(s) == 1 || s[1] < 0x80) {
		return 1, 1
	}
	cluster, w := ansi.FirstGraphemeCluster(s, ansi.GraphemeWidth)
	if len(cluster) == 0 {
		return 1, 0
	}
	if s[0] < 0x20 || s[0] == 0x7f {
		w = 0
	}
	return len(cluster), w
}

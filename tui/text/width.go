package text

import "github.com/charmbracelet/x/ansi"

// Width returns the number of cells s takes. Colours take none. A line break
// takes none either: give it one line.
func Width(s string) int {
	if plain(s) {
		return len(s)
	}
	return ansi.StringWidth(s)
}

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

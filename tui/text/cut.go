package text

import "strings"

// Cut returns the longest beginning of s that fits in w cells. Colours within
// stay closed: sequences behind the cut are kept.
func Cut(s string, w int) string {
	if w <= 0 {
		return ""
	}
	if len(s) <= w && plain(s) {
		return s
	}
	if plain(s) {
		return s[:w]
	}
	return keep(s, w)
}

// keep is Cut for any text. x/ansi has a Truncate, but it takes the digit of a
// keycap emoji for a cell of its own and so exceeds the width it measures.
func keep(s string, w int) string {
	i := 0
	for i < len(s) {
		if n := sequence(s[i:]); n > 0 {
			i += n
			continue
		}
		n, cw := Next(s[i:])
		if cw > w {
			break
		}
		i, w = i+n, w-cw
	}
	if i == len(s) || strings.IndexByte(s[i:], 0x1b) < 0 {
		return s[:i]
	}
	return s[:i] + sequences(s[i:])
}

// sequence returns the length of the escape sequence that s begins with, 0 if it
// begins with something else (ECMA-48, 5.4).
func sequence(s string) int {
	if len(s) < 2 || s[0] != 0x1b || s[1] != '[' {
		return 0
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 0x40 && c <= 0x7e:
			return i + 1
		case c < 0x20 || c > 0x3f:
			return 0
		}
	}
	return 0
}

// sequences returns the escape sequences in s without the text.
func sequences(s string) string {
	var b strings.Builder
	for i := strings.IndexByte(s, 0x1b); i >= 0 && i < len(s); {
		if n := sequence(s[i:]); n > 0 {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		i++
		next := strings.IndexByte(s[i:], 0x1b)
		if next < 0 {
			break
		}
		i += next
	}
	return b.String()
}

// Elide returns s if it fits in w cells, or else its beginning with mark at the
// end, w cells at most. A mark that does not fit is left out.
func Elide(s string, w int, mark string) string {
	if Width(s) <= w {
		return s
	}
	m := Width(mark)
	if m > w {
		return Cut(s, w)
	}
	return Cut(s, w-m) + mark
}

// CutLeft returns the longest ending of s that fits in w cells.
func CutLeft(s string, w int) string {
	n := Width(s)
	if n <= w {
		return s
	}
	if w <= 0 {
		return ""
	}
	if plain(s) {
		return s[n-w:]
	}
	return dropTo(s, n-w)
}

// dropTo drops at least n cells from the beginning of s. A wide cluster that
// the border halves is dropped whole.
func dropTo(s string, n int) string {
	var kept strings.Builder // sequences on the way: they colour what is left
	for s != "" {
		if k := sequence(s); k > 0 {
			kept.WriteString(s[:k])
			s = s[k:]
			continue
		}
		size, w := Next(s)
		// Marks of no width belong to what was dropped.
		if n <= 0 && w > 0 {
			break
		}
		s, n = s[size:], n-w
	}
	return kept.String() + s
}

// CutMiddle returns s if it fits in w cells, or else its two ends with mark
// between them: for paths and names, whose ends tell the most.
func CutMiddle(s string, w int, mark string) string {
	if Width(s) <= w {
		return s
	}
	m := Width(mark)
	if w <= m {
		return Cut(s, w)
	}
	left := (w - m + 1) / 2
	head := Cut(s, left)
	return head + mark + CutLeft(s, w-m-left)
}

// Pad returns s with spaces behind it, w cells wide. A longer s is cut.
func Pad(s string, w int) string {
	n := Width(s)
	if n > w {
		// A wide cluster at the border leaves a cell to fill.
		s = Cut(s, w)
		n = Width(s)
	}
	out := s + Spaces(w-n)
	if !plain(s) && n < w {
		// A letter that joins to what follows it (an Arabic number sign) would
		// take the first space in.
		out += Spaces(w - Width(out))
	}
	return out
}

// PadLeft returns s with spaces before it, w cells wide. A longer s loses its
// beginning.
func PadLeft(s string, w int) string {
	n := Width(s)
	if n > w {
		s = CutLeft(s, w)
		n = Width(s)
	}
	out := Spaces(w-n) + s
	if !plain(s) && n < w {
		// A tone of skin alone has two cells, and none behind a space.
		out = Spaces(w-Width(out)) + out
	}
	return out
}

// Join returns left and right at the two ends of a line of w cells. If both do
// not fit, left gives way, with mark where it was cut.
func Join(left, right string, w int, mark string) string {
	r := Width(right)
	if r >= w {
		return Pad(right, w)
	}
	room := w - r - 1
	left = Elide(left, room, mark)
	return left + Spaces(w-Width(left)-r) + right
}

const blanks = "                                                                                                                                "

// Spaces returns n spaces, none for a negative n.
func Spaces(n int) string {
	if n <= 0 {
		return ""
	}
	if n <= len(blanks) {
		return blanks[:n]
	}
	return strings.Repeat(" ", n)
}

// Clamp returns exactly h lines of exactly w cells: longer lines are cut, missing
// ones are blank, and lines beyond h are dropped from the end. It is the last
// step of everything that draws: one line too many and the renderer would drop
// the top of the screen. The result is a slice of its own.
func Clamp(lines []string, w, h int) []string {
	if h <= 0 {
		return nil
	}
	w = max(w, 0)
	out := make([]string, h)
	blank := Spaces(w)
	for i := range out {
		if i < len(lines) {
			out[i] = Pad(lines[i], w)
		} else {
			out[i] = blank
		}
	}
	return out
}

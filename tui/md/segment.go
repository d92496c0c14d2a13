package md

import "bytes"

// kind is what the first line of a segment says it is, as far as its end depends
// on it.
type kind uint8

const (
	kindNone   kind = iota
	kindText        // paragraphs, headings, tables, HTML of types 6 and 7
	kindQuote       // a quotation
	kindList        // goes on past blank lines while lines are indented or are items
	kindFence       // goes on until its closing fence
	kindIndent      // indented code: goes on past blank lines while lines are indented
	kindHTML        // HTML of types 1 to 5: goes on until its end mark
)

// A scanner divides a document into segments: top-level blocks, or runs of them
// without a blank line between. It sees the document line by line and decides
// from what it has seen, so a division once made stands. Parsing the segments one
// by one gives what parsing the whole would (CommonMark 0.31, chapter 3), link
// references excepted. The zero value stands at the top of a document.
type scanner struct {
	kind   kind
	closed bool // nothing more can join the segment
	blank  bool // the last line was blank
	// A list's marker (its bullet, or '.' or ')' behind a number) and the column
	// where the text of its last item starts.
	marker  byte
	content int
	// A fence's character, length and indent.
	fence       byte
	fenceLen    int
	fenceIndent int
	end         string // what ends an HTML segment
	bare        bool   // the last line of a quotation was empty: none goes on lazily
}

// line takes the next line, without its break, and says whether it begins a new
// segment. Blank lines never do.
func (s *scanner) line(l []byte) bool {
	if s.kind == kindFence && !s.closed {
		s.closed = closesFence(l, s.fence, s.fenceLen)
		return false
	}
	if s.kind == kindHTML && !s.closed {
		s.closed = bytes.Contains(bytes.ToLower(l), []byte(s.end))
		return false
	}
	ind, rest := indent(l)
	if len(rest) == 0 {
		s.blank = true
		return false
	}
	blank := s.blank || s.kind == kindNone
	s.blank = false
	if s.joins(ind, rest, blank) {
		return false
	}
	*s = begin(ind, rest)
	return true
}

// joins says whether a line that is not blank belongs to the open segment.
func (s *scanner) joins(ind int, rest []byte, blank bool) bool {
	if s.kind == kindNone || s.closed {
		return false
	}
	switch s.kind {
	case kindList:
		if ind >= s.content {
			return true
		}
		if ind < 4 {
			if m, width := listMarker(rest); m == s.marker && !isBreak(rest) {
				s.content = ind + width
				return true
			}
			if interruptsList(rest) {
				return false
			}
		}
		// A paragraph goes on lazily.
		return !blank
	case kindQuote:
		if blank {
			return false
		}
		if ind < 4 && rest[0] == '>' {
			s.bare = bareQuote(rest)
			return true
		}
		return !s.bare && (ind >= 4 || !interruptsList(rest))
	case kindIndent:
		return ind >= 4
	}
	if blank {
		return false
	}
	if ind < 4 {
		if _, n := opensFence(rest); n > 0 || htmlEnd(rest) != "" || isHeading(rest) || rest[0] == '>' {
			return false
		}
		// A list needs its own rule about blank lines. Only one that may
		// interrupt a paragraph begins here.
		if m, width := listMarker(rest); m != 0 && !isBreak(rest) && interrupts(rest, m, width) {
			return false
		}
	}
	return true
}

// interruptsList says whether a line, less indented than an item's text and no
// item of the same list, ends the list even without a blank line before it. It
// ends a quotation too, if it is not quoted itself.
func interruptsList(rest []byte) bool {
	if _, n := opensFence(rest); n > 0 || htmlEnd(rest) != "" || isBreak(rest) || rest[0] == '>' {
		return true
	}
	if m, _ := listMarker(rest); m != 0 {
		return true
	}
	return isHeading(rest)
}

// isHeading says whether a line is a heading with number signs.
func isHeading(rest []byte) bool {
	n := len(rest) - len(bytes.TrimLeft(rest, "#"))
	return n > 0 && n < 7 && (n == len(rest) || rest[n] == ' ' || rest[n] == '\t')
}

func bareQuote(rest []byte) bool { return len(bytes.TrimLeft(rest, "> \t")) == 0 }

// begin returns the state after the first line of a segment.
func begin(ind int, rest []byte) scanner {
	if ind >= 4 {
		return scanner{kind: kindIndent}
	}
	if c, n := opensFence(rest); n > 0 {
		return scanner{kind: kindFence, fence: c, fenceLen: n, fenceIndent: ind}
	}
	if m, width := listMarker(rest); m != 0 && !isBreak(rest) {
		return scanner{kind: kindList, marker: m, content: ind + width}
	}
	if end := htmlEnd(rest); end != "" {
		s := scanner{kind: kindHTML, end: end}
		s.closed = bytes.Contains(bytes.ToLower(rest[2:]), []byte(end))
		return s
	}
	if rest[0] == '>' {
		return scanner{kind: kindQuote, bare: bareQuote(rest)}
	}
	// A heading and a rule are one line.
	return scanner{kind: kindText, closed: isBreak(rest) || isHeading(rest)}
}

// indent returns the columns of white space before a line's text, and the text
// with spaces at its end removed.
func indent(l []byte) (int, []byte) {
	col := 0
	for i, c := range l {
		switch c {
		case ' ':
			col++
		case '\t':
			col += 4 - col%4
		default:
			return col, bytes.TrimRight(l[i:], " \t")
		}
	}
	return col, nil
}

// opensFence returns the character and length of a fence that a line opens.
func opensFence(rest []byte) (byte, int) {
	c := rest[0]
	if c != '`' && c != '~' {
		return 0, 0
	}
	n := 0
	for n < len(rest) && rest[n] == c {
		n++
	}
	if n < 3 || c == '`' && bytes.IndexByte(rest[n:], '`') >= 0 {
		return 0, 0
	}
	return c, n
}

func closesFence(l []byte, c byte, n int) bool {
	ind, rest := indent(l)
	return ind < 4 && len(rest) >= n && len(bytes.TrimLeft(rest, string(c))) == 0
}

// listMarker returns the kind of list item a line begins, and the width of its
// marker with the space behind it.
func listMarker(rest []byte) (byte, int) {
	n := 0
	switch c := rest[0]; {
	case c == '-' || c == '*' || c == '+':
		n = 1
	case c >= '0' && c <= '9':
		for n < len(rest) && n < 10 && rest[n] >= '0' && rest[n] <= '9' {
			n++
		}
		if n > 9 || n == len(rest) || rest[n] != '.' && rest[n] != ')' {
			return 0, 0
		}
		n++
	default:
		return 0, 0
	}
	m := rest[n-1]
	if n == len(rest) {
		return m, n + 1
	}
	ind, after := indent(rest[n:])
	if ind == 0 {
		return 0, 0
	}
	// Five columns or more: the item begins with indented code, one column in.
	if ind > 4 || len(after) == 0 {
		ind = 1
	}
	return m, n + ind
}

// interrupts says whether an item may begin right behind a paragraph: not an
// empty one, and of the numbered ones only 1.
func interrupts(rest []byte, m byte, width int) bool {
	if len(rest) < width {
		return false
	}
	return m != '.' && m != ')' || rest[0] == '1' && rest[1] == m
}

// isBreak says whether a line is a thematic break, which looks like a bullet.
func isBreak(rest []byte) bool {
	c := rest[0]
	if c != '-' && c != '*' && c != '_' {
		return false
	}
	n := 0
	for _, b := range rest {
		switch b {
		case c:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

// htmlEnd returns the end mark of an HTML block that blank lines do not end, "" if
// the line opens none (CommonMark 4.6, conditions 1 to 5).
func htmlEnd(rest []byte) string {
	if rest[0] != '<' {
		return ""
	}
	low := bytes.ToLower(rest)
	for _, tag := range []string{"script", "pre", "style", "textarea"} {
		if after, ok := bytes.CutPrefix(low[1:], []byte(tag)); ok &&
			(len(after) == 0 || after[0] == ' ' || after[0] == '\t' || after[0] == '>') {
			return "</" + tag + ">"
		}
	}
	switch {
	case bytes.HasPrefix(low, []byte("<!--")):
		return "-->"
	case bytes.HasPrefix(low, []byte("<?")):
		return "?>"
	case bytes.HasPrefix(low, []byte("<![cdata[")):
		return "]]>"
	case len(low) > 2 && low[1] == '!' && low[2] >= 'a' && low[2] <= 'z':
		return ">"
	}
	return ""
}

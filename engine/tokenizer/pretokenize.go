package tokenizer

import "unicode/utf8"

// pieceEnd returns the end of the piece that begins at s[i]. Pieces are the
// matches of this expression (spec 5.2), whose alternatives are tried in order
// at every position, backtracking inside each:
//
//	1  [\p{Han}]+
//	2  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	3  [^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]+[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	4  \p{N}{1,3}
//	5   ?[^\s\p{L}\p{N}]+[\r\n]*
//	6  \s*[\r\n]+
//	7  \s+(?!\S)
//	8  \s+
//
// i must lie inside s. The slice ends where s ends: look-ahead sees nothing
// beyond it.
func (c *classes) pieceEnd(s string, i int) int {
	first, n := c.at(s, i)
	if first&han != 0 {
		return c.run(s, i+n, han)
	}
	if end := c.wordEnd(s, i, first, n); end > 0 {
		return end
	}
	if first&number != 0 {
		return c.numberEnd(s, i)
	}
	if end := c.symbolsEnd(s, i); end > 0 {
		return end
	}
	// Letters, numbers and symbols are done with: this is white space.
	return c.spaceEnd(s, i)
}

// wordEnd matches alternatives 2 and 3, or returns 0. The optional first
// character, "prefix", is tried consumed before it is tried left out; marks are
// the one kind that may be both the prefix and part of the word.
func (c *classes) wordEnd(s string, i int, first uint8, n int) int {
	prefix := first&(word|newline) == 0
	inside := first&(upper|lower) != 0
	var lower1, upper1, lower0, upper0 int
	if prefix {
		if lower1, upper1 = c.caseRuns(s, i+n); lower1 > 0 {
			return c.suffixEnd(s, lower1)
		}
	}
	if inside {
		if lower0, upper0 = c.caseRuns(s, i); lower0 > 0 {
			return c.suffixEnd(s, lower0)
		}
	}
	switch {
	case upper1 > 0:
		return c.suffixEnd(s, upper1)
	case upper0 > 0:
		return c.suffixEnd(s, upper0)
	}
	return 0
}

// caseRuns scans a word from i once for both alternatives. lowerEnd is where
// [upper]*[lower]+ ends, upperEnd where [upper]+ ends; 0 is no match.
//
// [upper]* takes the whole run. If a lower character follows, [lower]+ takes
// what it can. If not, the run gives characters back until one of them is in
// both classes: that is the last such character, and since none after it is in
// the lower class the match ends right behind it.
func (c *classes) caseRuns(s string, i int) (lowerEnd, upperEnd int) {
	j := i
	for j < len(s) {
		bits, n := c.at(s, j)
		if bits&upper == 0 {
			if bits&lower != 0 {
				return c.run(s, j+n, lower), j
			}
			break
		}
		j += n
		if bits&lower != 0 {
			lowerEnd = j
		}
	}
	if j == i {
		return 0, 0
	}
	return lowerEnd, j
}

// suffixEnd matches (?i:'s|'t|'re|'ve|'m|'ll|'d)? at i. Folding makes U+017F an
// s; no other letter of the list has a fold outside ASCII.
func (c *classes) suffixEnd(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch s[i+1] | 0x20 { // lower-cases letters; no other byte turns into one of these
	case 's', 't', 'm', 'd':
		return i + 2
	case 'r', 'v':
		if i+2 < len(s) && s[i+2]|0x20 == 'e' {
			return i + 3
		}
	case 'l':
		if i+2 < len(s) && s[i+2]|0x20 == 'l' {
			return i + 3
		}
	}
	if r, n := utf8.DecodeRuneInString(s[i+1:]); r == 'ſ' {
		return i + 1 + n
	}
	return i
}

// numberEnd matches \p{N}{1,3}.
func (c *classes) numberEnd(s string, i int) int {
	for range 3 {
		if i == len(s) {
			break
		}
		bits, n := c.at(s, i)
		if bits&number == 0 {
			break
		}
		i += n
	}
	return i
}

// symbolsEnd matches " ?[^\s\p{L}\p{N}]+[\r\n]*", or returns 0.
func (c *classes) symbolsEnd(s string, i int) int {
	if s[i] == ' ' {
		i++
	}
	j := i
	for j < len(s) {
		bits, n := c.at(s, j)
		if bits&(space|word) != 0 {
			break
		}
		j += n
	}
	if j == i {
		return 0
	}
	return c.run(s, j, newline)
}

// spaceEnd matches alternatives 6 to 8 at white space. If the run holds a line
// end the piece ends after the last one. If not, it is the run without its last
// character, which belongs to what follows, unless the run ends the text or is
// that one character.
func (c *classes) spaceEnd(s string, i int) int {
	afterNewline, last := 0, i
	j := i
	for j < len(s) {
		bits, n := c.at(s, j)
		if bits&space == 0 {
			break
		}
		last = j
		j += n
		if bits&newline != 0 {
			afterNewline = j
		}
	}
	switch {
	case afterNewline > 0:
		return afterNewline
	case j == len(s) || last == i:
		return j
	default:
		return last
	}
}

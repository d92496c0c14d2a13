package session

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The index of words holds, for every title and turn, which words occur in it,
// not where: positions would make it four times larger. Phrases are checked
// against the text itself.
//
// The index's tokenizer takes a run of Chinese or Japanese characters for one
// word. Since it stores no text, what it is given need not be the text: every
// such character is set apart, so that any substring of a run is found by its
// characters, then checked. Removing a text from the index takes the very
// string that was put in; spread must therefore never change for a character
// without a migration that builds the index anew.

// spread sets the characters of scripts without spaces apart.
func spread(s string) string {
	if !strings.ContainsFunc(s, unspaced) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) * 5 / 3)
	for _, r := range s {
		if unspaced(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unspaced reports scripts written without spaces between words, by fixed
// ranges: Thai to Khmer, kana, Han, and the Han of the supplementary planes.
// (The unicode package's tables change with its version.)
func unspaced(r rune) bool {
	switch {
	case r < 0x0e00:
		return false
	case r <= 0x0eff, r >= 0x1000 && r <= 0x109f, r >= 0x1780 && r <= 0x17ff:
		return true
	case r >= 0x3040 && r <= 0x30ff, r >= 0x3400 && r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff:
		return true
	case r >= 0xf900 && r <= 0xfaff, r >= 0x20000 && r <= 0x3ffff:
		return true
	}
	return false
}

// indexedText is what of a turn the index knows.
func indexedText(text, reasoning string) string {
	if reasoning == "" {
		return text
	}
	return text + "\n" + reasoning
}

func indexWords(c *conn, row int64, text string) error {
	return c.exec(`INSERT INTO words(rowid, text) VALUES(?, ?)`, row, strings.ToValidUTF8(spread(text), " "))
}

func unindexWords(c *conn, row int64, text string) error {
	return c.exec(`INSERT INTO words(words, rowid, text) VALUES('delete', ?, ?)`, row, strings.ToValidUTF8(spread(text), " "))
}

// A term is one thing a query asks for: a word, the beginning of one, or a
// phrase.
type term struct {
	words  []string // folded; several must follow each other
	prefix bool     // the last word may go on
}

// parseQuery splits what a user typed. "Quoted words" are a phrase. The last
// word of a query that does not end in a space or quote may be the beginning of
// a longer one, since it may still be being typed.
func parseQuery(q string) []term {
	var terms []term
	quoted := false
	for i, part := range strings.Split(q, `"`) {
		if quoted = i%2 == 1; quoted {
			terms = appendTerm(terms, part)
			continue
		}
		for _, w := range strings.Fields(part) {
			terms = appendTerm(terms, w)
		}
	}
	if n := len(terms); n > 0 && !quoted && !strings.HasSuffix(q, `"`) {
		last, _ := utf8.DecodeLastRuneInString(q)
		terms[n-1].prefix = inWord(last)
	}
	return terms
}

func appendTerm(terms []term, text string) []term {
	words := splitWords(text)
	if len(words) == 0 {
		return terms
	}
	return append(terms, term{words: words})
}

// splitWords cuts text as the index does.
func splitWords(s string) []string {
	var words []string
	eachWord(s, func(from, to int) bool {
		words = append(words, foldCase(s[from:to]))
		return true
	})
	return words
}

// eachWord calls f with the place of every word until f returns false. Letters,
// numbers and marks make words; characters of unspaced scripts are one each.
func eachWord(s string, f func(from, to int) bool) {
	from := -1
	for i, r := range s {
		switch in := inWord(r); {
		case in && unspaced(r):
			if from >= 0 && !f(from, i) || !f(i, i+utf8.RuneLen(r)) {
				return
			}
			from = -1
		case in && from < 0:
			from = i
		case !in && from >= 0:
			if !f(from, i) {
				return
			}
			from = -1
		}
	}
	if from >= 0 {
		f(from, len(s))
	}
}

func inWord(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsNumber(r) || unicode.IsMark(r) || unicode.Is(unicode.Co, r)
}

// find returns the place of the term's first occurrence in text: its words one
// after another, whatever stands between them. It is stricter than the index
// about accents, which the index ignores.
func (t term) find(text string) (from, to int, ok bool) {
	var starts, ends []int // of the last len(t.words) words
	eachWord(text, func(a, b int) bool {
		starts, ends = append(starts, a), append(ends, b)
		n := len(starts) - len(t.words)
		if n < 0 {
			return true
		}
		for i, w := range t.words {
			word := text[starts[n+i]:ends[n+i]]
			if t.prefix && i == len(t.words)-1 {
				if end, fits := prefixFold(word, w); fits {
					from, to, ok = starts[n], starts[n+i]+end, true
					return false
				}
				return true
			}
			if !strings.EqualFold(word, w) {
				return true
			}
		}
		from, to, ok = starts[n], b, true
		return false
	})
	return from, to, ok
}

// prefixFold reports whether word begins with w but for case, and where w ends
// in it.
func prefixFold(word, w string) (end int, ok bool) {
	for i, r := range word {
		if w == "" {
			return i, true
		}
		want, size := utf8.DecodeRuneInString(w)
		if unicode.ToLower(r) != want {
			return 0, false
		}
		w = w[size:]
	}
	return len(word), w == ""
}

// match gives the query in the index's language: all words must occur.
func match(terms []term) string {
	var b strings.Builder
	for _, t := range terms {
		for i, w := range t.words {
			if b.Len() > 0 {
				b.WriteString(" AND ")
			}
			b.WriteString(`"` + w + `"`)
			if t.prefix && i == len(t.words)-1 {
				b.WriteByte('*')
			}
		}
	}
	return b.String()
}

// foldCase lowers s for comparisons.
func foldCase(s string) string { return strings.Map(unicode.ToLower, s) }

package tui

import (
	"path"
	"strconv"
	"strings"
)

// endMarks are what belongs to a sentence rather than to the path before it.
const endMarks = ",.;:!?"

// attachments finds the @path words of a text: @file, @folder/, @*.md, @file#10-40,
// and @"a path with blanks"#10-40. A lone @ and an address of mail are not meant.
func attachments(s string) []Attachment {
	var out []Attachment
	for {
		s = strings.TrimLeft(s, " \t\n")
		if s == "" {
			return out
		}
		word, rest := s, ""
		if i := strings.IndexAny(s, " \t\n"); i >= 0 {
			word, rest = s[:i], s[i:]
		}
		name, lines := "", ""
		if quoted, ok := strings.CutPrefix(s, `@"`); ok && strings.Contains(quoted, `"`) {
			name, rest, _ = strings.Cut(quoted, `"`)
			word, rest = rest, ""
			if i := strings.IndexAny(word, " \t\n"); i >= 0 {
				word, rest = word[:i], word[i:]
			}
			lines, _ = strings.CutPrefix(strings.TrimRight(word, endMarks), "#")
		} else if name, ok = strings.CutPrefix(strings.TrimRight(word, endMarks), "@"); !ok {
			name = ""
		}
		s = rest
		if name == "" {
			continue
		}
		a := Attachment{Path: name}
		if lines == "" {
			name, lines, _ = strings.Cut(name, "#")
		}
		from, to, _ := strings.Cut(lines, "-")
		n, err1 := strconv.Atoi(from)
		m, err2 := strconv.Atoi(to)
		if err1 == nil && err2 == nil && n > 0 && m >= n {
			a = Attachment{Path: name, From: n, To: m}
		}
		if strings.HasSuffix(a.Path, "/") {
			a.Path = path.Clean(a.Path) + "/"
		}
		out = append(out, a)
	}
}

// A mention is the path behind an @ that the cursor stands at the end of.
type mention struct {
	start, end int // of it in the text, the @ and quotes included
	path       string
}

// mentioned finds the mention that ends at a place in a text.
func mentioned(s string, at int) (mention, bool) {
	before := s[:at]
	if i := strings.LastIndex(before, `@"`); i >= 0 && begins(before, i) && !strings.ContainsAny(before[i+2:], "\"\n") {
		end := at
		if strings.HasPrefix(s[at:], `"`) {
			end++
		}
		return mention{i, end, before[i+2:]}, true
	}
	i := strings.LastIndexAny(before, " \t\n") + 1
	if !strings.HasPrefix(before[i:], "@") {
		return mention{}, false
	}
	return mention{i, at, before[i+1:]}, true
}

// begins reports whether a word begins at i.
func begins(s string, i int) bool { return i == 0 || strings.ContainsRune(" \t\n", rune(s[i-1])) }

// complete writes a path in the place of a mention, in quotes if it needs them; the
// cursor stands behind the path, where a folder's goes on.
func (e *input) complete(m mention, p string) {
	written, back := "@"+p, 0
	if strings.ContainsAny(p, " \t#") || p != "" && strings.ContainsRune(endMarks, rune(p[len(p)-1])) {
		written = `@"` + p + `"`
		if strings.HasSuffix(p, "/") {
			back = 1
		}
	}
	e.text = e.text[:m.start] + written + e.text[m.end:]
	e.at = m.start + len(written) - back
}

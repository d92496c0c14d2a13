package tui

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dustin/go-humanize"

	"deltafin/session"
)

// namedFiles is how many attached files a question names; the others are counted.
const namedFiles = 3

// asked is a question as it is shown: what was typed, and the names of the attached
// files in place of their text, which follows it for the model.
func asked(u *session.Turn) string {
	if len(u.Sources) == 0 {
		return asTyped(u.Body.Text)
	}
	first := &u.Sources[0]
	typed, _, ok := strings.Cut(u.Body.Text, "\n\n--- "+filepath.ToSlash(first.Place)+rangeOf(first)+" ---\n")
	if !ok { // a source of another kind
		return asTyped(u.Body.Text)
	}
	var b strings.Builder
	b.WriteString(asTyped(typed) + "\n")
	var all int64
	for i := range u.Sources {
		s := &u.Sources[i]
		if all += s.Bytes; i < namedFiles {
			fmt.Fprintf(&b, "\n`@ %s (%s)`  ", strings.ReplaceAll(filepath.ToSlash(s.Place)+rangeOf(s), "`", "'"), humanize.Bytes(uint64(s.Bytes)))
		}
	}
	if more := len(u.Sources) - namedFiles; more > 0 {
		fmt.Fprintf(&b, "\n`@ %d more, %s in all`", more, humanize.Bytes(uint64(all)))
	}
	return b.String()
}

// asTyped is Markdown that keeps the lines as they were typed: in Markdown alone those
// of a paragraph flow together. Code stays as it is.
func asTyped(s string) string {
	lines := strings.Split(s, "\n")
	fence := ""
	for i, l := range lines[:len(lines)-1] {
		bare := strings.TrimLeft(l, " ")
		switch {
		case fence != "":
			if strings.HasPrefix(bare, fence) {
				fence = ""
			}
		case strings.HasPrefix(bare, "```"), strings.HasPrefix(bare, "~~~"):
			fence = bare[:3]
		case bare != "" && strings.TrimSpace(lines[i+1]) != "" && !strings.HasPrefix(l, "    ") && !strings.HasPrefix(l, "\t"):
			lines[i] = strings.TrimRight(l, " ") + "  "
		}
	}
	return strings.Join(lines, "\n")
}

func rangeOf(s *session.Source) string {
	if s.Range == "" {
		return ""
	}
	return "#" + s.Range
}

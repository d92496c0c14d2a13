package chat

import "strings"

// A tag is the text between an open or close marker and its separator.
type tag struct {
	name  string
	attrs []attr
}

type attr struct{ key, value string }

// attr returns the value of the first attribute of that key, or "".
func (t tag) attr(key string) string {
	for _, a := range t.attrs {
		if a.key == key {
			return a.value
		}
	}
	return ""
}

// parseTag reads a name followed by key="value" pairs. Where that form breaks
// off, what was read so far counts.
func parseTag(text string) tag {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	t := tag{name: name}
	for {
		key, after, ok := strings.Cut(rest, `="`)
		if !ok {
			return t
		}
		value, after, ok := strings.Cut(after, `"`)
		if !ok {
			return t
		}
		t.attrs = append(t.attrs, attr{strings.TrimSpace(key), unescape(value)})
		rest = after
	}
}

package chat

import (
	"encoding/json"
	"errors"
	"strings"
)

// An argument is one argument element of a call.
type argument struct {
	key  string
	kind string // string, number, boolean, null, object or array
	body string // the decoded string, else JSON text
}

// arguments returns the argument elements of a call. ok is false for a text
// that is no JSON object: it is then rendered raw, in a json element.
//
// Arguments given as an object are written anew, values separated by ", " and
// ": ". Those given as a text are parsed one level deep, and each value that is
// no string keeps the very text it had (spec 5.4, later revision).
func arguments(c *ToolCall) (args []argument, ok bool, err error) {
	switch {
	case c.Object:
		args, err = objectArguments(c.Arguments)
		return args, true, err
	case c.Arguments == "":
		return nil, true, nil
	}
	args, ok = textArguments(c.Arguments)
	return args, ok, nil
}

func objectArguments(text string) ([]argument, error) {
	v, err := decode([]byte(text))
	if err != nil {
		return nil, err
	}
	obj, ok := v.(object)
	if !ok {
		return nil, errors.New("not a JSON object")
	}
	var args []argument
	for _, m := range obj {
		a := argument{key: m.key}
		if s, ok := m.value.(string); ok {
			a.kind, a.body = "string", s
		} else if a.body, err = encodeJSON(m.value, spaced); err != nil {
			return nil, err
		} else {
			a.kind = kindOf(a.body)
		}
		args = append(args, a)
	}
	return args, nil
}

// kindOf names the kind of a valid JSON value by its first byte.
func kindOf(value string) string {
	switch value[0] {
	case '"':
		return "string"
	case '{':
		return "object"
	case '[':
		return "array"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	return "number"
}

// jsonSpace is what may stand between the items of a JSON text.
const jsonSpace = " \t\n\r"

// textArguments cuts the text of a JSON object one level deep. Duplicate keys
// are all kept, and whatever follows the closing brace is ignored.
func textArguments(text string) (args []argument, ok bool) {
	skip := func() { text = strings.TrimLeft(text, jsonSpace) }
	eat := func(b byte) bool {
		skip()
		if text == "" || text[0] != b {
			return false
		}
		text = text[1:]
		return true
	}
	if !eat('{') {
		return nil, false
	}
	if eat('}') {
		return nil, true
	}
	for {
		skip()
		key, ok := cutValue(&text)
		if !ok || key[0] != '"' || !eat(':') {
			return nil, false
		}
		skip()
		value, ok := cutValue(&text)
		if !ok {
			return nil, false
		}
		a := argument{key: unquote(key), kind: kindOf(value), body: value}
		if a.kind == "string" {
			a.body = unquote(value)
		}
		args = append(args, a)
		if eat('}') {
			return args, true
		}
		if !eat(',') {
			return nil, false
		}
	}
}

// cutValue cuts one valid JSON value off the front of *text.
func cutValue(text *string) (value string, ok bool) {
	s := *text
	depth, end := 0, 0
scan:
	for end < len(s) {
		switch s[end] {
		case '"':
			n := stringEnd(s[end:])
			if n < 0 {
				return "", false
			}
			end += n
			if depth == 0 {
				break scan
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				end++
				break scan
			}
			if depth < 0 { // belongs to the object around a bare value
				break scan
			}
		case ',', ':', ' ', '\t', '\n', '\r':
			if depth == 0 {
				break scan
			}
		}
		end++
	}
	if value = s[:end]; !json.Valid([]byte(value)) {
		return "", false
	}
	*text = s[end:]
	return value, true
}

// stringEnd returns the end of the JSON string that s begins with, or -1.
func stringEnd(s string) int {
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// unquote decodes a valid JSON string.
func unquote(s string) string {
	var out string
	// It was checked by cutValue; a failure would leave out empty.
	_ = json.Unmarshal([]byte(s), &out)
	return out
}

package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// JSON as the official encoder writes it: non-ASCII characters stay as they
// are, numbers as Python prints them. encoding/json can do neither, nor keep
// the order of keys.

// An object is a JSON object in the order of its text. Of a repeated key the
// last value counts, at the place of the first.
type object []member

type member struct {
	key   string
	value any
}

// decode reads one JSON value: nil, bool, string, json.Number, []any or object.
func decode(text []byte) (any, error) {
	// Checked as a whole first: this bounds the depth and refuses trailing text.
	if !json.Valid(text) {
		var v any
		if err := json.Unmarshal(text, &v); err != nil {
			return nil, err
		}
		return nil, errors.New("not valid JSON")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return decodeValue(d)
}

func decodeValue(d *json.Decoder) (any, error) {
	tok, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err = d.Token()
		return list, err
	case json.Delim('{'):
		obj, at := object{}, map[string]int{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeValue(d)
			if err != nil {
				return nil, err
			}
			m := member{key.(string), v}
			if i, ok := at[m.key]; ok {
				obj[i] = m
			} else {
				at[m.key] = len(obj)
				obj = append(obj, m)
			}
		}
		_, err = d.Token()
		return obj, err
	}
	return tok, nil
}

// A style says how JSON is laid out.
type style bool

const (
	sortedCompact style = true  // tool declarations and schemas: keys by code point, no spaces
	spaced        style = false // arguments given as an object: ", " and ": ", keys in their order
)

// separators returns what stands between items and between key and value.
func (st style) separators() (comma, colon string) {
	if st == sortedCompact {
		return ",", ":"
	}
	return ", ", ": "
}

func encodeJSON(v any, st style) (string, error) {
	var b strings.Builder
	err := writeJSON(&b, v, st)
	return b.String(), err
}

func writeJSON(b *strings.Builder, v any, st style) error {
	comma, colon := st.separators()
	switch v := v.(type) {
	case nil:
		b.WriteString("null")
	case bool:
		b.WriteString(strconv.FormatBool(v))
	case string:
		b.WriteString(quote(v))
	case json.Number:
		text, err := number(string(v))
		if err != nil {
			return err
		}
		b.WriteString(text)
	case []any:
		b.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				b.WriteString(comma)
			}
			if err := writeJSON(b, e, st); err != nil {
				return err
			}
		}
		b.WriteByte(']')
	case object:
		if st == sortedCompact {
			// UTF-8 sorts like code points.
			v = slices.Clone(v)
			slices.SortFunc(v, func(x, y member) int { return strings.Compare(x.key, y.key) })
		}
		b.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				b.WriteString(comma)
			}
			b.WriteString(quote(m.key))
			b.WriteString(colon)
			if err := writeJSON(b, m.value, st); err != nil {
				return err
			}
		}
		b.WriteByte('}')
	}
	return nil
}

// number writes a JSON number as Python does: an integer of any size by its
// digits, any other as the shortest float64 that reads back the same.
func number(text string) (string, error) {
	if !strings.ContainsAny(text, ".eE") {
		if text == "-0" {
			return "0", nil
		}
		return text, nil
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return "", fmt.Errorf("number %.40s: outside the range of float64", text)
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64), nil
	}
	out := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(out, ".") {
		out += ".0"
	}
	return out, nil
}

// quote writes a JSON string with no more escapes than JSON demands.
func quote(s string) string {
	return string(append(appendEscaped([]byte{'"'}, s), '"'))
}

// appendEscaped appends the inside of a JSON string. Text may be escaped piece
// by piece: no escape looks at its neighbours.
func appendEscaped(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	for i := range len(s) {
		switch c := s[i]; c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		default:
			if c < 0x20 {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
			} else {
				dst = append(dst, c)
			}
		}
	}
	return dst
}

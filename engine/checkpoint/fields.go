package checkpoint

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// fields reads typed members of one JSON object and keeps the first error, so
// that a parser reads like the list of its fields. Messages carry the dotted
// path, the value as it stands in the file and what was wanted.
type fields struct {
	path string // "text_config." or ""
	m    map[string]any
	err  *error
}

func (f fields) fail(key, want string, unsupported bool) {
	if *f.err == nil {
		*f.err = &ConfigError{Field: f.path + key, Got: f.show(key), Want: want, Unsupported: unsupported}
	}
}

// show writes a value as a message shows it.
func (f fields) show(key string) string {
	v, ok := f.m[key]
	if !ok {
		return "absent"
	}
	return showValue(v)
}

func showValue(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case string:
		return clip(v)
	case number:
		if len(v) > 40 {
			return string(v[:40]) + "..."
		}
		return string(v)
	case []any:
		var parts []string
		for i, e := range v {
			if i == 4 {
				parts = append(parts, "...")
				break
			}
			parts = append(parts, showValue(e))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	}
	return "an object"
}

// has reports a member that is there and not null.
func (f fields) has(key string) bool { return f.m[key] != nil }

func (f fields) object(key string) fields {
	m, ok := f.m[key].(map[string]any)
	if !ok {
		f.fail(key, "an object", false)
	}
	return fields{path: f.path + key + ".", m: m, err: f.err}
}

// integer reads a required whole number of min..max.
func (f fields) integer(key string, min, max int) int {
	lit, ok := f.m[key].(number)
	n, err := strconv.ParseInt(string(lit), 10, 64)
	if !ok || err != nil || n < int64(min) || n > int64(max) {
		f.fail(key, fmt.Sprintf("a whole number from %d to %d", min, max), false)
		return min
	}
	return int(n)
}

// optional is integer for a member that may be absent or null.
func (f fields) optional(key string, min, max, absent int) int {
	if !f.has(key) {
		return absent
	}
	return f.integer(key, min, max)
}

// real reads a required finite number of min..max.
func (f fields) real(key string, min, max float64) float64 {
	lit, ok := f.m[key].(number)
	x, err := strconv.ParseFloat(string(lit), 64)
	if !ok || err != nil || math.IsNaN(x) || x < min || x > max {
		f.fail(key, fmt.Sprintf("a number from %g to %g", min, max), false)
		return min
	}
	return x
}

// boolean reads a member that is absent if it is not there.
func (f fields) boolean(key string, absent bool) bool {
	if !f.has(key) {
		return absent
	}
	b, ok := f.m[key].(bool)
	if !ok {
		f.fail(key, "true or false", false)
	}
	return b
}

// only demands one value, because the forward pass knows no other. A missing
// member passes if the family's default for it is that value.
func (f fields) only(key string, want any, absentOK bool) {
	if v, there := f.m[key]; there && v == want || !there && absentOK {
		return
	}
	f.fail(key, showValue(want), true)
}

// layers reads a list of 1-based layer numbers.
func (f fields) layers(key string, n int) []int {
	list, ok := f.m[key].([]any)
	if !ok {
		f.fail(key, "a list of layer numbers counted from 1", false)
		return nil
	}
	out := make([]int, 0, len(list))
	for i, v := range list {
		lit, _ := v.(number)
		l, err := strconv.ParseInt(string(lit), 10, 64)
		if err != nil || l < 1 || l > int64(n) {
			if *f.err == nil {
				*f.err = &ConfigError{Field: fmt.Sprintf("%s%s[%d]", f.path, key, i), Got: showValue(v),
					Want: fmt.Sprintf("a layer number from 1 to num_hidden_layers, %d", n)}
			}
			return nil
		}
		out = append(out, int(l))
	}
	return out
}

// tokens reads a token id or a list of them, each below vocab (0 = no bound).
func (f fields) tokens(key string, vocab int) []int {
	if !f.has(key) {
		return nil
	}
	list, ok := f.m[key].([]any)
	if !ok {
		list = []any{f.m[key]}
	}
	if vocab == 0 {
		vocab = maxVocab
	}
	var out []int
	for _, v := range list {
		lit, _ := v.(number)
		id, err := strconv.ParseInt(string(lit), 10, 64)
		if err != nil || id < 0 || id >= int64(vocab) {
			f.fail(key, fmt.Sprintf("a token id, or a list of them, from 0 to %d", vocab-1), false)
			return nil
		}
		out = append(out, int(id))
	}
	return out
}

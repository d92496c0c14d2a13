package checkpoint

import (
	"fmt"
	"unicode/utf16"
	"unicode/utf8"
)

// A scanner reads strict JSON (RFC 8259) from memory in one pass. The index of
// the full model is over 50 MB and the headers hold as much again; the walk
// allocates nothing for names without escapes and knows the byte of every
// error. Three things are stricter than encoding/json: invalid UTF-8 is refused,
// nesting is bounded, and the callers refuse repeated names.
type scanner struct {
	file string
	base int64 // offset of b[0] in file
	b    []byte
	i    int
}

// maxDepth bounds nesting; the official config has a depth of five.
const maxDepth = 64

func (s *scanner) errf(at int, format string, args ...any) error {
	return &FormatError{File: s.file, Offset: s.base + int64(at), Reason: fmt.Sprintf(format, args...)}
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.i < len(s.b) {
		switch c := s.b[s.i]; c {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return c
		}
	}
	return 0
}

// unexpected describes what stands where something else had to.
func (s *scanner) unexpected(want string) error {
	if s.peek() == 0 && s.i >= len(s.b) {
		return s.errf(s.i, "JSON ends where %s must follow", want)
	}
	return s.errf(s.i, "%q where %s must follow", s.b[s.i], want)
}

func (s *scanner) take(c byte) error {
	if s.peek() != c || s.i >= len(s.b) {
		return s.unexpected(fmt.Sprintf("%q", c))
	}
	s.i++
	return nil
}

// end demands that nothing but white space is left.
func (s *scanner) end() error {
	s.peek()
	if s.i < len(s.b) {
		return s.errf(s.i, "%q after the end of the JSON value", s.b[s.i])
	}
	return nil
}

// object calls member for every name of an object; member must consume the
// value. The name is only valid until member returns.
func (s *scanner) object(member func(name []byte, at int) error) error {
	if err := s.take('{'); err != nil {
		return err
	}
	if s.peek() == '}' {
		s.i++
		return nil
	}
	for {
		s.peek()
		at := s.i
		name, err := s.str()
		if err != nil {
			return err
		}
		if err := s.take(':'); err != nil {
			return err
		}
		if err := member(name, at); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			return nil
		default:
			return s.unexpected("',' or '}'")
		}
	}
}

// array calls element before every element, which it must consume.
func (s *scanner) array(element func() error) error {
	if err := s.take('['); err != nil {
		return err
	}
	if s.peek() == ']' {
		s.i++
		return nil
	}
	for {
		if err := element(); err != nil {
			return err
		}
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			return nil
		default:
			return s.unexpected("',' or ']'")
		}
	}
}

// str reads a string. Without escapes the result is a window of the input.
func (s *scanner) str() ([]byte, error) {
	if err := s.take('"'); err != nil {
		return nil, err
	}
	start, ascii := s.i, true
	for ; s.i < len(s.b); s.i++ {
		switch c := s.b[s.i]; {
		case c == '"':
			out := s.b[start:s.i]
			if !ascii && !utf8.Valid(out) {
				return nil, s.errf(start, "string is not valid UTF-8")
			}
			s.i++
			return out, nil
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			return nil, s.errf(s.i, "control character 0x%02x in a string", c)
		case c >= utf8.RuneSelf:
			ascii = false
		}
	}
	return nil, s.errf(start, "string does not end")
}

// escaped finishes a string that has escapes, from its first backslash on.
func (s *scanner) escaped(start int) ([]byte, error) {
	out := append([]byte(nil), s.b[start:s.i]...)
	for s.i < len(s.b) {
		c := s.b[s.i]
		s.i++
		switch {
		case c == '"':
			if !utf8.Valid(out) {
				return nil, s.errf(start, "string is not valid UTF-8")
			}
			return out, nil
		case c < 0x20:
			return nil, s.errf(s.i-1, "control character 0x%02x in a string", c)
		case c != '\\':
			out = append(out, c)
		default:
			r, err := s.escape()
			if err != nil {
				return nil, err
			}
			out = utf8.AppendRune(out, r)
		}
	}
	return nil, s.errf(start, "string does not end")
}

// escape reads what follows a backslash. A surrogate must be half of a pair.
func (s *scanner) escape() (rune, error) {
	at := s.i - 1
	if s.i >= len(s.b) {
		return 0, s.errf(at, "string does not end")
	}
	c := s.b[s.i]
	s.i++
	switch c {
	case '"', '\\', '/':
		return rune(c), nil
	case 'b':
		return '\b', nil
	case 'f':
		return '\f', nil
	case 'n':
		return '\n', nil
	case 'r':
		return '\r', nil
	case 't':
		return '\t', nil
	case 'u':
		r, ok := s.hex4()
		if ok && utf16.IsSurrogate(r) {
			ok = s.i+1 < len(s.b) && s.b[s.i] == '\\' && s.b[s.i+1] == 'u'
			if ok {
				s.i += 2
				var low rune
				low, ok = s.hex4()
				r = utf16.DecodeRune(r, low)
				ok = ok && r != utf8.RuneError
			}
		}
		if !ok {
			return 0, s.errf(at, "malformed \\u escape")
		}
		return r, nil
	}
	return 0, s.errf(at, "unknown escape %q", c)
}

func (s *scanner) hex4() (rune, bool) {
	if s.i+4 > len(s.b) {
		return 0, false
	}
	var r rune
	for _, c := range s.b[s.i : s.i+4] {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c >= 'a' && c <= 'f':
			r = r<<4 | rune(c-'a'+10)
		case c >= 'A' && c <= 'F':
			r = r<<4 | rune(c-'A'+10)
		default:
			return 0, false
		}
	}
	s.i += 4
	return r, true
}

// number reads the literal of a number by the JSON grammar.
func (s *scanner) number() ([]byte, error) {
	s.peek()
	start := s.i
	digits := func() bool {
		from := s.i
		for s.i < len(s.b) && s.b[s.i] >= '0' && s.b[s.i] <= '9' {
			s.i++
		}
		return s.i > from
	}
	next := func(set string) bool {
		if s.i < len(s.b) {
			for j := range len(set) {
				if s.b[s.i] == set[j] {
					s.i++
					return true
				}
			}
		}
		return false
	}
	next("-")
	whole := s.i
	if !digits() {
		s.i = start
		return nil, s.unexpected("a number")
	}
	ok := s.b[whole] != '0' || s.i == whole+1
	if next(".") {
		ok = digits() && ok
	}
	if next("eE") {
		next("+-")
		ok = digits() && ok
	}
	if !ok {
		return nil, s.errf(start, "malformed number %s", clip(s.b[start:s.i]))
	}
	return s.b[start:s.i], nil
}

// whole reads a number that must be an integer of 0 .. 2^53, the range in which
// every JSON reader agrees on the value. what and name say in messages what it is.
func (s *scanner) whole(what string, name []byte) (int64, error) {
	s.peek()
	at := s.i
	lit, err := s.number()
	if err != nil {
		return 0, err
	}
	var n int64
	for _, c := range lit {
		if c < '0' || c > '9' {
			return 0, s.errf(at, "%s of %s is %s, it must be a whole number of 0 or more", what, clip(name), lit)
		}
		n = n*10 + int64(c-'0')
		if n > 1<<53 {
			return 0, s.errf(at, "%s of %s is %s, over the limit of 2^53", what, clip(name), clip(lit))
		}
	}
	return n, nil
}

func (s *scanner) literal(word string) error {
	if len(s.b)-s.i < len(word) || string(s.b[s.i:s.i+len(word)]) != word {
		return s.errf(s.i, "malformed literal, %s expected", word)
	}
	s.i += len(word)
	return nil
}

// skip passes over one value of any kind.
func (s *scanner) skip() error { _, err := s.value(0, false); return err }

// A number keeps the literal: whether it may be a fraction depends on the field.
type number string

// value reads any value: nil, bool, string, number, []any or map[string]any.
// Without keep it only walks.
func (s *scanner) value(depth int, keep bool) (any, error) {
	if depth > maxDepth {
		return nil, s.errf(s.i, "nested deeper than %d", maxDepth)
	}
	switch s.peek() {
	case '{':
		return s.valueObject(depth, keep)
	case '[':
		list := []any{}
		err := s.array(func() error {
			v, err := s.value(depth+1, keep)
			if keep {
				list = append(list, v)
			}
			return err
		})
		return list, err
	case '"':
		b, err := s.str()
		if !keep {
			return nil, err
		}
		return string(b), err
	case 't':
		return true, s.literal("true")
	case 'f':
		return false, s.literal("false")
	case 'n':
		return nil, s.literal("null")
	}
	b, err := s.number()
	if !keep {
		return nil, err
	}
	return number(b), err
}

func (s *scanner) valueObject(depth int, keep bool) (any, error) {
	m := map[string]any{}
	err := s.object(func(name []byte, at int) error {
		if !keep {
			_, err := s.value(depth+1, false)
			return err
		}
		key := string(name)
		if _, twice := m[key]; twice {
			return s.errf(at, "name %s stands twice in one object", clip(key))
		}
		v, err := s.value(depth+1, true)
		m[key] = v
		return err
	})
	return m, err
}

// parseTree reads a whole small document whose top is an object.
func parseTree(file string, data []byte) (map[string]any, error) {
	s := &scanner{file: file, b: data}
	if s.peek() != '{' {
		return nil, s.unexpected("'{'")
	}
	v, err := s.value(0, true)
	if err == nil {
		err = s.end()
	}
	if err != nil {
		return nil, err
	}
	return v.(map[string]any), nil
}

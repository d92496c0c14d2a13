package tokenizer

import (
	"strings"
	"unicode/utf8"
)

// replacement stands for bytes that are not valid UTF-8.
const replacement = "\uFFFD"

// A Stream decodes ids one by one into whole characters. A token may end inside
// a character; the bytes of the incomplete one, at most three, are held back
// until it is complete or can no longer become valid. What all calls return
// together is what Decode returns for all ids together.
//
// A Stream is for one goroutine.
type Stream struct {
	t    *Tokenizer
	held []byte // an incomplete character, 0..3 bytes
}

// NewStream returns a Stream at the start of a text.
func (t *Tokenizer) NewStream() *Stream { return &Stream{t: t} }

// Add returns the text that id completes, which may be empty. A special id
// yields its name. An id outside the vocabulary is an *IDError and changes
// nothing.
func (s *Stream) Add(id int) (string, error) {
	b, ok := s.t.raw(id)
	if !ok {
		return "", &IDError{ID: id, Vocab: s.t.vocab}
	}
	text, rest := splitValid(append(s.held, b...))
	s.held = append(s.held[:0], rest...)
	return text, nil
}

// Flush ends the text: U+FFFD if a character was left incomplete, else nothing.
// The Stream may then be used for another text.
func (s *Stream) Flush() string {
	if len(s.held) == 0 {
		return ""
	}
	s.held = s.held[:0]
	return replacement
}

// splitValid decodes b up to an incomplete last character, which it returns as
// rest (at most three bytes, inside b). Each maximal part that cannot become a
// character is one U+FFFD.
func splitValid(b []byte) (text string, rest []byte) {
	// Nearly always everything but the end is valid: find the end first.
	cut := len(b)
	for back := 1; back <= min(utf8.UTFMax-1, len(b)); back++ {
		if at := len(b) - back; utf8.RuneStart(b[at]) {
			if !utf8.FullRune(b[at:]) {
				cut = at
			}
			break
		}
	}
	b, rest = b[:cut], b[cut:]
	if utf8.Valid(b) {
		return string(b), rest
	}
	var out strings.Builder
	for len(b) > 0 {
		if r, n := utf8.DecodeRune(b); r != utf8.RuneError || n > 1 {
			out.Write(b[:n])
			b = b[n:]
			continue
		}
		// A part is as long as it could still have become a character.
		n := 1
		for n < len(b) && !utf8.FullRune(b[:n]) && !utf8.FullRune(b[:n+1]) {
			n++
		}
		out.WriteString(replacement)
		b = b[n:]
	}
	return out.String(), rest
}

package chat

import (
	"fmt"
	"strings"
)

// The four markers of XTML, by the names their ids have in K3.
const (
	markOpen     = "<|open|>"
	markClose    = "<|close|>"
	markSep      = "<|sep|>"
	markEndOfMsg = "<|end_of_msg|>"
)

// A Segment is a part of a prompt that is encoded by itself.
type Segment struct {
	Structural bool   // Text is the name of a special id, to be encoded as that id
	Text       string // never empty in what Render returns
}

// An Encoder is what Encode needs of a tokenizer.
type Encoder interface {
	// Append appends the ids of ordinary text to dst, never a special id.
	Append(dst []int, text string) []int
	// Special returns the id of a special name.
	Special(name string) (id int, ok bool)
}

// Encode returns the ids of a rendered prompt, each segment encoded by itself.
// A marker that enc has no id for is an error: the model's tokenizer is not one
// of K3's.
func Encode(enc Encoder, segs []Segment) ([]int, error) {
	var ids []int
	for _, s := range segs {
		if !s.Structural {
			ids = enc.Append(ids, s.Text)
			continue
		}
		id, ok := enc.Special(s.Text)
		if !ok {
			return nil, fmt.Errorf("the tokenizer has no special id %q: its names are not those of a K3 chat model", s.Text)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// Text joins segments for a person to read. It is not what the model sees:
// encoding it would turn text that looks like a marker into one.
func Text(segs []Segment) string {
	var b strings.Builder
	for _, s := range segs {
		b.WriteString(s.Text)
	}
	return b.String()
}

// writer builds the segment list. Empty segments are dropped.
type writer struct{ segs []Segment }

func (w *writer) mark(name string) {
	w.segs = append(w.segs, Segment{Structural: true, Text: name})
}

func (w *writer) text(s string) {
	if s != "" {
		w.segs = append(w.segs, Segment{Text: s})
	}
}

// open writes an opening tag. attrs are keys and values in turn; each attribute
// is four segments of its own.
func (w *writer) open(name string, attrs ...string) {
	w.mark(markOpen)
	w.text(name)
	for i := 0; i < len(attrs); i += 2 {
		w.text(" " + attrs[i])
		w.text(`="`)
		w.text(escape(attrs[i+1]))
		w.text(`"`)
	}
	w.mark(markSep)
}

func (w *writer) close(name string) {
	w.mark(markClose)
	w.text(name)
	w.mark(markSep)
}

// closeMessage ends a message. Nothing stands between two messages.
func (w *writer) closeMessage() {
	w.close("message")
	w.mark(markEndOfMsg)
}

// escape makes an attribute value: & first, then the quote, and nothing else.
func escape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "&", "&amp;"), `"`, "&quot;")
}

// unescape undoes escape, in the opposite order.
func unescape(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "&quot;", `"`), "&amp;", "&")
}

package frame

import (
	"io"
	"strings"
	"sync"
	"unicode/utf8"

	"deltafin/tui/text"
)

// Plain prints a session as lines that follow one another: "you: ...",
// "model: ...". Nothing printed is ever changed, so a screen reader reads each
// thing once and a terminal that cannot move its cursor shows everything. Its
// methods may be called from any goroutine.
type Plain struct {
	w io.Writer

	mu sync.Mutex
	// guards below
	open bool   // the last line has no end yet
	held []byte // bytes of a stream that may be part of something longer
	err  error
}

// NewPlain returns a printer to w.
func NewPlain(w io.Writer) *Plain { return &Plain{w: w} }

// Line prints a labelled line, cleaned. Further lines of s are indented by two
// spaces, so that a label always stands at the start of a line. An empty label
// prints the text alone. A stream that is still open is ended first.
func (p *Plain) Line(label, s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	s = strings.TrimRight(text.Clean(s), "\n")
	if label != "" {
		s = text.CleanLine(label) + ": " + s
	}
	p.write(strings.ReplaceAll(s, "\n", "\n  ") + "\n")
	return p.err
}

// Stream appends text to the line that is open, cleaned. Bytes that may be the
// beginning of a character wait for the rest of it.
func (p *Plain) Stream(s string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, s...)
	n := whole(p.held)
	out := text.Clean(string(p.held[:n]))
	p.held = append(p.held[:0], p.held[n:]...)
	if out != "" {
		p.open = out[len(out)-1] != '\n'
		p.write(out)
	}
	return p.err
}

// End ends an open stream with a line break.
func (p *Plain) End() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.endLocked()
	return p.err
}

func (p *Plain) endLocked() {
	if len(p.held) > 0 {
		p.write(text.Clean(string(p.held)))
		p.held, p.open = p.held[:0], true
	}
	if p.open {
		p.open = false
		p.write("\n")
	}
}

// write keeps the first error: a reader that has gone away stays away.
func (p *Plain) write(s string) {
	if p.err == nil {
		_, p.err = io.WriteString(p.w, s)
	}
}

// whole returns how many bytes of b can be printed now: all but the beginning of
// a character, or a CR that may belong to a line break.
func whole(b []byte) int {
	n := len(b)
	if n > 0 && b[n-1] == '\r' {
		return n - 1
	}
	for i := 1; i < utf8.UTFMax && i <= n; i++ {
		if utf8.RuneStart(b[n-i]) {
			if !utf8.FullRune(b[n-i:]) {
				return n - i
			}
			break
		}
	}
	return n
}

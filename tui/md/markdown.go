package md

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"deltafin/tui/theme"
)

// Options are how a Doc looks.
type Options struct {
	// Theme is required.
	Theme *theme.Theme
	// Base is the style of running text; marks add to it. Thinking, for example,
	// is drawn with Theme.Thinking.
	Base theme.Style
	// Width is the most cells a row may take, 80 if 0.
	Width int
}

// A Line is a row of a Doc.
type Line struct {
	// Text is clean and styled, at most the width of the Doc, not padded.
	Text string
	// Block is the number of the block the row belongs to. A blank row between
	// two blocks belongs to the upper one.
	Block int
}

// A Block is a piece of the document between blank lines.
type Block struct {
	// Source is what was written, without blank lines around it.
	Source string
	// Code is the text within a fence and Lang the word behind it; both are empty
	// for other blocks.
	Code, Lang string
	// Fenced says that the block is a fenced code block.
	Fenced bool
	// Closed says that no further source can change the block.
	Closed bool
}

// A Doc is a Markdown document that may still grow. It belongs to one goroutine.
type Doc struct {
	opt   Options
	width int

	src  []byte // with line breaks of LF alone
	cr   bool   // the last byte was a CR: an LF that follows is part of it
	done bool

	scan  scanner   // after the last whole line
	next  int       // where in src that line ends
	segs  []segment // in order; the last may be open
	part  bool      // the last segment exists only because of an unfinished line
	stale bool      // src has grown since the segments were brought up to date

	first int // no segment before this one lacks rows
}

// A segment is a block and its rows.
type segment struct {
	start, end int // in Doc.src; end is not kept for the last one
	fence      bool
	indent     int  // of a fence
	closed     bool // its fence is closed

	rows    []string // nil: not laid out
	width   int      // rows are for this width,
	upTo    int      // for the source up to here,
	final   bool     // and the block was final then
	hasCode bool
	painted bool
	// Rows of an open fence that stand, and the source they are from.
	stable, stableTo int
}

// New returns an empty document.
func New(o Options) *Doc {
	if o.Width <= 0 {
		o.Width = 80
	}
	return &Doc{opt: o, width: o.Width}
}

// Parse returns the finished document of a source.
func Parse(src string, o Options) *Doc {
	d := New(o)
	d.Append(src)
	d.Finish()
	return d
}

// Append adds source. Pieces may end anywhere, within a character too. CR LF and
// CR become LF. After Finish it does nothing.
func (d *Doc) Append(s string) {
	if s == "" || d.done {
		return
	}
	if strings.IndexByte(s, '\r') < 0 && !d.cr {
		d.src = append(d.src, s...)
	} else {
		for i := range len(s) {
			c := s[i]
			switch {
			case c == '\r':
				d.src = append(d.src, '\n')
			case c == '\n' && d.cr:
			default:
				d.src = append(d.src, c)
			}
			d.cr = c == '\r'
		}
	}
	d.stale = true
}

// Finish says that the source is complete: the last block is final.
func (d *Doc) Finish() {
	if !d.done {
		d.done, d.stale = true, true
	}
}

// SetWidth changes the width, one cell at least. Rows are laid out anew when they
// are asked for.
func (d *Doc) SetWidth(w int) {
	if w = max(w, 1); w != d.width {
		d.width, d.first = w, 0
	}
}

// Width returns the most cells a row takes.
func (d *Doc) Width() int { return d.width }

// SetTheme changes how the document looks.
func (d *Doc) SetTheme(t *theme.Theme, base theme.Style) {
	d.opt.Theme, d.opt.Base = t, base
	d.first = 0
	for i := range d.segs {
		d.segs[i].rows = nil
	}
}

// Source returns all that was appended.
func (d *Doc) Source() string { return string(d.src) }

// Len returns the length of the source in bytes.
func (d *Doc) Len() int { return len(d.src) }

// sync brings the segments up to date with the source.
func (d *Doc) sync() {
	if !d.stale {
		return
	}
	d.stale = false
	if d.part {
		d.segs = d.segs[:len(d.segs)-1]
		d.part = false
		d.first = min(d.first, len(d.segs))
	}
	for {
		n := bytes.IndexByte(d.src[d.next:], '\n')
		if n < 0 {
			break
		}
		d.line(&d.scan, d.src[d.next:d.next+n])
		d.next += n + 1
	}
	tail := d.src[d.next:d.limit()]
	if len(tail) == 0 {
		return
	}
	if d.done {
		d.line(&d.scan, tail)
		d.next = len(d.src)
		return
	}
	// What the unfinished line looks like now is shown, and decided again when
	// more of it has come.
	was := len(d.segs)
	scan := d.scan
	closed := was > 0 && d.segs[was-1].closed
	d.line(&scan, tail)
	d.part = len(d.segs) > was
	if was > 0 {
		// A fence that this line may close is still open.
		d.segs[was-1].closed = closed
	}
}

// line gives a line, which starts at d.next, to a scanner and keeps the segments.
func (d *Doc) line(s *scanner, l []byte) {
	last := len(d.segs) - 1
	if s.line(l) {
		if last >= 0 {
			d.segs[last].end = d.next
		}
		d.segs = append(d.segs, segment{start: d.next, fence: s.kind == kindFence, indent: s.fenceIndent})
		return
	}
	if last >= 0 && d.segs[last].fence {
		d.segs[last].closed = s.closed
	}
}

// limit returns where the source that can be shown ends: before the beginning of
// a character that is not complete yet.
func (d *Doc) limit() int {
	n := len(d.src)
	if d.done {
		return n
	}
	for i := 1; i < utf8.UTFMax && i <= n; i++ {
		if utf8.RuneStart(d.src[n-i]) {
			if !utf8.FullRune(d.src[n-i:]) {
				return n - i
			}
			break
		}
	}
	return n
}

// span returns the source of segment i and whether it is final.
func (d *Doc) span(i int) (from, to int, final bool) {
	s := &d.segs[i]
	if i < len(d.segs)-1 {
		// An unfinished line has begun the last segment; it may yet turn out to
		// belong to this one.
		return s.start, s.end, !(d.part && i == len(d.segs)-2)
	}
	return s.start, d.limit(), d.done
}

// Blocks returns the number of blocks.
func (d *Doc) Blocks() int {
	d.sync()
	return len(d.segs)
}

// Block returns block i. It panics if there is none.
func (d *Doc) Block(i int) Block {
	d.sync()
	from, to, final := d.span(i)
	s := &d.segs[i]
	b := Block{Source: strings.TrimRight(string(d.src[from:to]), " \t\n"), Fenced: s.fence, Closed: final || s.fence && s.closed}
	if s.fence {
		var info string
		info, b.Code = d.fenceParts(i)
		b.Lang, _, _ = strings.Cut(info, " ")
	}
	return b
}

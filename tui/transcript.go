package tui

import (
	"fmt"
	"strings"
	"time"

	"deltafin/session"
	"deltafin/tui/md"
	"deltafin/tui/pane"
	"deltafin/tui/text"
	"deltafin/tui/theme"
)

// A part is a piece of the thread: lines of ours, or a document below one.
type part struct {
	head string  // one styled line, "" for none
	doc  *md.Doc // drawn indented; nil for none
	turn session.ID
}

// indent of a turn's text, in cells.
const indent = 2

// maxText is the widest a line of text gets: longer ones are hard to read.
const maxText = 100

func (p *part) rows() int {
	n := 1 // the blank line behind
	if p.head != "" {
		n++
	}
	if p.doc != nil {
		n += p.doc.Rows()
	}
	return n
}

// tail returns n rows at most with skip rows below them, none if the part has no
// more than skip rows. Rows are asked from the end of the document, so that a long
// one costs what is seen.
func (p *part) tail(skip, n int) []string {
	blank := skip == 0
	if blank {
		n--
	}
	skip = max(0, skip-1)
	var lines []md.Line
	if p.doc != nil && n > 0 {
		if lines = p.doc.Tail(skip, n); len(lines) == 0 {
			skip -= p.doc.Rows() // 0 if only the head is left
		} else {
			skip = 0
		}
	}
	rows := make([]string, 0, len(lines)+2)
	if n -= len(lines); n > 0 && p.head != "" && skip <= 0 {
		rows = append(rows, p.head)
	}
	for _, l := range lines {
		rows = append(rows, text.Spaces(indent)+l.Text)
	}
	if blank {
		rows = append(rows, "")
	}
	return rows
}

// A transcript is the thread on the screen: turns that are complete, and the
// answer that is being written.
type transcript struct {
	t       *theme.Theme
	width   int
	thread  session.ID
	title   string
	branch  string
	path    []session.Turn
	parts   []part
	live    session.ID // turn of the answer followed
	think   *md.Doc
	answer  *md.Doc
	taken   int    // tokens of it that were looked at
	thinkN  int    // of them thinking
	last    string // line of the thinking that grows
	open    bool   // thinking is unfolded
	skip    int    // rows below the window; 0 follows
	held    anchor // the window's first row while it does not follow
	hidden  bool   // the answer is not on the branch shown
	began   time.Time
	written bool
}

func (r *transcript) docOptions(base theme.Style) md.Options {
	return md.Options{Theme: r.t, Base: base, Width: max(1, min(r.width, maxText)-indent)}
}

// setWidth lays the thread out for another width; rows follow when they are seen.
func (r *transcript) setWidth(w int) {
	if w == r.width {
		return
	}
	r.width = w
	inner := max(1, min(w, maxText)-indent)
	for _, p := range append(r.parts, part{doc: r.think}, part{doc: r.answer}) {
		if p.doc != nil {
			p.doc.SetWidth(inner)
		}
	}
}

// set shows a thread. The turn that is followed live stays as it is.
func (r *transcript) set(th *session.Thread) {
	if th.ID != r.thread {
		r.skip = 0
	}
	r.thread, r.title, r.branch = th.ID, th.Title, th.Branch
	r.path = nil
	if b, err := th.FindBranch(""); err == nil {
		r.path = th.Path(b.Leaf)
		r.branch = b.Name
	}
	r.hidden = r.live != 0 && th.Turn(r.live) != nil
	r.build()
}

// build makes the parts of the turns that are complete.
func (r *transcript) build() {
	r.parts = r.parts[:0]
	for i := range r.path {
		u := &r.path[i]
		if u.ID == r.live {
			r.hidden = false
			continue
		}
		if u.Body == nil {
			continue
		}
		when := "  " + u.Created.Local().Format("15:04")
		switch u.Role {
		case session.Assistant:
			if u.Body.Reasoning != "" {
				r.parts = append(r.parts, r.thoughts(u.ID, fmt.Sprintf("thinking, %s tok", pane.Count(int64(u.Thinking))), md.Parse(u.Body.Reasoning, r.docOptions(r.t.Thinking))))
			}
			head := r.t.Model.Render("model")
			if u.Status != session.Done {
				head += r.t.Warn.Render("  " + string(u.Status))
			}
			r.parts = append(r.parts, part{head, md.Parse(u.Body.Text, r.docOptions(r.t.Text)), u.ID})
		default:
			name := "you"
			if u.Role != session.User {
				name = string(u.Role)
			}
			r.parts = append(r.parts, part{r.t.You.Render(name) + r.t.Dim.Render(when), md.Parse(asked(u), r.docOptions(r.t.Text)), u.ID})
		}
	}
}

// thoughts is a part of thinking, folded to one line unless open.
func (r *transcript) thoughts(turn session.ID, line string, doc *md.Doc) part {
	if r.open {
		return part{r.t.Thinking.Render(r.t.Glyphs.Unfolded + " " + line), doc, turn}
	}
	return part{head: r.t.Thinking.Render(r.t.Glyphs.Folded + " " + line + "  [ctrl+x t: open]"), turn: turn}
}

// follow takes the new tokens of the answer under way. It reports whether the
// thread must be read again, because another answer has begun in it.
func (r *transcript) follow(s *Sample) (stale bool) {
	if s.Turn == 0 || r.thread != s.Thread {
		return false
	}
	if s.Turn != r.live || len(s.Tokens) < r.taken {
		r.live, r.taken, r.thinkN, r.last, r.written = s.Turn, 0, 0, "", false
		r.think, r.answer = md.New(r.docOptions(r.t.Thinking)), md.New(r.docOptions(r.t.Text))
		r.began, r.hidden, stale = s.Began, false, true
		r.build()
	}
	for _, tok := range s.Tokens[r.taken:] {
		switch tok.Channel {
		case session.InThinking:
			r.thinkN++
			r.think.Append(tok.Text)
			r.last += tok.Text
			if i := strings.LastIndexByte(strings.TrimRight(r.last, "\n"), '\n'); i >= 0 {
				r.last = r.last[i+1:]
			}
		case session.InAnswer:
			r.written = true
			r.answer.Append(tok.Text)
		}
	}
	r.taken = len(s.Tokens)
	if !s.State.Busy() && s.State != pane.Paused && s.State != pane.Stopped {
		r.think.Finish()
		r.answer.Finish()
	}
	return stale
}

// all returns the parts from the first to the last, the live ones included.
func (r *transcript) all() []part {
	out := r.parts[:len(r.parts):len(r.parts)]
	if r.live == 0 || r.hidden || r.answer == nil {
		return out
	}
	if r.thinkN > 0 {
		line := fmt.Sprintf("thinking, %s tok", pane.Count(int64(r.thinkN)))
		if !r.written && !r.open {
			// The newest line of thought shows that it is alive.
			line = text.Elide(line+": "+strings.TrimSpace(text.CleanLine(r.last)), max(0, r.width-22), r.t.Glyphs.Ellipsis)
		}
		out = append(out, r.thoughts(r.live, line, r.think))
	}
	if r.written {
		out = append(out, part{r.t.Model.Render("model"), r.answer, r.live})
	}
	return out
}

// window returns h rows at most, with r.skip rows below them, and whether there are
// any.
func (r *transcript) window(h int) (rows []string, below bool) {
	parts, skip := r.all(), r.skip
	for i := len(parts) - 1; i >= 0 && len(rows) < h; i-- {
		p := &parts[i]
		got := p.tail(skip, h-len(rows))
		if len(got) == 0 {
			skip = max(0, skip-p.rows())
			continue
		}
		rows = append(got, rows...)
		skip = 0
	}
	return rows, r.skip > 0
}

// scroll moves the window by rows, negative upwards, and stops at the beginning:
// a window that is not full has gone too far.
func (r *transcript) scroll(by, h int) {
	was := r.skip
	r.skip = max(0, r.skip-by)
	if by >= 0 {
		return
	}
	if rows, _ := r.window(h); len(rows) < h {
		r.skip = max(was, r.skip-(h-len(rows)))
	}
}

// lastAnswer returns the source text of the newest answer.
func (r *transcript) lastAnswer() string {
	if !r.hidden && r.answer != nil && r.written {
		return r.answer.Source()
	}
	for i := len(r.path) - 1; i >= 0; i-- {
		if u := &r.path[i]; u.Role == session.Assistant && u.Body != nil {
			return u.Body.Text
		}
	}
	return ""
}

// leaf returns the newest answer's turn, zero without one.
func (r *transcript) leaf() session.ID {
	if r.live != 0 && !r.hidden {
		return r.live
	}
	for i := len(r.path) - 1; i >= 0; i-- {
		if r.path[i].Role == session.Assistant {
			return r.path[i].ID
		}
	}
	return 0
}

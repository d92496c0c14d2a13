package run

import (
	"slices"
	"strings"

	"deltafin/session"
)

// closing returns the ids that complete an answer which stopped anywhere, so
// that another turn may follow: the tag it was in the middle of, the elements
// that are open, the response if there was none, and the end of the message. A
// complete answer needs nothing.
//
// Nothing is ever taken away from what the model saw: its state cannot be cut
// back.
func (r *Runner) closing(ids []int, set session.Settings) ([]int, error) {
	if len(ids) > 0 && ids[len(ids)-1] == r.markers.EndOfMsg {
		return nil, nil
	}
	_, thinking, err := effort(set)
	if err != nil {
		return nil, err
	}
	c := closer{r: r, open: []string{"message", "response"}, answered: true}
	if thinking {
		c.open, c.answered = []string{"message", "think"}, false
	}
	if err := c.read(ids); err != nil {
		return nil, err
	}
	return c.out, c.close()
}

// A closer follows the elements of a reply.
type closer struct {
	r        *Runner
	open     []string // elements that are open, outermost first
	answered bool     // a response or a call of tools was begun
	tag      int      // marker of the tag being read, 0 outside
	name     []int    // its ids so far
	out      []int
}

func (c *closer) read(ids []int) error {
	m := c.r.markers
	for _, id := range ids {
		switch {
		case id == m.Open || id == m.Close:
			c.tag, c.name = id, nil
		case id == m.Sep && c.tag != 0:
			if err := c.endTag(); err != nil {
				return err
			}
		case c.tag != 0:
			c.name = append(c.name, id)
		}
	}
	return nil
}

func (c *closer) endTag() error {
	text, err := c.r.e.Tokenizer().Decode(c.name)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(text, " ")
	if c.tag == c.r.markers.Open {
		c.answered = c.answered || name == "response" || name == "tools"
		c.open = append(c.open, name)
	} else if i := slices.Index(c.open, name); i >= 0 {
		c.open = c.open[:i]
	}
	c.tag = 0
	return nil
}

// close appends what is missing.
func (c *closer) close() error {
	m := c.r.markers
	if c.tag != 0 {
		rest, err := c.restOfTag()
		if err != nil {
			return err
		}
		c.emit(rest)
		c.name = append(c.name, c.r.e.Tokenizer().Encode(rest)...)
		c.out = append(c.out, m.Sep)
		if err := c.endTag(); err != nil {
			return err
		}
	}
	for ; len(c.open) > 1; c.open = c.open[:len(c.open)-1] {
		c.end(c.open[len(c.open)-1])
	}
	if len(c.open) == 1 { // the message itself
		if !c.answered {
			c.out = append(c.out, m.Open)
			c.emit("response")
			c.out = append(c.out, m.Sep)
			c.end("response")
		}
		c.end("message")
	}
	c.out = append(c.out, m.EndOfMsg)
	return nil
}

// restOfTag is the likely end of a tag that broke off: of the innermost element
// for a closing one, of the response for an opening one.
func (c *closer) restOfTag() (string, error) {
	begun, err := c.r.e.Tokenizer().Decode(c.name)
	if err != nil {
		return "", err
	}
	want := "response"
	if n := len(c.open); c.tag == c.r.markers.Close && n > 0 {
		want = c.open[n-1]
	}
	rest, ok := strings.CutPrefix(want, begun)
	if !ok {
		return "", nil
	}
	return rest, nil
}

func (c *closer) end(name string) {
	c.out = append(c.out, c.r.markers.Close)
	c.emit(name)
	c.out = append(c.out, c.r.markers.Sep)
}

func (c *closer) emit(text string) { c.out = c.r.e.Tokenizer().Append(c.out, text) }

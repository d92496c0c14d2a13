package expert

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A Trace is which experts a router chose, in order of time.
type Trace struct {
	Layers, Experts int     // one more than the largest number that occurs
	Steps           int     // tokens
	Choices         int     // experts chosen, over all tokens and layers
	Sets            []Route // layer by layer of one pass after the other
}

// A Route is the experts that one layer needs in one pass, each once: those of one
// token in the router's order, or those of all tokens of a prompt.
type Route struct {
	Layer   int
	Experts []int
	Rows    []int // [Experts]: tokens of the pass that chose it
}

// ErrTrace: a trace cannot be understood.
var ErrTrace = errors.New("bad routing trace")

// maxTraceNumber bounds layers and experts, and with them the memory that a
// mistaken number can ask for.
const maxTraceNumber = 1 << 16

// traceColumns are the columns that a replay needs; others are passed over.
var traceColumns = [...]string{"turn", "phase", "step", "layer", "expert"}

// ReadTrace reads a routing trace: lines that begin with # are comments, then a
// line of column names (turn, phase, step, layer and expert among them), then one
// line for each choice. Phase 0 is a prompt, read layer by layer for all its tokens;
// choices of one layer of a pass stand together.
func ReadTrace(r io.Reader) (*Trace, error) {
	t := &Trace{}
	var at [len(traceColumns)]int
	tokens := map[[3]int]bool{} // turn, phase, step
	var pass [4]int             // turn, phase, step or 0 in a prompt, layer
	header := false
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, ",")
		if !header {
			if err := findColumns(cells, &at); err != nil {
				return nil, fmt.Errorf("line %d: %w", n, err)
			}
			header = true
			continue
		}
		var v [len(traceColumns)]int
		for i, k := range at {
			if k >= len(cells) {
				return nil, fmt.Errorf("line %d has %d columns, %s is number %d: %w", n, len(cells), traceColumns[i], k+1, ErrTrace)
			}
			x, err := strconv.Atoi(cells[k])
			if err != nil || x < 0 || i > 2 && x >= maxTraceNumber {
				return nil, fmt.Errorf("line %d: %s is %q, not a number from 0 to %d: %w", n, traceColumns[i], cells[k], maxTraceNumber-1, ErrTrace)
			}
			v[i] = x
		}
		tokens[[3]int(v[:3])] = true
		now, layer, e := [4]int(v[:4]), v[3], v[4]
		if v[1] == 0 {
			now[2] = 0
		}
		if len(t.Sets) == 0 || now != pass {
			pass = now
			t.Sets = append(t.Sets, Route{Layer: layer})
		}
		t.Sets[len(t.Sets)-1].add(e)
		t.Choices++
		t.Layers, t.Experts = max(t.Layers, layer+1), max(t.Experts, e+1)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrTrace, err)
	}
	if len(t.Sets) == 0 {
		return nil, fmt.Errorf("no choices in it: %w", ErrTrace)
	}
	t.Steps = len(tokens)
	return t, nil
}

// add notes that one more token chose an expert.
func (r *Route) add(e int) {
	if k := slices.Index(r.Experts, e); k >= 0 {
		r.Rows[k]++
		return
	}
	r.Experts, r.Rows = append(r.Experts, e), append(r.Rows, 1)
}

func findColumns(cells []string, at *[len(traceColumns)]int) error {
	for i, name := range traceColumns {
		at[i] = -1
		for k, c := range cells {
			if strings.TrimSpace(c) == name {
				at[i] = k
			}
		}
		if at[i] < 0 {
			return fmt.Errorf("no column is called %s: %w", name, ErrTrace)
		}
	}
	return nil
}

// Uses is the number of experts used, each once in a layer of a pass.
func (t *Trace) Uses() int {
	n := 0
	for i := range t.Sets {
		n += len(t.Sets[i].Experts)
	}
	return n
}

// PerToken is the number of experts that one token uses on average.
func (t *Trace) PerToken() float64 { return float64(t.Choices) / float64(t.Steps) }

// keys numbers the experts of a route over all layers.
func (t *Trace) keys(buf []int, r *Route) []int {
	buf = buf[:0]
	for _, e := range r.Experts {
		buf = append(buf, r.Layer*t.Experts+e)
	}
	return buf
}

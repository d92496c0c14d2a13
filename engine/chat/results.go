package chat

import (
	"fmt"
	"slices"
	"strconv"
)

// toolRun writes a run of consecutive tool messages; at is the index of the
// first in the conversation. If every one answers a call of the last assistant
// message by its id, they are written in the order of the calls and named after
// them, whatever name they carry. If not, they keep their order, and a missing
// name is that of the call at the same position.
func (r *renderer) toolRun(run []Message, at int) error {
	type result struct {
		*Message
		call int // index in r.calls, or -1
		at   int // index in the conversation
	}
	results := make([]result, len(run))
	resolved := true
	for i := range run {
		m := &run[i]
		call := -1
		if m.ToolCallID != "" {
			call = slices.IndexFunc(r.calls, func(c ToolCall) bool { return c.ID == m.ToolCallID })
		}
		resolved = resolved && call >= 0
		results[i] = result{m, call, at + i}
	}
	if resolved {
		slices.SortStableFunc(results, func(a, b result) int { return a.call - b.call })
	}
	for _, m := range results {
		r.results++
		var name string
		switch {
		case resolved:
			name = r.calls[m.call].Name
		case m.Tool != "":
			name = m.Tool
		case m.Name != "":
			name = m.Name
		case r.results <= len(r.calls):
			name = r.calls[r.results-1].Name
		default:
			return fmt.Errorf("message %d (tool): the tool has no name: give it a tool or a name, or the id of a call of the assistant message before it", m.at)
		}
		r.open("message", "role", string(Tool), "tool", name, "index", strconv.Itoa(r.results))
		r.content(m.Message)
		r.closeMessage()
	}
	return nil
}

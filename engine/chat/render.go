package chat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// The bodies of the messages that the format itself adds (spec 5.4). The model
// was trained on exactly these words.
const (
	toolsHead = "# Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n"

	moreToolsHead = "## New Tools Available\n" +
		"The system dynamically extends the toolset via lazy-loading.\n" +
		"You have access to all existing and extended tools.\n" +
		"Here are the specs for the extended tools.\n\n```json\n"

	fenceEnd = "\n```"

	effortHead = "`thinking_effort` guides on how much to think in your thinking channel (not including the response channel), " +
		"supported values include `low`, `medium`, `high`, and `max`.\n" +
		"Now the system is invoked with `thinking_effort="

	choiceRequired = "The system is invoked with `tool_choice=required`.\nYou MUST call tools in the next message."
	choiceNone     = "The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message."

	formatHead = "The system is invoked with `response_format="
	formatRule = "`.\nYour response must be raw JSON data without markdown code blocks (```json) or any additional formatting."
	schemaHead = "\nThe JSON data must match the following schema:\n```json\n"
)

// Render returns the segments of a prompt. Errors name the message by its index
// and what is wrong with it; all of them are mistakes in the Prompt.
func Render(p *Prompt) ([]Segment, error) {
	r := &renderer{thinking: p.Thinking}
	if err := r.declare(p.Tools, toolsHead); err != nil {
		return nil, fmt.Errorf("tools: %w", err)
	}
	switch p.Effort {
	case "":
	case EffortLow, EffortHigh, EffortMax:
		if p.Thinking {
			r.internal("thinking-effort", effortHead+string(p.Effort)+"`.")
		}
	default:
		return nil, fmt.Errorf("thinking effort %q: want low, high or max", p.Effort)
	}
	if err := r.messages(p.Messages); err != nil {
		return nil, err
	}
	// What follows describes this one request, and stands directly before the
	// reply rather than with the system messages at the top.
	switch p.ToolChoice {
	case "", "auto":
	case "required":
		r.internal("tool-choice", choiceRequired)
	case "none":
		r.internal("tool-choice", choiceNone)
	default:
		return nil, fmt.Errorf("tool choice %q: want auto, required or none", p.ToolChoice)
	}
	if err := r.responseFormat(p.ResponseFormat); err != nil {
		return nil, fmt.Errorf("response format: %w", err)
	}
	if p.Generate {
		r.open("message", "role", "assistant")
		if p.Thinking {
			r.open("think")
		} else {
			r.open("response")
		}
	}
	return r.segs, nil
}

type renderer struct {
	writer
	thinking bool
	calls    []ToolCall // of the last assistant message
	results  int        // tool messages since then
}

// internal writes a system message that the format adds.
func (r *renderer) internal(kind, body string) {
	r.open("message", "role", "system", "type", kind)
	r.text(body)
	r.closeMessage()
}

// absent says whether a JSON field was left out, which an empty list counts as.
func absent(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "[]":
		return true
	}
	return false
}

// declare writes a message that declares tools, if there are any.
func (r *renderer) declare(tools json.RawMessage, head string) error {
	if absent(tools) {
		return nil
	}
	v, err := decode(tools)
	if err != nil {
		return err
	}
	if _, ok := v.([]any); !ok {
		return fmt.Errorf("want a JSON array, have %.40q", tools)
	}
	body, err := encodeJSON(v, sortedCompact)
	if err != nil {
		return err
	}
	r.internal("tool-declare", head+body+fenceEnd)
	return nil
}

func (r *renderer) responseFormat(raw json.RawMessage) error {
	if absent(raw) {
		return nil
	}
	var format struct {
		Type   string          `json:"type"`
		Schema json.RawMessage `json:"json_schema"`
	}
	if err := json.Unmarshal(raw, &format); err != nil {
		return err
	}
	switch format.Type {
	case "text":
		return nil
	case "json_object":
		r.internal("response-format", formatHead+format.Type+formatRule)
		return nil
	case "json_schema":
	default:
		return fmt.Errorf("type %q: want text, json_object or json_schema", format.Type)
	}
	schema := format.Schema
	if absent(schema) {
		return errors.New("type json_schema without a json_schema")
	}
	// Clients wrap the schema with a name; a bare schema is accepted too.
	var wrapped struct {
		Schema json.RawMessage `json:"schema"`
	}
	if json.Unmarshal(schema, &wrapped) == nil && !absent(wrapped.Schema) {
		schema = wrapped.Schema
	}
	v, err := decode(schema)
	if err != nil {
		return fmt.Errorf("json_schema: %w", err)
	}
	text, err := encodeJSON(v, sortedCompact)
	if err != nil {
		return fmt.Errorf("json_schema: %w", err)
	}
	r.internal("response-format", formatHead+format.Type+formatRule+schemaHead+text+fenceEnd)
	return nil
}

// messages writes the conversation. Consecutive tool messages are one run.
func (r *renderer) messages(msgs []Message) error {
	for i := 0; i < len(msgs); i++ {
		m := &msgs[i]
		if err := check(m); err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
		var err error
		switch m.Role {
		case System, Developer:
			if absent(m.Tools) {
				r.plain(System, m)
			} else {
				err = r.declare(m.Tools, moreToolsHead)
			}
		case User:
			r.plain(User, m)
		case Assistant:
			err = r.assistant(m)
		case Tool:
			end := i + 1
			for end < len(msgs) && msgs[end].Role == Tool {
				if err := check(&msgs[end]); err != nil {
					return fmt.Errorf("message %d (tool): %w", end, err)
				}
				end++
			}
			if err := r.toolRun(msgs[i:end], i); err != nil {
				return err
			}
			i = end - 1
		}
		if err != nil {
			return fmt.Errorf("message %d (%s): %w", i, m.Role, err)
		}
	}
	return nil
}

// check refuses fields that the role has no place for: leaving them out of the
// prompt without a word would lose what the caller meant.
func check(m *Message) error {
	switch m.Role {
	case System, Developer, User, Assistant, Tool:
	default:
		return errors.New("unknown role: want system, developer, user, assistant or tool")
	}
	switch {
	case m.Content != "" && len(m.Parts) > 0:
		return errors.New("has both content and parts")
	case len(m.ToolCalls) > 0 && m.Role != Assistant:
		return errors.New("only an assistant message can have tool calls")
	case m.Reasoning != "" && m.Role != Assistant:
		return errors.New("only an assistant message can have reasoning")
	case (m.ToolCallID != "" || m.Tool != "") && m.Role != Tool:
		return errors.New("only a tool message can answer a tool call")
	case !absent(m.Tools) && m.Role != System && m.Role != Developer:
		return errors.New("only a system message can declare tools")
	}
	return nil
}

// attrs returns the attributes of a message: its role, and its name if it has
// one.
func attrs(role Role, name string) []string {
	out := []string{"role", string(role)}
	if name != "" {
		out = append(out, "name", name)
	}
	return out
}

func (r *renderer) content(m *Message) {
	r.text(m.Content)
	for _, part := range m.Parts {
		r.text(part)
	}
}

func (r *renderer) plain(role Role, m *Message) {
	r.open("message", attrs(role, m.Name)...)
	r.content(m)
	r.closeMessage()
}

func (r *renderer) assistant(m *Message) error {
	r.calls, r.results = m.ToolCalls, 0
	r.open("message", attrs(Assistant, m.Name)...)
	if r.thinking {
		r.open("think")
		if !blank(m.Reasoning) {
			r.text(m.Reasoning)
		}
		r.close("think")
	}
	r.open("response")
	r.content(m)
	r.close("response")
	if len(m.ToolCalls) > 0 {
		r.open("tools")
		for i := range m.ToolCalls {
			if err := r.call(&m.ToolCalls[i], i+1); err != nil {
				return fmt.Errorf("tool call %d: %w", i, err)
			}
		}
		r.close("tools")
	}
	r.closeMessage()
	return nil
}

func (r *renderer) call(c *ToolCall, index int) error {
	if c.Name == "" {
		return errors.New("has no name")
	}
	args, isArgs, err := arguments(c)
	if err != nil {
		return fmt.Errorf("arguments of %s: %w", c.Name, err)
	}
	r.open("call", "tool", c.Name, "index", strconv.Itoa(index))
	if !isArgs {
		r.open("json", "type", "object")
		r.text(c.Arguments)
		r.close("json")
	}
	for _, a := range args {
		r.open("argument", "key", a.key, "type", a.kind)
		r.text(a.body)
		r.close("argument")
	}
	r.close("call")
	return nil
}

// blank says whether s is only white space, U+001C..U+001F included.
func blank(s string) bool {
	return strings.TrimFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || r >= 0x1C && r <= 0x1F
	}) == ""
}

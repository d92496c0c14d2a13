package chat

import (
	"encoding/json"
	"fmt"
)

// A Role says who speaks in a message.
type Role string

// The roles. Developer is another word for System.
const (
	System    Role = "system"
	Developer Role = "developer"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// An Effort tells the model how much to think. The zero value sends no message
// about it; the model's own default is EffortMax.
type Effort string

// The efforts that K3 knows. The hosted API accepts only these three.
const (
	EffortLow  Effort = "low"
	EffortHigh Effort = "high"
	EffortMax  Effort = "max"
)

// ParseEffort reads the words that clients use: low, high and max, and by the
// usual mapping minimal for low, medium for high, xhigh for max. The empty
// string is the empty Effort. Any other word is an error.
func ParseEffort(word string) (Effort, error) {
	switch word {
	case "":
		return "", nil
	case "low", "minimal":
		return EffortLow, nil
	case "high", "medium":
		return EffortHigh, nil
	case "max", "xhigh":
		return EffortMax, nil
	}
	return "", fmt.Errorf("thinking effort %q: want low, high or max (also minimal, medium, xhigh)", word)
}

// A Prompt is all that a rendered prompt depends on. It is rendered in the order
// tools, effort, messages, tool choice, response format, generation prompt.
type Prompt struct {
	// Messages is the conversation, oldest first.
	Messages []Message

	// Tools is a JSON array of tool declarations ({"type":"function",...}), or
	// nothing. It is rendered with sorted keys.
	Tools json.RawMessage

	// Thinking gives every assistant turn its think element, and lets the reply
	// begin with one. When off, no turn has one, stored reasoning or not.
	Thinking bool

	// Effort is rendered only when Thinking is on.
	Effort Effort

	// ToolChoice is "required" or "none", which the model is told, or "auto" or
	// empty, which it is not.
	ToolChoice string

	// ResponseFormat is the client's object: {"type":"json_object"},
	// {"type":"json_schema","json_schema":{"schema":{...}}}, {"type":"text"} or
	// nothing.
	ResponseFormat json.RawMessage

	// Generate ends the prompt with the opening of the assistant's turn.
	Generate bool
}

// A Message is one turn. Fields that do not belong to the role must be empty.
type Message struct {
	Role Role

	// Name is an optional name of the speaker; for a tool message it is the
	// tool's name when Tool is empty.
	Name string

	// Content is the text; it is neither trimmed nor escaped. Parts holds it
	// instead when it came as a list: each part is encoded by itself.
	Content string
	Parts   []string

	// Reasoning is what the assistant thought. It stays part of the prompt for
	// all later turns.
	Reasoning string

	// ToolCalls are the calls the assistant made, in order.
	ToolCalls []ToolCall

	// ToolCallID says which call a tool message answers. Tool is the name of the
	// tool, used when the ids of the run of results do not all resolve.
	ToolCallID string
	Tool       string

	// Tools makes a system message declare further tools in mid-conversation: a
	// JSON array. The message's content is then not rendered.
	Tools json.RawMessage
}

// A ToolCall is one call of a tool by the assistant.
type ToolCall struct {
	// ID ties results to the call. It is not part of the prompt.
	ID   string
	Name string

	// Arguments is JSON text, normally an object. Empty means no arguments.
	Arguments string

	// Object says that the arguments came as a JSON object rather than as a
	// string that holds JSON: they are then written out anew, while a string
	// keeps the source text of each value. It must then be a valid object.
	Object bool
}

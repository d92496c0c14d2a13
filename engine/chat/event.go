package chat

import "strconv"

// A Kind says what an Event means.
type Kind uint8

// The kinds of events. The texts of the deltas of one part, joined, are that
// part of the Reply, once Relabel has been followed.
const (
	// ThinkDelta: Text continues the thinking.
	ThinkDelta Kind = iota + 1
	// ThinkEnd: the thinking is over. In an irregular reply it may start again.
	ThinkEnd
	// Relabel: the last len(Text) bytes given as thinking, which are Text, were
	// the answer. They move to the end of the response.
	Relabel
	// ResponseDelta: Text continues the response.
	ResponseDelta
	// ResponseEnd: the response is over.
	ResponseEnd
	// ToolCallStart: call number Call begins, with its Name and ID.
	ToolCallStart
	// ToolCallDelta: Text continues the arguments of call number Call, which are
	// JSON text.
	ToolCallDelta
	// ToolCallEnd: call number Call is complete, or was cut off.
	ToolCallEnd
	// MessageEnd: the reply is over; always the last event.
	MessageEnd
)

// String returns the name of the kind.
func (k Kind) String() string {
	names := [...]string{"", "ThinkDelta", "ThinkEnd", "Relabel", "ResponseDelta", "ResponseEnd",
		"ToolCallStart", "ToolCallDelta", "ToolCallEnd", "MessageEnd"}
	if k == 0 || int(k) >= len(names) {
		return "Kind(" + strconv.Itoa(int(k)) + ")"
	}
	return names[k]
}

// An Event is one step of a reply. Fields that the kind does not name are zero.
type Event struct {
	Kind Kind
	Text string
	Call int // number of the tool call, from 0
	Name string
	ID   string
}

// A Reply is what a Parser has read so far.
type Reply struct {
	Thinking string
	Response string

	// ToolCalls are the calls in order. The format has no ids for them; those
	// here are made of the tool's name and the number of the call, "search:0".
	// Arguments is JSON text that, rendered again, gives back the body of every
	// argument as the model wrote it; a call that is still being read has the
	// beginning of such text.
	ToolCalls []ToolCall

	// Complete is true once the model itself ended its message, and false while
	// the reply grows or when it was cut off.
	Complete bool

	// CallCut says that the reply broke off inside the last tool call, whose
	// arguments are therefore not all there.
	CallCut bool
}

// Message returns the reply as a message for the conversation.
func (r Reply) Message() Message {
	return Message{Role: Assistant, Reasoning: r.Thinking, Content: r.Response, ToolCalls: r.ToolCalls}
}

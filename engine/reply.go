package engine

import (
	"deltafin/engine/chat"
	"deltafin/engine/tokenizer"
)

// A Reply joins the streaming decoder and the chat parser: generated ids go in,
// pieces of thinking, answer and tool calls come out, whole characters only.
type Reply struct {
	stream *tokenizer.Stream
	parser *chat.Parser
}

// Add takes the next generated id and returns what it completed.
func (r *Reply) Add(id int) ([]chat.Event, error) {
	text, err := r.stream.Add(id)
	if err != nil {
		return nil, err
	}
	return r.parser.Add(id, text), nil
}

// Close ends the reply and returns what was still held back.
func (r *Reply) Close() []chat.Event {
	ev := r.parser.Text(r.stream.Flush())
	return append(ev, r.parser.Close()...)
}

// Reply is what has been read so far.
func (r *Reply) Reply() chat.Reply { return r.parser.Reply() }

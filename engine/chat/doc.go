// Package chat renders conversations in K3's chat format, XTML, and reads the
// model's replies back (spec 5.4 and 5.5).
//
// # Rendering
//
// [Render] turns a [Prompt] into a list of [Segment] values. A structural
// segment is one marker, such as <|open|>; every other segment is ordinary text
// and can never become a marker, whatever it says. [Encode] encodes each
// segment by itself, which is part of the format: no token spans two segments.
// So a marker typed by a person stays text, and a rendered prompt must never be
// joined into one string and tokenised (that string, [Text], is for reading).
//
//	segs, err := chat.Render(&chat.Prompt{
//		Messages: []chat.Message{{Role: chat.User, Content: "Hello"}},
//		Thinking: true,
//		Effort:   chat.EffortMax,
//		Generate: true,
//	})
//	ids, err := chat.Encode(tok, segs)
//
// # Parsing
//
// [Parser] reads generated ids with the text that a streaming decoder made of
// them. It decides by ids alone: text that looks like a marker is text. The
// model is not always orderly; missing closes, orphan closes and repeated
// openers are all survived, and a marker is never shown as text.
//
//	m, err := chat.FindMarkers(tok)
//	p := chat.NewParser(m, thinking)
//	for id := range generated {
//		text, err := stream.Add(id)
//		for _, ev := range p.Add(id, text) { ... }
//	}
//	p.Text(stream.Flush())
//	events := p.Close()
//	reply := p.Reply()
//
// [Event.Kind] says what an event means. Whoever shows a reply while it grows
// must handle [Relabel]: some text already shown as thinking was the answer.
//
// # What it never does
//
// It knows no tokenizer: [Encoder] and [Vocabulary] are what it needs of one.
// It runs no tools, keeps no conversation, and sees no images: a text-only model
// refuses image parts before they get here, and a literal image placeholder in
// a message stays the text it is.
//
// # Caveats
//
// Tool-call arguments follow the later revision of the official encoder: a JSON
// text is cut one level deep and its values keep their source text, so that a
// replayed call has the tokens the model wrote. Reasoning of all earlier turns
// stays in the prompt; stripping it is a known way to make K3 worse.
package chat

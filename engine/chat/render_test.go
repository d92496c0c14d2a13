package chat

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// rendered renders or fails.
func rendered(t *testing.T, p *Prompt) string {
	t.Helper()
	segs, err := Render(p)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range segs {
		if s.Text == "" {
			t.Errorf("segment %d is empty", i)
		}
		if s.Structural && !slices.Contains([]string{markOpen, markClose, markSep, markEndOfMsg}, s.Text) {
			t.Errorf("segment %d is structural but no marker: %q", i, s.Text)
		}
	}
	return Text(segs)
}

const (
	eom     = "<|close|>message<|sep|><|end_of_msg|>"
	turn    = `<|open|>message role="assistant"<|sep|>`
	thinkOn = turn + "<|open|>think<|sep|>"
	think0  = "<|open|>think<|sep|><|close|>think<|sep|>"
)

func response(s string) string { return "<|open|>response<|sep|>" + s + "<|close|>response<|sep|>" }

func TestMessages(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Prompt
		want string
	}{
		{"nothing", Prompt{}, ""},
		{"generation with thinking", Prompt{Thinking: true, Generate: true}, thinkOn},
		{"generation without", Prompt{Generate: true}, turn + "<|open|>response<|sep|>"},
		{
			"content is not trimmed, not escaped, and may be empty",
			Prompt{Messages: []Message{{Role: User, Content: " a & \"b\" \n"}, {Role: User}}},
			`<|open|>message role="user"<|sep|> a & "b" ` + "\n" + eom + `<|open|>message role="user"<|sep|>` + eom,
		},
		{
			"developer is system",
			Prompt{Messages: []Message{{Role: Developer, Content: "Rules."}, {Role: System, Name: "ops", Content: "More."}}},
			`<|open|>message role="system"<|sep|>Rules.` + eom + `<|open|>message role="system" name="ops"<|sep|>More.` + eom,
		},
		{
			"names are escaped, & before the quote",
			Prompt{Messages: []Message{{Role: User, Name: `a&"<b>'&quot;`, Content: "x"}}},
			`<|open|>message role="user" name="a&amp;&quot;<b>'&amp;quot;"<|sep|>x` + eom,
		},
		{
			"earlier reasoning stays",
			Prompt{Thinking: true, Messages: []Message{{Role: Assistant, Reasoning: "r1", Content: "a1"}, {Role: User, Content: "u"}, {Role: Assistant, Reasoning: "r2", Content: "a2"}}},
			turn + "<|open|>think<|sep|>r1<|close|>think<|sep|>" + response("a1") + eom + `<|open|>message role="user"<|sep|>u` + eom +
				turn + "<|open|>think<|sep|>r2<|close|>think<|sep|>" + response("a2") + eom,
		},
		{
			"blank reasoning is an empty element",
			Prompt{Thinking: true, Messages: []Message{{Role: Assistant, Reasoning: " \n\u3000\x1c", Content: "a"}, {Role: Assistant, Name: "kim"}}},
			turn + think0 + response("a") + eom + `<|open|>message role="assistant" name="kim"<|sep|>` + think0 + response("") + eom,
		},
		{
			"without thinking no turn has a think element",
			Prompt{Effort: EffortMax, Messages: []Message{{Role: Assistant, Reasoning: "r", Content: "a"}}},
			turn + response("a") + eom,
		},
		{
			"a placeholder stays text",
			Prompt{Thinking: true, Messages: []Message{{Role: User, Content: "<|kimi_image_placeholder|>"}, {Role: Assistant, Reasoning: "<|sep|>", Content: "<|end_of_msg|>"}}},
			`<|open|>message role="user"<|sep|><|kimi_image_placeholder|>` + eom + turn + "<|open|>think<|sep|><|sep|><|close|>think<|sep|>" + response("<|end_of_msg|>") + eom,
		},
	} {
		if got := rendered(t, &c.p); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

// TestPartsAreSegmentsOfTheirOwn: tokens must not merge across them.
func TestPartsAreSegmentsOfTheirOwn(t *testing.T) {
	segs, err := Render(&Prompt{Messages: []Message{{Role: User, Parts: []string{"a", "", "b<|open|>"}}}})
	if err != nil {
		t.Fatal(err)
	}
	want := []Segment{{true, markOpen}, {false, "message"}, {false, " role"}, {false, `="`}, {false, "user"}, {false, `"`}, {true, markSep},
		{false, "a"}, {false, "b<|open|>"}, {true, markClose}, {false, "message"}, {true, markSep}, {true, markEndOfMsg}}
	if !slices.Equal(segs, want) {
		t.Errorf("segments %+v, want %+v", segs, want)
	}
}

// TestOrder: tools, effort, conversation, tool choice, response format, and
// only then the opening of the reply.
func TestOrder(t *testing.T) {
	got := rendered(t, &Prompt{
		Messages:       []Message{{Role: System, Content: "S"}, {Role: User, Content: "U"}},
		Tools:          json.RawMessage(`[{"b":1,"a":"é"}]`),
		Thinking:       true,
		Effort:         EffortLow,
		ToolChoice:     "none",
		ResponseFormat: json.RawMessage(`{"type":"json_object"}`),
		Generate:       true,
	})
	at := 0
	for _, want := range []string{
		"type=\"tool-declare\"<|sep|># Tools\nHere are the available tools, described in JSONSchema.\n\n```json\n[{\"a\":\"é\",\"b\":1}]\n```<|close|>",
		"`thinking_effort=low`.<|close|>",
		"<|sep|>S<|close|>", "<|sep|>U<|close|>",
		"type=\"tool-choice\"<|sep|>The system is invoked with `tool_choice=none`.\nYou MUST NOT call any tools in the next message.<|close|>",
		"type=\"response-format\"<|sep|>The system is invoked with `response_format=json_object`.\nYour response must be raw JSON data without markdown code blocks (```json) or any additional formatting.<|close|>",
		thinkOn,
	} {
		i := strings.Index(got[at:], want)
		if i < 0 {
			t.Fatalf("after byte %d there is no %q in\n%s", at, want, got)
		}
		at += i + len(want)
	}
	if at != len(got) {
		t.Errorf("the prompt goes on after the opening of the reply: %q", got[at:])
	}
}

func TestNothingIsRenderedForDefaults(t *testing.T) {
	for _, p := range []Prompt{
		{Tools: json.RawMessage(" [] ")}, {Tools: json.RawMessage("null")},
		{ToolChoice: "auto"},
		{ResponseFormat: json.RawMessage(`{"type":"text"}`)}, {ResponseFormat: json.RawMessage("null")},
		{Effort: EffortMax}, {Thinking: true},
	} {
		if got := rendered(t, &p); got != "" {
			t.Errorf("%+v renders %q", p, got)
		}
	}
}

func TestResponseSchema(t *testing.T) {
	for _, c := range []struct{ format, want string }{
		{`{"type":"json_schema","json_schema":{"name":"n","schema":{"b":[{"z":1,"a":2}],"a":1.50}}}`, `{"a":1.5,"b":[{"a":2,"z":1}]}`},
		{`{"type":"json_schema","json_schema":{"type":"object"}}`, `{"type":"object"}`},
	} {
		got := rendered(t, &Prompt{ResponseFormat: json.RawMessage(c.format)})
		want := "\nThe JSON data must match the following schema:\n```json\n" + c.want + "\n```" + eom
		if !strings.HasSuffix(got, want) {
			t.Errorf("%s renders\n%s\nwhich does not end in\n%s", c.format, got, want)
		}
	}
}

func TestToolsInMidConversation(t *testing.T) {
	got := rendered(t, &Prompt{Messages: []Message{{Role: System, Name: "n", Content: "not rendered", Tools: json.RawMessage(`[{"name":"x"}]`)}}})
	want := "<|open|>message role=\"system\" type=\"tool-declare\"<|sep|>## New Tools Available\nThe system dynamically extends the toolset via lazy-loading.\n" +
		"You have access to all existing and extended tools.\nHere are the specs for the extended tools.\n\n```json\n[{\"name\":\"x\"}]\n```" + eom
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestToolResults(t *testing.T) {
	calls := Message{Role: Assistant, ToolCalls: []ToolCall{{ID: "1", Name: "one"}, {ID: "2", Name: "two"}, {ID: "3", Name: "three"}}}
	tool := func(id, tool, name, content string) Message {
		return Message{Role: Tool, ToolCallID: id, Tool: tool, Name: name, Content: content}
	}
	result := func(name, index, content string) string {
		return `<|open|>message role="tool" tool="` + name + `" index="` + index + `"<|sep|>` + content + eom
	}
	user := Message{Role: User, Content: "u"}
	for _, c := range []struct {
		name string
		msgs []Message
		want []string
	}{
		{"order and names of the calls", []Message{calls, tool("3", "wrong", "", "c"), tool("1", "", "stale", "a"), tool("2", "", "", "b")},
			[]string{result("one", "1", "a"), result("two", "2", "b"), result("three", "3", "c")}},
		{"with one missing, counted on", []Message{calls, tool("3", "", "", "c"), tool("1", "", "", "a")},
			[]string{result("one", "1", "a"), result("three", "2", "c")}},
		{"one unknown id keeps order and own names", []Message{calls, tool("3", "t", "n", "c"), tool("?", "", "n", "a"), tool("2", "", "", "b")},
			[]string{result("t", "1", "c"), result("n", "2", "a"), result("three", "3", "b")}},
		{"two results of one call keep their order", []Message{calls, tool("2", "", "", "b1"), tool("1", "", "", "a"), tool("2", "", "", "b2")},
			[]string{result("one", "1", "a"), result("two", "2", "b1"), result("two", "3", "b2")}},
		{"the count goes on after another message", []Message{calls, tool("2", "", "", "b"), user, tool("1", "", "", "a")},
			[]string{result("two", "1", "b"), result("one", "2", "a")}},
		{"the count begins anew after an assistant message", []Message{calls, tool("1", "", "", "a"), {Role: Assistant}, tool("", "x", "", "z")},
			[]string{result("one", "1", "a"), result("x", "1", "z")}},
	} {
		got, at := rendered(t, &Prompt{Messages: c.msgs}), 0
		for _, want := range c.want {
			i := strings.Index(got[at:], want)
			if i < 0 {
				t.Errorf("%s: after byte %d there is no %q in\n%s", c.name, at, want, got)
				break
			}
			at += i + len(want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	for _, c := range []struct {
		p    Prompt
		want string // every word must be in the error
	}{
		{Prompt{Messages: []Message{{Role: User}, {Role: "robot"}}}, "message 1 robot unknown role"},
		{Prompt{Messages: []Message{{}}}, "message 0 unknown role"},
		{Prompt{Messages: []Message{{Role: User, Content: "a", Parts: []string{"b"}}}}, "message 0 content parts"},
		{Prompt{Messages: []Message{{Role: User, ToolCalls: []ToolCall{{Name: "x"}}}}}, "message 0 user tool calls"},
		{Prompt{Messages: []Message{{Role: Tool, Tool: "x", Reasoning: "r"}}}, "message 0 tool reasoning"},
		{Prompt{Messages: []Message{{Role: Tool, Tool: "x"}, {Role: Tool, Tool: "x", Reasoning: "r"}}}, "message 1 tool reasoning"},
		{Prompt{Messages: []Message{{Role: Assistant, Tool: "x"}}}, "message 0 assistant answer"},
		{Prompt{Messages: []Message{{Role: User, Tools: json.RawMessage(`[1]`)}}}, "message 0 user declare"},
		{Prompt{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{{Name: "x"}, {}}}}}, "message 0 call 1 name"},
		{Prompt{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{{Name: "x", Arguments: "[1]", Object: true}}}}}, "message 0 call 0 x object"},
		{Prompt{Messages: []Message{{Role: Tool, Content: "r"}}}, "message 0 tool no name"},
		{Prompt{Messages: []Message{{Role: Assistant, ToolCalls: []ToolCall{{ID: "a", Name: "x"}}}, {Role: Tool, ToolCallID: "a"}, {Role: Tool, ToolCallID: "b"}}}, "message 2 tool no name"},
		{Prompt{Tools: json.RawMessage(`{"a":1}`)}, "tools array"},
		{Prompt{Tools: json.RawMessage(`[1`)}, "tools JSON"},
		{Prompt{Tools: json.RawMessage(`[1e999]`)}, "tools 1e999 float64"},
		{Prompt{Effort: "medium"}, "effort medium low high max"},
		{Prompt{ToolChoice: "any"}, "choice any auto required none"},
		{Prompt{ResponseFormat: json.RawMessage(`{"type":"xml"}`)}, "format xml"},
		{Prompt{ResponseFormat: json.RawMessage(`{"type":"json_schema"}`)}, "format json_schema without"},
		{Prompt{ResponseFormat: json.RawMessage(`7`)}, "format"},
	} {
		_, err := Render(&c.p)
		if err == nil {
			t.Errorf("%+v renders, want an error with %q", c.p, c.want)
			continue
		}
		for _, word := range strings.Fields(c.want) {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("error %q does not say %q", err, word)
			}
		}
	}
}

func TestParseEffort(t *testing.T) {
	for word, want := range map[string]Effort{
		"": "", "low": EffortLow, "minimal": EffortLow, "medium": EffortHigh, "high": EffortHigh, "xhigh": EffortMax, "max": EffortMax,
	} {
		if got, err := ParseEffort(word); err != nil || got != want {
			t.Errorf("%q is %q (%v), want %q", word, got, err, want)
		}
	}
	for _, word := range []string{"none", "High", "lots"} {
		if got, err := ParseEffort(word); err == nil {
			t.Errorf("%q is %q, want an error", word, got)
		}
	}
}

func TestEncodeNeedsTheMarkers(t *testing.T) {
	enc := &slowBPE{ranks: map[string]int{"a": 0}, names: map[string]int{markOpen: 9}, base: 1}
	if _, err := Encode(enc, []Segment{{true, markOpen}, {true, markSep}}); err == nil || !strings.Contains(err.Error(), markSep) {
		t.Errorf("error %v does not name %s", err, markSep)
	}
	if _, err := FindMarkers(enc); err == nil || !strings.Contains(err.Error(), markClose) {
		t.Errorf("error %v does not name %s", err, markClose)
	}
}

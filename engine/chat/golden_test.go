package chat

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestNanoGoldens holds rendered prompts and their ids as an independent
// implementation gives them for the demonstration model.
func TestNanoGoldens(t *testing.T) {
	enc := loadBPE(t, nanoDir)
	var cases []struct {
		Name string `json:"name"`
		Msgs []struct {
			Role, Content, Think string
		} `json:"msgs"`
		Effort   Effort `json:"effort"`
		Thinking bool   `json:"thinking"`
		Rendered string `json:"rendered"`
		IDs      []int  `json:"ids"`
	}
	readJSON(t, "testdata/golden.json", &cases)
	if len(cases) != 8 {
		t.Fatalf("%d cases, want 8", len(cases))
	}
	for _, c := range cases {
		p := &Prompt{Thinking: c.Thinking, Effort: c.Effort, Generate: true}
		for _, m := range c.Msgs {
			p.Messages = append(p.Messages, Message{Role: Role(m.Role), Content: m.Content, Reasoning: m.Think})
		}
		segs, err := Render(p)
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		if got := Text(segs); got != c.Rendered {
			t.Errorf("%s: rendered\n%s\nwant\n%s", c.Name, got, c.Rendered)
		}
		ids, err := Encode(enc, segs)
		if err != nil || !slices.Equal(ids, c.IDs) {
			t.Errorf("%s: ids %v (%v), want %v", c.Name, ids, err, c.IDs)
		}
	}
}

// vectorCase is one chat case of kimi-k3-testvectors.json.
type vectorCase struct {
	Name  string `json:"name"`
	Input struct {
		Msgs []struct {
			Role, Name, Content any
			Reasoning           string `json:"reasoning_content"`
			ToolCallID          string `json:"tool_call_id"`
			Tool                string `json:"tool"`
			ToolCalls           []struct {
				ID       string
				Function struct{ Name, Arguments string }
			} `json:"tool_calls"`
		}
		Thinking *bool           `json:"thinking"`
		Effort   json.RawMessage `json:"effort"`
		Images   []string        `json:"images"`
		Tools    json.RawMessage `json:"tools"`
		Choice   string          `json:"choice"`
		Format   json.RawMessage `json:"rf"`
	} `json:"input"`
	Segments    int    `json:"n_segments"`
	Tokens      int    `json:"n_tokens"`
	TokenHash   string `json:"token_fnv1a64"`
	SegmentHash string `json:"segment_fnv1a64"`
	Rendered    string `json:"rendered"`
}

// prompt turns a case into a Prompt. An image part becomes a text part that
// names it, which the test then makes structural.
func (c *vectorCase) prompt(t *testing.T) *Prompt {
	t.Helper()
	in := c.Input
	p := &Prompt{Thinking: in.Thinking == nil || *in.Thinking, Effort: EffortMax, Tools: in.Tools, ToolChoice: in.Choice, ResponseFormat: in.Format, Generate: true}
	if in.Effort != nil {
		p.Effort = ""
		if err := json.Unmarshal(in.Effort, &p.Effort); err != nil {
			t.Fatal(err)
		}
	}
	images := in.Images
	for _, m := range in.Msgs {
		msg := Message{Role: Role(m.Role.(string)), Reasoning: m.Reasoning, ToolCallID: m.ToolCallID, Tool: m.Tool}
		msg.Name, _ = m.Name.(string)
		switch content := m.Content.(type) {
		case string:
			msg.Content = content
		case []any:
			for _, part := range content {
				part := part.(map[string]any)
				text, ok := part["text"].(string)
				if !ok {
					text, images = images[0], images[1:]
				}
				msg.Parts = append(msg.Parts, cutPlaceholder(text, &images)...)
			}
		}
		for _, call := range m.ToolCalls {
			msg.ToolCalls = append(msg.ToolCalls, ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: call.Function.Arguments})
		}
		p.Messages = append(p.Messages, msg)
	}
	return p
}

// TestOfficialVectors compares with segment and token hashes of the official
// encoder. The image case goes beyond this package: its image segments are
// put in by the test.
func TestOfficialVectors(t *testing.T) {
	var v struct {
		Chat  []vectorCase `json:"chat"`
		Small struct {
			Cases []struct {
				User, Name       string
				Thinking         bool
				Segments, Tokens int
			} `json:"cases"`
		} `json:"chat_small"`
	}
	readJSON(t, filepath.Join(sharedDir(t, "spec"), "kimi-k3-testvectors.json"), &v)
	enc := loadBPE(t, sharedDir(t, "data", "kimi-tokenizer"))
	if len(v.Chat) != 4 || len(v.Small.Cases) != 5 {
		t.Fatalf("%d and %d cases, want 4 and 5", len(v.Chat), len(v.Small.Cases))
	}
	for _, c := range v.Chat {
		segs, err := Render(c.prompt(t))
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		var hashed, ids []uint32
		for i, s := range segs {
			image := slices.Contains(c.Input.Images, s.Text)
			if image {
				segs[i].Structural = true
			}
			n := uint32(len(s.Text))
			if segs[i].Structural {
				n |= 1 << 31
			}
			hashed = append(hashed, n)
			for _, id := range encodeOne(t, enc, segs[i], image) {
				ids = append(ids, uint32(id))
			}
		}
		if got := Text(segs); got != c.Rendered {
			t.Errorf("%s: rendered\n%s\nwant\n%s", c.Name, got, c.Rendered)
		}
		if len(segs) != c.Segments || fnv(hashed) != c.SegmentHash {
			t.Errorf("%s: %d segments, hash %s, want %d, %s", c.Name, len(segs), fnv(hashed), c.Segments, c.SegmentHash)
		}
		if len(ids) != c.Tokens || fnv(ids) != c.TokenHash {
			t.Errorf("%s: %d ids, hash %s, want %d, %s", c.Name, len(ids), fnv(ids), c.Tokens, c.TokenHash)
		}
	}
	for _, c := range v.Small.Cases {
		segs, err := Render(&Prompt{Messages: []Message{{Role: User, Name: c.Name, Content: c.User}}, Thinking: c.Thinking, Generate: true})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := Encode(enc, segs)
		if err != nil || len(ids) != c.Tokens || c.Segments != 0 && len(segs) != c.Segments {
			t.Errorf("%q: %d segments, %d ids (%v), want %d, %d", c.User, len(segs), len(ids), err, c.Segments, c.Tokens)
		}
	}
}

// encodeOne encodes one segment; an image segment mixes markers and text.
func encodeOne(t *testing.T, enc *slowBPE, s Segment, image bool) []int {
	t.Helper()
	segs := []Segment{s}
	if image {
		const begin, end = "<|media_begin|>", "<|media_end|>"
		segs = []Segment{{true, begin}, {false, s.Text[len(begin) : len(s.Text)-len(end)]}, {true, end}}
	}
	ids, err := Encode(enc, segs)
	if err != nil {
		t.Fatal(err)
	}
	return ids
}

// TestEffortMessageIs67Tokens is the published overhead.
func TestEffortMessageIs67Tokens(t *testing.T) {
	enc := loadBPE(t, sharedDir(t, "data", "kimi-tokenizer"))
	count := func(e Effort) int {
		segs, err := Render(&Prompt{Messages: []Message{{Role: User, Content: "Hello"}}, Thinking: true, Effort: e, Generate: true})
		if err != nil {
			t.Fatal(err)
		}
		ids, err := Encode(enc, segs)
		if err != nil {
			t.Fatal(err)
		}
		return len(ids)
	}
	if got := count(EffortMax) - count(""); got != 67 {
		t.Errorf("the effort message has %d tokens, want 67", got)
	}
}

// cutPlaceholder replaces the image placeholder, as an encoder with images would.
func cutPlaceholder(text string, images *[]string) []string {
	const placeholder = "<|kimi_image_placeholder|>"
	before, after, ok := strings.Cut(text, placeholder)
	if !ok {
		return []string{text}
	}
	image := (*images)[0]
	*images = (*images)[1:]
	return []string{before, image, after}
}

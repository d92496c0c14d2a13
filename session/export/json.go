package export

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"deltafin/session"
)

// The JSON form, version 1. Ids are hex strings; times are RFC 3339 in UTC with
// milliseconds; seeds are decimal strings, since many readers of JSON round
// large numbers.
const (
	formatName    = "deltafin.thread"
	formatVersion = 1
)

type document struct {
	Format   string             `json:"format"`
	Version  int                `json:"version"`
	Thread   thread             `json:"thread"`
	Settings []session.Settings `json:"settings"` // turns name them by place
	Turns    []turn             `json:"turns"`    // parents before children
	Branches []branch           `json:"branches"`
	Events   []event            `json:"events"`
}

type thread struct {
	ID      session.ID `json:"id"`
	Title   string     `json:"title"`
	Named   bool       `json:"named,omitempty"`
	Folder  string     `json:"folder,omitempty"`
	Created stamp      `json:"created"`
	Updated stamp      `json:"updated"`
	Branch  string     `json:"branch"`
}

type turn struct {
	ID        session.ID       `json:"id"`
	Parent    session.ID       `json:"parent,omitzero"`
	Role      session.Role     `json:"role"`
	Status    session.Status   `json:"status"`
	Created   stamp            `json:"created"`
	Ended     stamp            `json:"ended,omitzero"`
	Stop      string           `json:"stop,omitempty"`
	Seed      uint64           `json:"seed,string,omitempty"`
	Settings  *int             `json:"settings,omitempty"`
	Origin    *origin          `json:"origin,omitempty"`
	Reasoning bytesText        `json:"reasoning,omitzero"`
	Text      bytesText        `json:"text"`
	Tokens    *tokens          `json:"tokens,omitempty"`
	Sources   []session.Source `json:"sources,omitempty"`
	Timings   []timing         `json:"timings,omitempty"`
}

type origin struct {
	Turn   session.ID `json:"turn"`
	Tokens int        `json:"tokens,omitempty"`
}

// tokens are the ids in order; runs of one channel with their length; and for
// those that have text, how many bytes of it each takes.
type tokens struct {
	IDs     []int32 `json:"ids"`
	Runs    []run   `json:"runs"`
	Lengths []int   `json:"lengths,omitempty"`
}

type run struct {
	Channel string `json:"channel"` // "markup", "thinking", "answer"
	Count   int    `json:"count"`
}

type timing struct {
	Started  stamp   `json:"started"`
	Reused   int     `json:"reused_tokens"`
	Prefill  int     `json:"prefill_tokens"`
	PrefillT int64   `json:"prefill_ns"`
	Decode   int     `json:"decode_tokens"`
	DecodeT  int64   `json:"decode_ns"`
	Read     int64   `json:"read_bytes"`
	HitRate  float64 `json:"hit_rate"`
}

type branch struct {
	Name    string     `json:"name"`
	Leaf    session.ID `json:"leaf,omitzero"`
	Tip     session.ID `json:"tip,omitzero"`
	Created stamp      `json:"created"`
}

type event struct {
	At   stamp      `json:"at"`
	Turn session.ID `json:"turn,omitzero"`
	Kind string     `json:"kind"`
	Text string     `json:"text"`
}

// A stamp is a time in JSON.
type stamp struct{ time.Time }

const stampLayout = "2006-01-02T15:04:05.000Z"

func (s stamp) MarshalText() ([]byte, error) {
	if s.IsZero() {
		return nil, nil
	}
	return []byte(s.UTC().Format(stampLayout)), nil
}

func (s *stamp) UnmarshalText(b []byte) (err error) {
	if len(b) == 0 {
		s.Time = time.Time{}
		return nil
	}
	s.Time, err = time.Parse(time.RFC3339Nano, string(b))
	return err
}

// bytesText is text that may end in half a character, since tokens do. Such
// text is written as {"base64": ...}; all other as a string.
type bytesText string

type rawText struct {
	Base64 []byte `json:"base64"`
}

func (b bytesText) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return marshal(string(b))
	}
	return marshal(rawText{[]byte(b)})
}

func (b *bytesText) UnmarshalJSON(data []byte) error {
	var raw rawText
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, &raw)
		*b = bytesText(raw.Base64)
		return err
	}
	return json.Unmarshal(data, (*string)(b))
}

var channelNames = []string{session.InMarkup: "markup", session.InThinking: "thinking", session.InAnswer: "answer"}

// JSON writes a thread loaded with its bodies, whole or one branch of it.
func JSON(w io.Writer, th *session.Thread) error {
	doc := document{
		Format: formatName, Version: formatVersion,
		Thread: thread{th.ID, th.Title, th.Named, th.Folder, stamp{th.Created}, stamp{th.Updated}, usedBranch(th)},
	}
	known := map[session.Settings]int{}
	kept := map[session.ID]bool{}
	for i := range th.Turns {
		t := &th.Turns[i]
		if t.Body == nil {
			return fmt.Errorf("exporting thread %s: the text of turn %s was not loaded, or is damaged", th.ID.Short(), t.ID.Short())
		}
		kept[t.ID] = true
		out := turn{
			ID: t.ID, Parent: t.Parent, Role: t.Role, Status: t.Status, Created: stamp{t.Created}, Ended: stamp{t.Ended}, Stop: t.Stop, Seed: t.Seed,
			Text: bytesText(t.Body.Text), Reasoning: bytesText(t.Body.Reasoning), Tokens: packTokens(t.Body.Tokens), Sources: t.Sources,
		}
		if t.Role == session.Assistant {
			n, ok := known[t.Settings]
			if !ok {
				n = len(doc.Settings)
				known[t.Settings] = n
				doc.Settings = append(doc.Settings, t.Settings)
			}
			out.Settings = &n
		}
		if t.Origin != nil && kept[t.Origin.Turn] { // a branch alone may lack it
			out.Origin = &origin{t.Origin.Turn, t.Origin.Tokens}
		}
		for _, x := range t.Timings {
			out.Timings = append(out.Timings, timing{stamp{x.Started}, x.Reused, x.Prefill, int64(x.PrefillT), x.Decode, int64(x.DecodeT), x.Read, x.HitRate})
		}
		doc.Turns = append(doc.Turns, out)
	}
	for _, b := range th.Branches {
		doc.Branches = append(doc.Branches, branch{b.Name, b.Leaf, b.Tip, stamp{b.Created}})
	}
	for _, e := range th.Events {
		if e.Turn == 0 || kept[e.Turn] {
			doc.Events = append(doc.Events, event{stamp{e.At}, e.Turn, e.Kind, e.Text})
		}
	}
	return doc.write(w)
}

// write lays the document out for people and for tools that compare lines: one
// turn, branch and event to a line.
func (d *document) write(w io.Writer) error {
	out := bufio.NewWriter(w)
	var failed error
	put := func(v any) {
		text, err := marshal(v)
		failed = errors.Join(failed, err)
		out.Write(text)
	}
	fmt.Fprintf(out, "{\"format\":%q,\"version\":%d,\n\"thread\":", d.Format, d.Version)
	put(d.Thread)
	writeList(out, "settings", d.Settings, put)
	writeList(out, "turns", d.Turns, put)
	writeList(out, "branches", d.Branches, put)
	writeList(out, "events", d.Events, put)
	out.WriteString("}\n")
	return errors.Join(failed, out.Flush())
}

func writeList[T any](out *bufio.Writer, name string, list []T, put func(any)) {
	fmt.Fprintf(out, ",\n%q:[", name)
	for i, v := range list {
		if i > 0 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
		put(v)
	}
	out.WriteByte(']')
}

// marshal is json.Marshal without the escapes that only a web page needs.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// usedBranch is the branch used last, or the only one there is.
func usedBranch(th *session.Thread) string {
	if _, err := th.FindBranch(""); err != nil && len(th.Branches) > 0 {
		return th.Branches[0].Name
	}
	return th.Branch
}

func packTokens(toks []session.Token) *tokens {
	if len(toks) == 0 {
		return nil
	}
	var out tokens
	for i, t := range toks {
		out.IDs = append(out.IDs, t.ID)
		if i == 0 || t.Channel != toks[i-1].Channel {
			out.Runs = append(out.Runs, run{Channel: channelNames[t.Channel]})
		}
		out.Runs[len(out.Runs)-1].Count++
		if t.Channel != session.InMarkup {
			out.Lengths = append(out.Lengths, len(t.Text))
		}
	}
	return &out
}

// Import adds a thread that JSON wrote to a store and returns its id. Errors
// are those of Store.Import; a newer form is session.ErrNewerSchema, anything
// else that cannot be read session.ErrInvalid.
func Import(ctx context.Context, s *session.Store, r io.Reader) (session.ID, error) {
	var doc document
	err := json.NewDecoder(r).Decode(&doc)
	switch {
	case err != nil:
		return 0, fmt.Errorf("importing: %w: %w", session.ErrInvalid, err)
	case doc.Format != formatName:
		return 0, fmt.Errorf("importing: %w: format %q, want %q", session.ErrInvalid, doc.Format, formatName)
	case doc.Version > formatVersion:
		return 0, fmt.Errorf("importing: %w: form %d, this program knows up to %d", session.ErrNewerSchema, doc.Version, formatVersion)
	}
	th, err := doc.load()
	if err != nil {
		return 0, fmt.Errorf("importing: %w", err)
	}
	return th.ID, s.Import(ctx, th)
}

func (d *document) load() (*session.Thread, error) {
	th := &session.Thread{ThreadInfo: session.ThreadInfo{
		ID: d.Thread.ID, Title: d.Thread.Title, Named: d.Thread.Named, Folder: d.Thread.Folder,
		Created: d.Thread.Created.Time, Updated: d.Thread.Updated.Time, Branch: d.Thread.Branch,
	}}
	for _, in := range d.Turns {
		t := session.Turn{
			ID: in.ID, Parent: in.Parent, Role: in.Role, Status: in.Status, Created: in.Created.Time, Ended: in.Ended.Time,
			Stop: in.Stop, Seed: in.Seed, Sources: in.Sources,
		}
		if in.Settings != nil {
			if *in.Settings < 0 || *in.Settings >= len(d.Settings) {
				return nil, fmt.Errorf("%w: turn %s has settings %d of %d", session.ErrInvalid, in.ID.Short(), *in.Settings, len(d.Settings))
			}
			t.Settings = d.Settings[*in.Settings]
		}
		if in.Origin != nil {
			t.Origin = &session.Origin{Turn: in.Origin.Turn, Tokens: in.Origin.Tokens}
		}
		toks, err := in.Tokens.unpack(string(in.Text), string(in.Reasoning))
		if err != nil {
			return nil, fmt.Errorf("%w: turn %s: %w", session.ErrInvalid, in.ID.Short(), err)
		}
		t.Body = &session.Body{Text: string(in.Text), Reasoning: string(in.Reasoning), Tokens: toks}
		for _, x := range in.Timings {
			t.Timings = append(t.Timings, session.Timing{
				Started: x.Started.Time, Reused: x.Reused, Prefill: x.Prefill, PrefillT: time.Duration(x.PrefillT),
				Decode: x.Decode, DecodeT: time.Duration(x.DecodeT), Read: x.Read, HitRate: x.HitRate,
			})
		}
		th.Turns = append(th.Turns, t)
	}
	for _, b := range d.Branches {
		th.Branches = append(th.Branches, session.Branch{Name: b.Name, Leaf: b.Leaf, Tip: b.Tip, Created: b.Created.Time})
	}
	for _, e := range d.Events {
		th.Events = append(th.Events, session.Event{At: e.At.Time, Turn: e.Turn, Kind: e.Kind, Text: e.Text})
	}
	return th, nil
}

// unpack gives every token its piece of text.
func (p *tokens) unpack(text, reasoning string) ([]session.Token, error) {
	if p == nil {
		return nil, nil
	}
	rest := []string{session.InThinking: reasoning, session.InAnswer: text}
	ids, lengths := p.IDs, p.Lengths
	var out []session.Token
	for _, r := range p.Runs {
		ch := -1
		for i, name := range channelNames {
			if name == r.Channel {
				ch = i
			}
		}
		if ch < 0 || r.Count < 0 || r.Count > len(ids) {
			return nil, fmt.Errorf("a run of %d tokens of channel %q", r.Count, r.Channel)
		}
		for _, id := range ids[:r.Count] {
			t := session.Token{ID: id, Channel: session.Channel(ch)}
			if t.Channel != session.InMarkup {
				if len(lengths) == 0 || lengths[0] < 0 || lengths[0] > len(rest[ch]) {
					return nil, errors.New("the lengths of its tokens do not fit its text")
				}
				t.Text, rest[ch] = rest[ch][:lengths[0]], rest[ch][lengths[0]:]
				lengths = lengths[1:]
			}
			out = append(out, t)
		}
		ids = ids[r.Count:]
	}
	if len(ids) > 0 || len(lengths) > 0 {
		return nil, errors.New("there are more ids or lengths than its runs have tokens")
	}
	return out, nil
}

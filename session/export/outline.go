package export

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"deltafin/session"
)

// Options say how a thread is shown to people. nil means the zero value.
type Options struct {
	// Thinking includes the model's reasoning, folded.
	Thinking bool
	// Location is the time zone of the times shown; time.Local by default.
	Location *time.Location
}

func (o *Options) fill() Options {
	var out Options
	if o != nil {
		out = *o
	}
	if out.Location == nil {
		out.Location = time.Local
	}
	return out
}

// A part is a branch as it is read: the turns that no earlier part has shown,
// and the one they follow.
type part struct {
	name  string
	after session.ID // zero: begins the thread
	turns []session.Turn
}

// outline lays the tree out for reading: the branch used last as a whole, then
// what each other branch adds.
func outline(th *session.Thread) []part {
	used := usedBranch(th)
	branches := make([]session.Branch, 0, len(th.Branches))
	for _, b := range th.Branches {
		if b.Name == used {
			branches = append([]session.Branch{b}, branches...)
		} else {
			branches = append(branches, b)
		}
	}
	shown := map[session.ID]bool{}
	var parts []part
	for _, b := range branches {
		p := part{name: b.Name}
		for _, t := range th.Path(b.Leaf) {
			if shown[t.ID] {
				p.after = t.ID
				continue
			}
			shown[t.ID] = true
			p.turns = append(p.turns, t)
		}
		if len(p.turns) > 0 {
			parts = append(parts, p)
		}
	}
	return parts
}

// speaker names who speaks in a turn.
func speaker(t *session.Turn) string {
	switch t.Role {
	case session.User:
		return "Question"
	case session.Assistant:
		return "Answer"
	case session.System:
		return "Instructions"
	}
	return "Tool"
}

// clock shows when a turn was begun.
func (o Options) clock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.In(o.Location).Format("2006-01-02 15:04")
}

// state says how an answer ended, unless it ended by itself.
func state(t *session.Turn) string {
	switch {
	case t.Role != session.Assistant || t.Status == session.Done && (t.Stop == "" || t.Stop == "end"):
		return ""
	case t.Status == session.Done:
		return "stopped: " + t.Stop
	}
	return string(t.Status)
}

// facts lists what an answer was made with and what it cost.
func facts(t *session.Turn) []string {
	if t.Role != session.Assistant {
		return nil
	}
	var out []string
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	set := t.Settings
	if set.Model != "" {
		add("model %s", set.Model)
	}
	if set.Fingerprint != "" {
		add("weights %s", set.Fingerprint)
	}
	if set.KernelSet != "" {
		add("kernels %s", set.KernelSet)
	}
	if set.Effort != "" {
		add("effort %s", set.Effort)
	}
	add("temperature %s", strconv.FormatFloat(set.Temperature, 'g', -1, 64))
	if set.TopP != 0 {
		add("top-p %s", strconv.FormatFloat(set.TopP, 'g', -1, 64))
	}
	add("seed %d", t.Seed)
	add("%s", tokenCount(t.Tokens))
	if t.Thinking > 0 {
		add("%d of them thinking", t.Thinking)
	}
	var sum session.Timing
	for _, x := range t.Timings {
		sum.Prefill, sum.PrefillT = sum.Prefill+x.Prefill, sum.PrefillT+x.PrefillT
		sum.Decode, sum.DecodeT = sum.Decode+x.Decode, sum.DecodeT+x.DecodeT
		sum.Read += x.Read
	}
	if sum.PrefillT > 0 {
		add("prompt of %s read in %s", tokenCount(sum.Prefill), length(sum.PrefillT))
	}
	if sum.DecodeT > 0 {
		add("written in %s (%.2f tokens/s)", length(sum.DecodeT), float64(sum.Decode)/sum.DecodeT.Seconds())
	}
	if sum.Read > 0 {
		add("%.1f GB read", float64(sum.Read)/1e9)
	}
	return out
}

func tokenCount(n int) string {
	if n == 1 {
		return "1 token"
	}
	return fmt.Sprintf("%d tokens", n)
}

// length shows a duration as people read it: 4s, 6m12s, 2h05m.
func length(d time.Duration) string {
	s := int(d.Round(time.Second).Seconds())
	switch {
	case s < 60:
		return fmt.Sprintf("%ds", s)
	case s < 3600:
		return fmt.Sprintf("%dm%02ds", s/60, s%60)
	}
	return fmt.Sprintf("%dh%02dm", s/3600, s/60%60)
}

// sourceLine describes a source after its name.
func sourceLine(src session.Source) string {
	var out []string
	if src.Place != "" && src.Place != src.Name {
		out = append(out, src.Place)
	}
	if src.Range != "" {
		out = append(out, "lines "+src.Range)
	}
	if src.Tokens > 0 {
		out = append(out, tokenCount(src.Tokens))
	}
	if src.Hash != "" {
		out = append(out, "hash "+src.Hash)
	}
	return strings.Join(out, ", ")
}

// whole returns text with a Markdown code fence closed that it left open, as an
// answer cut in the middle may: what follows must not become code.
func whole(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	fence := ""
	for line := range strings.Lines(text) {
		trimmed := strings.TrimRight(strings.TrimLeft(line, " "), " \r\n")
		if len(line)-len(strings.TrimLeft(line, " ")) > 3 {
			continue // indented code
		}
		run := fenceOf(trimmed)
		switch {
		case fence == "" && run != "" && !(run[0] == '`' && strings.Contains(trimmed[len(run):], "`")):
			fence = run
		case fence != "" && run != "" && run[0] == fence[0] && len(run) >= len(fence) && run == trimmed:
			fence = ""
		}
	}
	if fence == "" {
		return text
	}
	return strings.TrimSuffix(text, "\n") + "\n" + fence
}

// fenceOf returns the run of three or more backticks or tildes that a line
// begins with.
func fenceOf(line string) string {
	for _, c := range "`~" {
		if n := len(line) - len(strings.TrimLeft(line, string(c))); n >= 3 {
			return line[:n]
		}
	}
	return ""
}

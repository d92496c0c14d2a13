package export

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"deltafin/session"
)

// Markdown writes a thread loaded with its bodies. The text of turns is left as
// it is, except that an open code fence is closed.
func Markdown(w io.Writer, th *session.Thread, opt *Options) error {
	o := opt.fill()
	out := bufio.NewWriter(w)
	title := th.Title
	if title == "" {
		title = "Thread " + th.ID.Short()
	}
	fmt.Fprintf(out, "# %s\n\nThread %s, begun %s\n", oneLine(title), th.ID, o.clock(th.Created))
	for i, p := range outline(th) {
		if i > 0 {
			fmt.Fprintf(out, "\n---\n\n# Branch %s\n\n%s\n", oneLine(p.name), follows(p))
		}
		for j := range p.turns {
			o.turnMarkdown(out, &p.turns[j])
		}
	}
	return out.Flush()
}

func follows(p part) string {
	if p.after == 0 {
		return "From the beginning:"
	}
	return "After turn " + p.after.Short() + ":"
}

func (o Options) turnMarkdown(out *bufio.Writer, t *session.Turn) {
	fmt.Fprintf(out, "\n## %s %s · %s", speaker(t), t.ID.Short(), o.clock(t.Created))
	if s := state(t); s != "" {
		fmt.Fprintf(out, " · %s", s)
	}
	out.WriteString("\n\n")
	if t.Body == nil {
		out.WriteString("*(the text of this turn is damaged)*\n")
		return
	}
	if o.Thinking && t.Body.Reasoning != "" {
		// The blank lines make what is inside Markdown again.
		fmt.Fprintf(out, "<details><summary>Thinking, %s</summary>\n\n%s\n\n</details>\n\n", tokenCount(t.Thinking), strings.TrimSpace(whole(t.Body.Reasoning)))
	}
	if text := strings.Trim(whole(t.Body.Text), "\n"); text != "" {
		out.WriteString(text + "\n")
	}
	if len(t.Sources) > 0 {
		out.WriteString("\nSources:\n\n")
		for _, src := range t.Sources {
			fmt.Fprintf(out, "- %s", oneLine(src.Name))
			if more := sourceLine(src); more != "" {
				fmt.Fprintf(out, " (%s)", oneLine(more))
			}
			out.WriteString("\n")
		}
	}
	if f := facts(t); len(f) > 0 {
		fmt.Fprintf(out, "\n*%s*\n", oneLine(strings.Join(f, ", ")))
	}
}

// oneLine keeps a name from becoming anything but text of its line.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	return strings.NewReplacer("\\", "\\\\", "*", "\\*", "_", "\\_", "`", "\\`", "<", "&lt;", "[", "\\[", "#", "\\#").Replace(s)
}

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/export"
)

type showFlags struct {
	branch                   string
	all, thinking            bool
	markdown, asJSON, asHTML bool
}

// newShow prints a thread, or exports it.
func newShow(s streams) *cobra.Command {
	var f showFlags
	c := &cobra.Command{
		Use:   "show ID",
		Short: "Print a thread, or export it",
		Long: `Prints the turns of a thread's branch. --md, --json and --html write it in a form for
other programs to standard output; the JSON holds everything, token ids included, and
can be read back with deltafin sessions import. Times, settings and sources go along.`,
		Example: `  deltafin show 3fa9c1b
  deltafin show 3fa9c1b --html > answer.html`,
		Args: oneArg("the id of a thread"),
		RunE: func(c *cobra.Command, args []string) error {
			err := exclusive(c, [][2]string{{"md", "json"}, {"md", "html"}, {"json", "html"}, {"branch", "all"}, {"thinking", "json"}})
			if err != nil {
				return err
			}
			return withThread(c, args[0], false, func(store *session.Store, id session.ID) error {
				return f.show(c, s, store, id)
			})
		},
	}
	fl := c.Flags()
	fl.StringVar(&f.branch, "branch", "", "branch to show (default: the one used last)")
	fl.BoolVar(&f.all, "all", false, "all branches")
	fl.BoolVar(&f.thinking, "thinking", false, "show the thinking in full")
	fl.BoolVar(&f.markdown, "md", false, "write Markdown")
	fl.BoolVar(&f.asJSON, "json", false, "write JSON; all branches unless --branch names one")
	fl.BoolVar(&f.asHTML, "html", false, "write one self-contained HTML file")
	return c
}

func (f *showFlags) show(c *cobra.Command, s streams, store *session.Store, id session.ID) error {
	ctx := c.Context()
	info, err := store.Info(ctx, id)
	if err != nil {
		return err
	}
	opt := session.LoadOptions{Bodies: true, Branch: f.branch}
	if opt.Branch == "" && !f.all && !f.asJSON {
		opt.Branch = info.Branch
	}
	th, damage := store.Load(ctx, id, opt)
	if th == nil {
		return damage
	}
	// What can be read is shown; what cannot is said, and the exit code tells.
	out := bufio.NewWriter(s.out)
	switch {
	case f.markdown:
		err = export.Markdown(out, th, &export.Options{Thinking: f.thinking})
	case f.asHTML:
		err = export.HTML(out, th, &export.Options{Thinking: f.thinking})
	case f.asJSON:
		err = export.JSON(out, th)
	default:
		printThread(out, th, f.thinking, s.outTTY)
	}
	if ferr := out.Flush(); err == nil {
		err = ferr
	}
	return errors.Join(err, damage)
}

// printThread prints turns one after the other, in the order they were made.
func printThread(w io.Writer, th *session.Thread, thinking, tty bool) {
	safe := func(text string) string {
		if tty {
			text = printable(text)
		}
		return strings.TrimRight(text, "\n")
	}
	fmt.Fprintf(w, "%s  %s\n", th.ID.Short(), safe(title(th.Title)))
	if len(th.Branches) > 1 {
		fmt.Fprintf(w, "branches:")
		for _, b := range th.Branches {
			fmt.Fprintf(w, " %s", safe(b.Name))
		}
		fmt.Fprintln(w)
	}
	for i := range th.Turns {
		t := &th.Turns[i]
		fmt.Fprintf(w, "\n%s  %s%s\n", t.ID.Short(), speaker(t.Role), turnNote(t))
		switch {
		case t.Body == nil:
			fmt.Fprintln(w, "(damaged on the disk)")
			continue
		case thinking && t.Body.Reasoning != "":
			for line := range strings.Lines(safe(t.Body.Reasoning) + "\n") {
				fmt.Fprintf(w, "  | %s", line)
			}
		}
		if t.Body.Text != "" {
			fmt.Fprintln(w, safe(t.Body.Text))
		}
		for _, src := range t.Sources {
			fmt.Fprintf(w, "  source: %s %s\n", safe(src.Name), safe(src.Range))
		}
	}
}

func speaker(r session.Role) string {
	switch r {
	case session.User:
		return "question"
	case session.Assistant:
		return "answer"
	}
	return string(r)
}

// turnNote says of an answer what its text does not.
func turnNote(t *session.Turn) string {
	if t.Role != session.Assistant {
		return ""
	}
	parts := []string{fmt.Sprintf("%d tokens", t.Tokens)}
	if t.Thinking > 0 {
		parts = append(parts, fmt.Sprintf("%d of them thinking", t.Thinking))
	}
	if t.Settings.Model != "" {
		parts = append(parts, t.Settings.Model)
	}
	if t.Status != session.Done || t.Stop == "length" || t.Stop == "context" {
		parts = append(parts, strings.TrimSpace(string(t.Status)+" "+t.Stop))
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

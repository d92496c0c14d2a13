package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/export"
)

// newSessions lists threads, and puts them into the trash or back.
func newSessions(s streams) *cobra.Command {
	var asJSON, trashed bool
	var title string
	c := &cobra.Command{
		Use:     "sessions",
		Aliases: []string{"threads"},
		Short:   "List the threads",
		Long: `Lists the threads, the one changed last first: id, state, when it was changed, turns,
tokens, the size of its snapshots, and title. The first digits of an id do in every
command. A title can be changed with deltafin rename.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return listSessions(c.Context(), s, session.ListOptions{Title: title, Trashed: trashed}, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, one object per thread")
	c.Flags().BoolVar(&trashed, "trash", false, "list the trash instead")
	c.Flags().StringVar(&title, "title", "", "only threads whose title contains this")
	c.AddCommand(newTrash("rm", "Put a thread into the trash; deltafin gc empties it", (*session.Store).Trash),
		newTrash("restore", "Take a thread out of the trash", (*session.Store).Untrash), newImport(s))
	return c
}

func newTrash(name, short string, do func(*session.Store, context.Context, session.ID) error) *cobra.Command {
	return &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  oneArg("the id of a thread"),
		RunE: func(c *cobra.Command, args []string) error {
			return withThread(c, args[0], true, func(store *session.Store, id session.ID) error { return do(store, c.Context(), id) })
		},
	}
}

func newImport(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Add the thread of a file that deltafin show --json wrote; - is standard input",
		Args:  oneArg("a file"),
		RunE: func(c *cobra.Command, args []string) error {
			in := s.in
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return usage("%v", err)
				}
				defer f.Close()
				in = f
			}
			store, err := openThreads(c.Context())
			if err != nil {
				return err
			}
			id, err := export.Import(c.Context(), store, in)
			if err == nil {
				_, err = fmt.Fprintln(s.out, id.Short())
			}
			return errors.Join(err, store.Close())
		},
	}
}

// sessionSummary is an element of sessions --json. Its names are stable.
type sessionSummary struct {
	ID        session.ID       `json:"id"`
	Title     string           `json:"title"`
	Status    session.Status   `json:"status"`
	Created   time.Time        `json:"created"`
	Updated   time.Time        `json:"updated"`
	Folder    string           `json:"folder,omitempty"`
	Turns     int              `json:"turns"`
	Tokens    int              `json:"tokens"`
	Branches  int              `json:"branches"`
	Branch    string           `json:"branch"`
	Settings  session.Settings `json:"settings"`
	Snapshots int              `json:"snapshots"`
	Bytes     int64            `json:"snapshot_bytes"`
}

func listSessions(ctx context.Context, s streams, opt session.ListOptions, asJSON bool) error {
	store, err := readThreads(ctx)
	if err != nil {
		return err
	}
	var rows []sessionSummary
	if store != nil {
		rows, err = sessionRows(ctx, store, opt)
		if err = errors.Join(err, store.Close()); err != nil {
			return err
		}
	}
	if asJSON {
		return writeJSON(s.out, append([]sessionSummary{}, rows...))
	}
	if len(rows) == 0 {
		fmt.Fprintln(s.err, nothingThere(opt))
		return nil
	}
	return printSessions(s.out, rows)
}

func nothingThere(opt session.ListOptions) string {
	switch {
	case opt.Title != "":
		return fmt.Sprintf("no thread has %q in its title; deltafin search looks into the texts", opt.Title)
	case opt.Trashed:
		return "the trash is empty"
	}
	return nothingAsked
}

func sessionRows(ctx context.Context, store *session.Store, opt session.ListOptions) ([]sessionSummary, error) {
	list, err := store.List(ctx, opt)
	if err != nil {
		return nil, err
	}
	snaps, err := store.Snapshots(ctx, 0)
	if err != nil {
		return nil, err
	}
	count, bytes := map[session.ID]int{}, map[session.ID]int64{}
	for _, sn := range snaps {
		count[sn.Thread]++
		bytes[sn.Thread] += sn.Bytes
	}
	rows := make([]sessionSummary, len(list))
	for i, t := range list {
		rows[i] = sessionSummary{t.ID, t.Title, t.Status, t.Created, t.Updated, t.Folder, t.TurnCount, t.Tokens, t.BranchCount, t.Branch,
			t.Settings, count[t.ID], bytes[t.ID]}
	}
	return rows, nil
}

func printSessions(w io.Writer, rows []sessionSummary) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "ID\tSTATE\tCHANGED\tTURNS\tTOKENS\tSNAPSHOTS\tTITLE")
	for _, r := range rows {
		branches := ""
		if r.Branches > 1 {
			branches = fmt.Sprintf(" (%s, %d branches)", r.Branch, r.Branches)
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", r.ID.Short(), state(r.Status), r.Updated.Local().Format("2006-01-02 15:04"),
			r.Turns, r.Tokens, bytesText(r.Bytes), printable(title(r.Title)+branches))
	}
	return tab.Flush()
}

// state is a status for people.
func state(s session.Status) string {
	if s == "" {
		return "empty"
	}
	return string(s)
}

func title(t string) string {
	if strings.TrimSpace(t) == "" {
		return "(untitled)"
	}
	return t
}

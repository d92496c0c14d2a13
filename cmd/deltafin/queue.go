package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"deltafin/session"
)

// newQueue holds the commands of the queue.
func newQueue(s streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "queue",
		Short: "Questions that wait: add, list, move, edit, rm, run",
		Long: `The queue holds questions for all threads. deltafin queue run answers them in their
order; it survives a restart, and goes on first with an answer that was cut short.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newQueueAdd(s), newQueueList(s), newQueueMove(), newQueueEdit(), newQueueRemove(), newQueueRun(s))
	return c
}

func newQueueList(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "List the questions that wait, with an estimate of each",
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			store, err := readThreads(c.Context())
			if err != nil {
				return err
			}
			var rows []queueSummary
			if store != nil {
				rows, err = queueRows(c.Context(), store)
				if err = errors.Join(err, store.Close()); err != nil {
					return err
				}
			}
			if asJSON {
				return writeJSON(s.out, append([]queueSummary{}, rows...))
			}
			if len(rows) == 0 {
				fmt.Fprintln(s.err, `No question waits. deltafin queue add "..." puts one here; deltafin queue run answers them.`)
				return nil
			}
			return printQueue(s.out, rows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, one object per question")
	return c
}

// queueSummary is an element of queue list --json. Its names are stable; times
// are in seconds, 0 while nothing was measured.
type queueSummary struct {
	ID       session.ID       `json:"id"`
	Thread   session.ID       `json:"thread,omitzero"`
	Branch   string           `json:"branch,omitempty"`
	Text     string           `json:"text"`
	Tokens   int              `json:"tokens,omitempty"`
	Hold     time.Time        `json:"hold,omitzero"`
	Created  time.Time        `json:"created"`
	Settings session.Settings `json:"settings"`
	Low      float64          `json:"low_s,omitempty"`
	Likely   float64          `json:"likely_s,omitempty"`
	High     float64          `json:"high_s,omitempty"`
}

func queueRows(ctx context.Context, store *session.Store) ([]queueSummary, error) {
	// The model is not opened for a list: the estimates are those of the model
	// that answered last.
	list, err := store.List(ctx, session.ListOptions{})
	if err != nil {
		return nil, err
	}
	fingerprint := ""
	for _, t := range list {
		if fingerprint = t.Settings.Fingerprint; fingerprint != "" {
			break
		}
	}
	items, est, err := store.EstimateQueue(ctx, fingerprint)
	rows := make([]queueSummary, len(items))
	for i, q := range items {
		rows[i] = queueSummary{q.ID, q.Thread, q.Branch, q.Text, q.Tokens, q.Hold, q.Created, q.Settings,
			est[i].Low.Seconds(), est[i].Likely.Seconds(), est[i].High.Seconds()}
	}
	return rows, err
}

func printQueue(w io.Writer, rows []queueSummary) error {
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tab, "#\tID\tTHREAD\tNOT BEFORE\tTAKES\tQUESTION")
	for i, r := range rows {
		thread, hold, takes := "new", "-", "unknown"
		if r.Thread != 0 {
			thread = r.Thread.Short()
		}
		if !r.Hold.IsZero() {
			hold = r.Hold.Local().Format("2006-01-02 15:04")
		}
		if r.Likely > 0 {
			takes = fmt.Sprintf("%s to %s", duration(seconds(r.Low)), duration(seconds(r.High)))
		}
		line, _, _ := strings.Cut(strings.TrimSpace(r.Text), "\n")
		fmt.Fprintf(tab, "%d\t%s\t%s\t%s\t%s\t%s\n", i+1, r.ID.Short(), thread, hold, takes, printable(line))
	}
	return tab.Flush()
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func newQueueMove() *cobra.Command {
	return &cobra.Command{
		Use:     "move ID place",
		Short:   "Put a question at a place, 1 being the first",
		Example: "  deltafin queue move 9c1 1",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage("%s takes an id and a place, got %d arguments", c.CommandPath(), len(args))
			}
			place, err := strconv.Atoi(args[1])
			if err != nil || place < 1 {
				return usage("%q is no place: give a number from 1", args[1])
			}
			return withQueued(c, args[0], func(store *session.Store, id session.ID) error {
				return store.MoveQueued(c.Context(), id, place-1)
			})
		},
	}
}

func newQueueEdit() *cobra.Command {
	var at string
	c := &cobra.Command{
		Use:   "edit ID [text]",
		Short: "Change a waiting question, or when it may start",
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) == 1 && !c.Flags().Changed("at") {
				return usage("%s takes an id and a new text, or --at", c.CommandPath())
			}
			hold, err := parseHold(at, time.Now())
			if err != nil {
				return err
			}
			return withQueued(c, args[0], func(store *session.Store, id session.ID) error {
				items, err := store.Queue(c.Context())
				if err != nil {
					return err
				}
				for _, q := range items {
					if q.ID != id {
						continue
					}
					if len(args) > 1 {
						q.Text, q.Tokens = strings.Join(args[1:], " "), 0
					}
					if c.Flags().Changed("at") {
						q.Hold = hold
					}
					return store.EditQueued(c.Context(), q)
				}
				return fmt.Errorf("queue item %s: %w", id.Short(), session.ErrNotFound)
			})
		},
	}
	c.Flags().StringVar(&at, "at", "", holdHelp)
	return c
}

func newQueueRemove() *cobra.Command {
	return &cobra.Command{
		Use:   "rm ID",
		Short: "Take a question out of the queue",
		Args:  oneArg("the id of a question"),
		RunE: func(c *cobra.Command, args []string) error {
			return withQueued(c, args[0], func(store *session.Store, id session.ID) error {
				return store.RemoveQueued(c.Context(), id)
			})
		},
	}
}

// withQueued runs f with the threads and the waiting question of an id.
func withQueued(c *cobra.Command, arg string, f func(*session.Store, session.ID) error) error {
	store, err := openThreads(c.Context())
	if err != nil {
		return err
	}
	id, err := store.FindQueued(c.Context(), arg)
	if err == nil {
		err = f(store, id)
	}
	return errors.Join(err, store.Close())
}

// holdHelp describes the values of --at.
const holdHelp = `not before: "22:30", "tonight" (22:00), "2026-01-31 06:00", "+2h", or "now"`

// parseHold reads a time as people give it. A time of day is the next one.
func parseHold(s string, now time.Time) (time.Time, error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "" || s == "now":
		return time.Time{}, nil
	case s == "tonight":
		s = "22:00"
	case strings.HasPrefix(s, "+"):
		d, err := time.ParseDuration(s[1:])
		if err != nil || d <= 0 {
			return time.Time{}, usage("--at %q: after + give a time such as 90m or 2h", s)
		}
		return now.Add(d), nil
	}
	if t, err := time.ParseInLocation("15:04", s, now.Location()); err == nil {
		at := time.Date(now.Year(), now.Month(), now.Day(), t.Hour(), t.Minute(), 0, 0, now.Location())
		if !at.After(now) {
			at = at.AddDate(0, 0, 1)
		}
		return at, nil
	}
	for _, layout := range []string{"2006-01-02 15:04", "2006-01-02T15:04", time.RFC3339} {
		if t, err := time.ParseInLocation(layout, s, now.Location()); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usage("--at %q is no time: give one such as 22:30, tonight, 2026-01-31 06:00 or +2h", s)
}

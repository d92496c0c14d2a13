package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/control"
)

// statusReport is what deltafin status prints. Its names are stable.
type statusReport struct {
	Running    bool            `json:"running"`
	Owner      *ownerReport    `json:"owner,omitempty"`
	Now        *control.Status `json:"now,omitempty"`
	Queue      int             `json:"queue"`
	Unfinished []threadLine    `json:"unfinished"` // answers that can go on, the newest first
}

type ownerReport struct {
	PID     int       `json:"pid"`
	TTY     string    `json:"tty,omitempty"`
	Started time.Time `json:"started"`
}

type threadLine struct {
	ID     session.ID     `json:"id"`
	Title  string         `json:"title"`
	Status session.Status `json:"status"`
}

// newStatusCmd says what the model is doing, in whatever process it runs.
func newStatusCmd(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status",
		Short: "Say what the model is doing, and what waits",
		Long: `Says what the running deltafin is doing: the answer under way, how far it is, how fast,
and how many questions wait. When none is running it says what was left unfinished.
It never disturbs the work.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			r, err := readStatus(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				return writeJSON(s.out, r)
			}
			_, err = fmt.Fprint(s.out, r.text(time.Now()))
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

func readStatus(ctx context.Context) (*statusReport, error) {
	r := &statusReport{Unfinished: []threadLine{}}
	if err := r.running(ctx); err != nil {
		return nil, err
	}
	store, err := readThreads(ctx)
	if err != nil || store == nil {
		return r, err
	}
	list, err := store.Unfinished(ctx)
	if err == nil {
		var items []session.QueueItem
		items, err = store.Queue(ctx)
		r.Queue = len(items)
	}
	for _, t := range list {
		if r.Now != nil && t.ID == r.Now.Thread {
			continue // told as what is under way
		}
		r.Unfinished = append(r.Unfinished, threadLine{t.ID, t.Title, t.Status})
	}
	return r, errors.Join(err, store.Close())
}

// running asks the owner, if there is one.
func (r *statusReport) running(ctx context.Context) error {
	cl, err := dialOwner(ctx)
	if errors.Is(err, control.ErrNotRunning) {
		return nil
	}
	if err != nil {
		return err
	}
	st, err := cl.Status(ctx)
	if err = errors.Join(err, cl.Close()); err != nil {
		return err
	}
	o := cl.Owner()
	r.Running, r.Now, r.Owner = true, &st, &ownerReport{o.PID, o.TTY, o.Started}
	return nil
}

// text is the report for people.
func (r *statusReport) text(now time.Time) string {
	out := ""
	line := func(format string, args ...any) { out += fmt.Sprintf(format, args...) + "\n" }
	if r.Running {
		where := "detached; to watch: deltafin attach"
		if r.Now.Screen != "" {
			where = "on " + r.Now.Screen
		}
		line("running: pid %d, since %s, %s", r.Owner.PID, duration(now.Sub(r.Owner.Started)), where)
		line("%s", statusLineOf(r.Now))
		if r.Now.Error != "" {
			line("stopped by: %s", printable(r.Now.Error))
		}
	} else {
		line("nothing is running")
	}
	if r.Queue > 0 {
		line("waiting: %d", r.Queue)
	}
	for _, t := range r.Unfinished {
		line("unfinished: %s  %s; to go on: deltafin resume %s", t.ID.Short(), printable(t.Title), t.ID.Short())
	}
	return out
}

// statusLineOf is one line about the answer under way.
func statusLineOf(st *control.Status) string {
	title := ""
	if st.Title != "" {
		title = fmt.Sprintf("  %s (%s)", printable(st.Title), st.Thread.Short())
	}
	switch st.State {
	case "prefill":
		return fmt.Sprintf("reading the question: %.0f %% of %d tokens, layer %d of %d, about %s left%s",
			100*st.Read, st.Prompt, st.Layer, st.Layers, duration(secondsOf(st.Left)), title)
	case "thinking", "decoding", "saving", "pausing":
		return fmt.Sprintf("%s: %d tokens, %.2f tokens/s, %s%s", st.State, st.Tokens, st.Rate, duration(secondsOf(st.Elapsed)), title)
	case "paused", "stopped":
		return fmt.Sprintf("%s at token %d%s", st.State, st.Tokens, title)
	}
	return st.State + title
}

func secondsOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

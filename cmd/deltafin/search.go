package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deltafin/session"
)

// newSearch looks for text in all threads.
func newSearch(s streams) *cobra.Command {
	var asJSON bool
	var limit int
	var thread string
	c := &cobra.Command{
		Use:   "search text",
		Short: "Find text in titles, questions, answers and thinking",
		Long: `Finds threads and turns that contain every word and every "quoted phrase", titles
first, then turns from the newest on. Case and accents do not matter; the last word
may be the beginning of a longer one.`,
		Example: `  deltafin search latent heat
  deltafin search '"phase change" storage'`,
		RunE: func(c *cobra.Command, args []string) error {
			query := strings.Join(args, " ")
			if strings.TrimSpace(query) == "" {
				return usage("%s: give the words to look for", c.CommandPath())
			}
			if limit < 1 {
				return usage("--limit %d: give at least 1", limit)
			}
			ctx := c.Context()
			store, err := readThreads(ctx)
			if err != nil {
				return err
			}
			var hits []session.Hit
			if store != nil {
				opt := session.SearchOptions{Limit: limit}
				if thread != "" {
					opt.Thread, err = store.FindThread(ctx, thread)
				}
				if err == nil {
					hits, err = store.Search(ctx, query, opt)
				}
				if err = errors.Join(err, store.Close()); err != nil {
					return err
				}
			}
			return printHits(s, query, hits, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON array, one object per place")
	c.Flags().IntVar(&limit, "limit", 50, "most places to print")
	c.Flags().StringVar(&thread, "thread", "", "only in this thread")
	return c
}

// hitSummary is an element of search --json. Its names are stable.
type hitSummary struct {
	Thread    session.ID   `json:"thread"`
	Title     string       `json:"title"`
	Turn      session.ID   `json:"turn,omitzero"`
	Role      session.Role `json:"role,omitempty"`
	Reasoning bool         `json:"reasoning,omitempty"`
	Line      string       `json:"line"`
	From      int          `json:"from"`
	To        int          `json:"to"`
}

func printHits(s streams, query string, hits []session.Hit, asJSON bool) error {
	if asJSON {
		out := make([]hitSummary, len(hits))
		for i, h := range hits {
			out[i] = hitSummary{h.Thread, h.Title, h.Turn, h.Role, h.Reasoning, h.Line, h.From, h.To}
		}
		return writeJSON(s.out, out)
	}
	if len(hits) == 0 {
		fmt.Fprintf(s.err, "%q is in no title and no text of the threads\n", query)
		return nil
	}
	for _, h := range hits {
		place := h.Thread.Short()
		where := "title"
		if h.Turn != 0 {
			place += ":" + h.Turn.Short()
			where = speaker(h.Role)
			if h.Reasoning {
				where = "thinking"
			}
		}
		if _, err := fmt.Fprintf(s.out, "%s  %s  %s\n    %s\n", place, where, printable(title(h.Title)), printable(h.Line)); err != nil {
			return err
		}
	}
	return nil
}

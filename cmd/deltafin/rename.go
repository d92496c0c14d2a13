package main

import (
	"strings"

	"github.com/spf13/cobra"

	"deltafin/session"
)

// newRename gives a thread a title.
func newRename() *cobra.Command {
	return &cobra.Command{
		Use:     "rename ID title",
		Short:   "Give a thread a title",
		Example: `  deltafin rename 3fa9c1b "Storing heat"`,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) < 2 {
				return usage("%s takes the id of a thread and a title", c.CommandPath())
			}
			return withThread(c, args[0], true, func(store *session.Store, id session.ID) error {
				return store.Rename(c.Context(), id, strings.Join(args[1:], " "))
			})
		},
	}
}

package main

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deltafin/tui"
)

// newKeys prints the keys of the screen, from the table that the screen obeys.
func newKeys(s streams) *cobra.Command {
	return &cobra.Command{
		Use:   "keys",
		Short: "Print the keys of the screen",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			for _, k := range tui.Keys() {
				fmt.Fprintf(w, "%s\t%s\t%s\n", k.Keys, k.Help, k.When)
			}
			return w.Flush()
		},
	}
}

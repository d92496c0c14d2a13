package main

import (
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/paths"
)

// newPaths says where the program's files are.
func newPaths(s streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "paths",
		Short: "Print where threads, settings and snapshots are kept",
		Long: `Prints the folders and files that belong to the program, whether they exist or not.
The variable ` + paths.HomeVar + ` puts all of them below one folder.`,
		Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			p, err := paths.Default()
			if err != nil {
				return err
			}
			rows := [][2]string{
				{"config", p.Config}, {"data", p.Data}, {"threads", filepath.Join(p.Data, session.FileName)},
				{"state", p.State}, {"snapshots", filepath.Join(p.State, "snapshots")}, {"cache", p.Cache},
			}
			if asJSON {
				out := map[string]string{}
				for _, r := range rows {
					out[r[0]] = r[1]
				}
				return writeJSON(s.out, out)
			}
			tab := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
			for _, r := range rows {
				fmt.Fprintf(tab, "%s\t%s\n", r[0], r[1])
			}
			return tab.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

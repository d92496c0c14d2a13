package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newMan prints the manual page, or writes one per command.
func newMan() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use:     "man",
		Short:   "Print the manual page",
		Long:    "Prints the manual page of the program, or with --dir writes one per command.",
		Example: "  deltafin man | man -l -\n  deltafin man --dir /usr/local/share/man/man1",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			header := &doc.GenManHeader{Title: "DELTAFIN", Section: "1", Source: "Deltafin"}
			root := c.Root()
			root.DisableAutoGenTag = true
			if dir == "" {
				return doc.GenMan(root, header, c.OutOrStdout())
			}
			if err := doc.GenManTree(root, header, dir); err != nil {
				return fmt.Errorf("writing the manual pages: %w", err)
			}
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "folder to write one page per command to")
	_ = c.MarkFlagDirname("dir")
	return c
}

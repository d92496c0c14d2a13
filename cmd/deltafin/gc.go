package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deltafin/session"
	threads "deltafin/session/run"
)

// newGC removes what nothing can reach any more.
func newGC(s streams) *cobra.Command {
	var dry bool
	var dir string
	c := &cobra.Command{
		Use:   "gc",
		Short: "Empty the trash and remove snapshots that nothing can use",
		Long: `Removes the threads in the trash with all they hold, the snapshots of turns that no
branch reaches, and files that a crash left half-written among the snapshots. Turns of
threads that are not in the trash are never removed.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return collect(c.Context(), s, dir, dry)
		},
	}
	c.Flags().BoolVar(&dry, "dry-run", false, "only print what would be removed")
	c.Flags().StringVar(&dir, "snapshots", "", "folder of the snapshots (default: in the state folder)")
	_ = c.MarkFlagDirname("snapshots")
	return c
}

func collect(ctx context.Context, s streams, dir string, dry bool) error {
	dir, err := snapshotDir(dir)
	if err != nil {
		return err
	}
	store, err := readThreads(ctx)
	if err == nil && store != nil && !dry {
		err = store.Close()
		if err == nil {
			store, err = openThreads(ctx)
		}
	}
	if err != nil {
		return err
	}
	if store == nil {
		fmt.Fprintln(s.err, nothingAsked)
		return nil
	}
	status := newStatus(s)
	g, err := store.GC(ctx, dry, func(path string) error {
		status.set("removing %s", path)
		return os.Remove(path)
	})
	var strays []threads.Stray
	if err == nil {
		strays, err = threads.Sweep(ctx, store, dir, dry)
	}
	status.clear()
	if err := printGarbage(s, g, strays, dry); err != nil {
		return errors.Join(err, store.Close())
	}
	return errors.Join(err, store.Close())
}

func printGarbage(s streams, g session.Garbage, strays []threads.Stray, dry bool) error {
	total := g.Bytes
	for _, t := range g.Threads {
		fmt.Fprintf(s.out, "thread    %s  %s\n", t.ID.Short(), printable(title(t.Title)))
	}
	for _, sn := range g.Snapshots {
		fmt.Fprintf(s.out, "snapshot  %s  %s\n", sn.Path, bytesText(sn.Bytes))
	}
	for _, st := range strays {
		total += st.Bytes
		fmt.Fprintf(s.out, "stray     %s  %s\n", st.Path, bytesText(st.Bytes))
	}
	verb := "removed"
	if dry {
		verb = "would remove"
	}
	_, err := fmt.Fprintf(s.out, "%s %d threads and %d files, %s\n", verb, len(g.Threads), len(g.Snapshots)+len(strays), bytesText(total))
	return err
}

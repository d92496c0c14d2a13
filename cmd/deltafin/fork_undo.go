package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"deltafin/session"
)

// newUndo and newRedo move the end of a branch.
func newUndo(s streams) *cobra.Command {
	return newStep(s, "undo", "Take the last turn off a branch; redo brings it back", (*session.Writer).Undo)
}

func newRedo(s streams) *cobra.Command {
	return newStep(s, "redo", "Put a turn that was undone back", (*session.Writer).Redo)
}

// newStep is undo or redo. It prints the turn that the branch now ends with.
func newStep(s streams, name, short string, do func(*session.Writer, context.Context, string) (session.ID, error)) *cobra.Command {
	var branch string
	c := &cobra.Command{
		Use:   name + " ID",
		Short: short,
		Args:  oneArg("the id of a thread"),
		RunE: func(c *cobra.Command, args []string) error {
			return withThread(c, args[0], true, func(store *session.Store, id session.ID) error {
				w, err := store.Lock(c.Context(), id)
				if err != nil {
					return err
				}
				leaf, err := do(w, c.Context(), branch)
				if err = errors.Join(err, w.Close()); err != nil {
					return err
				}
				text := "empty"
				if leaf != 0 {
					text = leaf.Short()
				}
				_, err = fmt.Fprintln(s.out, text)
				return err
			})
		},
	}
	c.Flags().StringVar(&branch, "branch", "", "branch of the thread (default: the one used last)")
	return c
}

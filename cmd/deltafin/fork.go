package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"deltafin/session"
)

type forkFlags struct {
	name string
	at   int
	edit string
}

// newFork makes a branch.
func newFork(s streams) *cobra.Command {
	var f forkFlags
	c := &cobra.Command{
		Use:   "fork ID[:TURN]",
		Short: "Make a branch at a turn, inside an answer, or with an edited question",
		Long: `Makes a new branch of a thread that ends at a turn (default: the last one of the branch
used last), prints its name, and makes it the one used last. Nothing is lost: the
other branches stay. deltafin show prints the ids of turns.

--at N cuts an answer after N of its tokens, to be continued from there. --edit TEXT
puts a changed question beside one; deltafin resume then answers it.`,
		Example: `  deltafin fork 3fa9c1b:77e0d1
  deltafin fork 3fa9c1b --edit "Compare four ways instead." && deltafin resume 3fa9c1b`,
		Args: oneArg("the id of a thread"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := exclusive(c, [][2]string{{"at", "edit"}}); err != nil {
				return err
			}
			if c.Flags().Changed("at") && f.at < 0 {
				return usage("--at %d: give a number of tokens, 0 for none", f.at)
			}
			thread, turn, _ := strings.Cut(args[0], ":")
			return withThread(c, thread, true, func(store *session.Store, id session.ID) error {
				return f.fork(c, s, store, id, turn)
			})
		},
	}
	c.Flags().StringVar(&f.name, "name", "", "name of the branch (default: main-2 and so on)")
	c.Flags().IntVar(&f.at, "at", -1, "keep so many tokens of the answer")
	c.Flags().StringVar(&f.edit, "edit", "", "new text of the question")
	return c
}

func (f *forkFlags) fork(c *cobra.Command, s streams, store *session.Store, id session.ID, turn string) (err error) {
	ctx := c.Context()
	th, err := store.Load(ctx, id, session.LoadOptions{})
	if err != nil {
		return err
	}
	b, err := th.FindBranch("")
	if err != nil {
		return err
	}
	at := b.Leaf
	if turn != "" {
		if at, err = store.FindTurn(ctx, id, turn); err != nil {
			return err
		}
	} else if c.Flags().Changed("edit") {
		at = lastQuestion(th.Path(b.Leaf))
	}
	if at == 0 {
		return usage("thread %s has no turn to fork at", id.Short())
	}
	var name string
	if c.Flags().Changed("edit") {
		w, lerr := store.Lock(ctx, id)
		if lerr != nil {
			return lerr
		}
		name, _, err = w.Edit(ctx, at, session.NewTurn{Role: session.User, Text: f.edit}, f.name)
		err = errors.Join(err, w.Close())
	} else {
		name, err = store.Fork(ctx, id, at, f.at, f.name)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.out, name)
	return err
}

func lastQuestion(path []session.Turn) (id session.ID) {
	for _, t := range path {
		if t.Role == session.User {
			id = t.ID
		}
	}
	return id
}

package main

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/spf13/cobra"

	"deltafin/session"
	"deltafin/session/paths"
)

// openThreads opens the threads for writing, making the database if need be.
func openThreads(ctx context.Context) (*session.Store, error) {
	p, err := paths.Default()
	if err != nil {
		return nil, err
	}
	return session.Open(ctx, p.Data, nil)
}

// readThreads opens the threads for reading. Where none was ever kept the store
// is nil: that is an empty list, not an error.
func readThreads(ctx context.Context) (*session.Store, error) {
	p, err := paths.Default()
	if err != nil {
		return nil, err
	}
	s, err := session.Open(ctx, p.Data, &session.Options{ReadOnly: true})
	if errors.Is(err, session.ErrNotFound) {
		return nil, nil
	}
	return s, err
}

// nothingAsked is said where there is no thread at all.
const nothingAsked = `Nothing asked yet. Begin a thread with: deltafin ask --new "..."`

// snapshotDir is the folder of snapshots: the one asked for, else that of the
// program's state.
func snapshotDir(flag string) (string, error) {
	if flag != "" {
		return filepath.Abs(flag)
	}
	p, err := paths.Default()
	if err != nil {
		return "", err
	}
	return filepath.Join(p.State, "snapshots"), nil
}

// withThread runs f with the threads and the one that an argument names. Only a
// command that changes something opens them for writing.
func withThread(c *cobra.Command, arg string, write bool, f func(*session.Store, session.ID) error) error {
	open := readThreads
	if write {
		open = openThreads
	}
	store, err := open(c.Context())
	if err != nil {
		return err
	}
	if store == nil {
		return usage("no thread %s: %s", arg, nothingAsked)
	}
	id, err := store.FindThread(c.Context(), arg)
	if err == nil {
		err = f(store, id)
	}
	return errors.Join(err, store.Close())
}

// lastThread is the thread that was changed last.
func lastThread(ctx context.Context, s *session.Store) (session.ID, error) {
	list, err := s.List(ctx, session.ListOptions{Limit: 1})
	if err != nil {
		return 0, err
	}
	if len(list) == 0 {
		return 0, usage("%s", nothingAsked)
	}
	return list[0].ID, nil
}

// oneArg wants exactly one argument, with a usage error that names it.
func oneArg(what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s takes %s, got %d arguments", c.CommandPath(), what, len(args))
		}
		return nil
	}
}

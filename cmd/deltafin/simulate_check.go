package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deltafin/engine/simulate/check"
)

// checkFlags are those of simulate --check.
type checkFlags struct {
	on      bool
	scratch string
}

func (f *checkFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.on, "check", false, "run small models for real and in virtual time, and say where the two differ (some minutes)")
	c.Flags().StringVar(&f.scratch, "scratch", "", "with --check: folder for its models and drives (default: memory where the system has a folder in it, else the one for temporary files)")
}

// simulatedOnly are the flags of simulate that say what is simulated.
var simulatedOnly = []string{"tokens", "warm", "prompt", "expert-cache", "trace", "recall", "no-ahead", "layers", "seed", "this", "drive", "trunk"}

// start refuses what has no effect beside --check, and checks.
func (f *checkFlags) start(c *cobra.Command, s streams, args []string, model string, asJSON bool) error {
	if len(args) > 0 {
		return usage("--check emulates its own machines, leave %s out", args[0])
	}
	for _, name := range simulatedOnly {
		if c.Flags().Changed(name) {
			return usage("--%s has no effect with --check: leave one of them out", name)
		}
	}
	return f.run(c.Context(), s, model, asJSON)
}

// run checks. The exit code is 1 if the two differ.
func (f *checkFlags) run(ctx context.Context, s streams, model string, asJSON bool) error {
	o := check.Options{Scratch: f.scratch, Model: model}
	if o.Scratch == "" {
		if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
			o.Scratch = "/dev/shm"
		}
	} else if info, err := os.Stat(o.Scratch); err != nil || !info.IsDir() {
		return usage("--scratch %s is no folder", o.Scratch)
	}
	line := newStatus(s)
	o.Progress = func(done, of int, what string) { line.set("configuration %d of %d: %s", done+1, of, what) }
	r, err := check.Run(ctx, o)
	line.clear()
	var large *check.SizeError
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(s.err, "interrupted; what the check wrote was removed")
		return errReported
	case errors.As(err, &large):
		return usage("--model %s: %v", model, err)
	case err != nil:
		return err
	}
	if asJSON {
		err = writeJSON(s.out, r)
	} else {
		err = r.Text(s.out)
	}
	if err != nil {
		return err
	}
	if !r.Agrees {
		fmt.Fprintf(s.err, "deltafin: simulated and real runs differ by more than %.0f %%\n", 100*r.Tolerance)
		return errReported
	}
	return nil
}

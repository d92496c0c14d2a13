package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"
)

// streams are the ends of the program. tty says of each whether a person sits
// there.
type streams struct {
	in             io.Reader
	out, err       io.Writer
	inTTY          bool
	outTTY, errTTY bool
}

func stdio() streams {
	return streams{
		in: os.Stdin, out: os.Stdout, err: os.Stderr,
		inTTY: isTerminal(os.Stdin), outTTY: isTerminal(os.Stdout), errTTY: isTerminal(os.Stderr),
	}
}

func isTerminal(f *os.File) bool { return isatty.IsTerminal(f.Fd()) || isatty.IsCygwinTerminal(f.Fd()) }

// run is the whole program without its process: arguments in, exit code out.
func run(ctx context.Context, args []string, s streams) int {
	s.err = &lockedWriter{w: s.err}
	cmd := newRoot(s)
	cmd.SetArgs(args)
	cmd.SetIn(s.in)
	cmd.SetOut(s.out)
	cmd.SetErr(s.err)
	err := cmd.ExecuteContext(ctx)
	code := exitCode(ctx, err)
	if err != nil && !errors.Is(err, errReported) {
		fmt.Fprintf(s.err, "deltafin: %s\n", oneLine(err.Error()))
		if code == exitUsage {
			fmt.Fprintf(s.err, "Try: deltafin --help\n")
		}
	}
	return code
}

func newRoot(s streams) *cobra.Command {
	var screen screenFlags
	root := &cobra.Command{
		Use:   "deltafin",
		Short: "Kimi K3 on one computer",
		Long: `Deltafin runs Kimi K3, a language model of 2.8 trillion parameters, on one
ordinary computer. Without a model it uses the demonstration model inside the
program: the same architecture, very small, a toy.`,
		Example: `  deltafin ask "What is Deltafin?"
  deltafin ask --new "Compare three ways to store heat."
  deltafin ask --model /models/Kimi-K3 "Why is the sky blue?" < notes.txt
  deltafin inspect --model /models/Kimi-K3`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !s.inTTY || !s.outTTY {
				if c.Flags().NFlag() > 0 {
					return usage("a conversation needs a terminal; for scripts: deltafin ask \"...\"")
				}
				return c.Help()
			}
			return screen.run(c.Context(), c, s)
		},
	}
	screen.add(root)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%v", err) })
	root.AddCommand(newDrives(s), newPlace(s), newVerify(s), newBench(s), newPlan(s), newSimulate(s))
	root.AddCommand(newAsk(s), newResume(s), newShow(s), newSessions(s), newFork(s), newUndo(s), newRedo(s), newRename(),
		newSearch(s), newQueue(s), newGC(s), newPaths(s))
	root.AddCommand(newStatusCmd(s), newAttach(s), newTell(), newDemo(s), newDoctor(s), newKeys(s))
	root.AddCommand(newLogits(s), newTokenize(s), newInspect(s), newMemory(s), newTrunk(s), newTrace(s), newSynth(s), newMan())
	return root
}

// noArgs is cobra.NoArgs with a usage error.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, got %q", c.CommandPath(), args[0])
	}
	return nil
}

// exclusive refuses pairs of flags that contradict each other.
func exclusive(c *cobra.Command, pairs [][2]string) error {
	for _, p := range pairs {
		if c.Flags().Changed(p[0]) && c.Flags().Changed(p[1]) {
			return usage("--%s and --%s contradict each other: one of them would have no effect", p[0], p[1])
		}
	}
	return nil
}

package main

import "github.com/spf13/cobra"

// newBenchPrefill measures reading a prompt with experts read from drives.
func newBenchPrefill(s streams) *cobra.Command {
	var f benchModelFlags
	c := &cobra.Command{
		Use:   "prefill",
		Short: "Reading a prompt with experts read from drives, against its bounds",
		Long: `Reads a prompt of random tokens and says what it cost: the time to the first token,
the bytes read beside those of the experts needed, and the bounds as in bench decode.
An expert that several tokens of a pass need is needed once.`,
		Example: `  deltafin bench prefill --model /mnt/a/synth --cache 6GiB --prompt 512
  deltafin bench prefill --cache 2MiB --drive /tmp/a,limit=200MB/s --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			return f.run(c.Context(), c, s, "prefill")
		},
	}
	f.add(c, 512)
	return c
}

package main

import (
	"fmt"
	"io"

	"deltafin/engine/checkpoint"
	"deltafin/engine/trunk"
)

// printTrunk says what layers that are read for every pass cost.
func (r *streamReport) printTrunk(w io.Writer) {
	defer fmt.Fprintln(w)
	t := r.done.Trunk
	form := ""
	if label := r.e.Info().Trunk; label != "" {
		form = label + ", "
	}
	if t.Memory == 0 {
		if form != "" {
			fmt.Fprintf(w, "trunk: %sall layers in memory\n", form)
		}
		return // mapped, or all of it in memory beside mapped experts
	}
	if t.Streamed == 0 {
		fmt.Fprintf(w, "trunk: %sall layers in %s\n", form, bytesText(t.Memory))
		return
	}
	fmt.Fprintf(w, "trunk: %s%d layers in memory, %d read for every pass: %s each time, %d buffers\n", form, t.Resident, t.Streamed, bytesText(t.PerPass), t.Buffers)
	t.Sub(&r.start.Trunk)
	fmt.Fprintf(w, "trunk: %s read, %s of it in vain; %d of %d layers came late, the arithmetic waited %s\n",
		bytesText(t.Read), bytesText(t.Wasted), t.Late, t.Layers, readTime(t.Stall))
}

// streamedTrunk is what of the trunk has to be read for every token if so much memory
// is left for it, in bytes, and what it then takes. ok is false if it is too little.
// It follows from the config alone.
func streamedTrunk(a *checkpoint.Account, memory int64) (p trunk.Plan, ok bool) {
	c := trunk.NewSizes(a.LayerBytes, a.ByClass[checkpoint.Head].Bytes)
	return c.Plan(memory), memory >= c.Least()
}

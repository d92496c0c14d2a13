package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"deltafin/engine/synth"
	"deltafin/ssdio"
)

type synthFlags struct {
	o     synth.Options
	out   string
	force bool
	json  bool
}

// newSynth makes checkpoints to measure with.
func newSynth(s streams) *cobra.Command {
	var f synthFlags
	c := &cobra.Command{
		Use:   "synth --out DIR",
		Short: "Make a checkpoint of random weights, to measure with",
		Long: `Writes a checkpoint in the official layout with random weights and K3's true
dimensions, with as many layers and experts as asked for. The arithmetic, the bytes
and the experts per token are those of the real model; what it says is noise.

The files are a function of the options: the same command makes the same bytes, and
after an interruption it goes on with the files that are missing.`,
		Example: `  deltafin synth --layers 8 --experts 128 --out /mnt/a/synth
  deltafin bench decode --model /mnt/a/synth --memory 6GiB`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if f.out == "" {
				return usage("--out names the folder to write to")
			}
			return f.run(c.Context(), s)
		},
	}
	c.Flags().StringVar(&f.o.Like, "like", "k3", "dimensions: k3, or small or wide for a try")
	c.Flags().IntVar(&f.o.Layers, "layers", 8, "layers, the first of them without experts")
	c.Flags().IntVar(&f.o.Experts, "experts", 128, "routed experts per layer")
	c.Flags().IntVar(&f.o.Vocab, "vocab", 512, "vocabulary; embedding and head grow with it")
	c.Flags().Uint64Var(&f.o.Seed, "seed", 1, "of all weights")
	c.Flags().Float64Var(&f.o.Skew, "skew", 0, "how much the router favours some experts: 0 none, 1 clearly")
	c.Flags().StringVar(&f.out, "out", "", "folder to write to")
	c.Flags().BoolVar(&f.force, "force", false, "start although the disk seems too small")
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON object when done")
	return c
}

func (f *synthFlags) run(ctx context.Context, s streams) error {
	m, err := synth.New(f.o)
	if err != nil {
		return usage("%v", err)
	}
	if err := f.room(m); err != nil {
		return err
	}
	start := time.Now()
	line := newStatus(s)
	var last synth.Progress
	err = m.Write(ctx, f.out, func(p synth.Progress) {
		last = p
		took := time.Since(start)
		left := "…"
		if done := p.Done - p.Found; done > 0 && p.Done < p.Total {
			left = duration(time.Duration(float64(took) * float64(p.Total-p.Done) / float64(done)))
		}
		line.set("%s of %s, file %d of %d, %s/s, %s left", humanize.Bytes(uint64(p.Done)), humanize.Bytes(uint64(p.Total)),
			min(p.Shard+1, p.Shards), p.Shards, humanize.Bytes(uint64(float64(p.Done-p.Found)/max(took.Seconds(), 1e-3))), left)
	})
	line.clear()
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("stopped after %s of %s; the same command goes on: %w", humanize.Bytes(uint64(last.Done)), humanize.Bytes(uint64(last.Total)), err)
		}
		return err
	}
	took := time.Since(start)
	c := m.Config()
	sizes := c.Account()
	if f.json {
		return json.NewEncoder(s.out).Encode(map[string]any{
			"dir": f.out, "bytes": m.Bytes(), "written": last.Done - last.Found, "seconds": took.Seconds(),
			"layers": c.Layers, "experts": c.Experts, "expert_bytes": sizes.ExpertsBytesPerToken() / int64(c.TopK*c.MoELayers()),
			"seed": f.o.Seed, "skew": f.o.Skew,
		})
	}
	fmt.Fprintf(s.out, "%s: %d layers, %d experts in each of %d, %s", f.out, c.Layers, c.Experts, c.MoELayers(), humanize.Bytes(uint64(m.Bytes())))
	if last.Done == last.Found {
		fmt.Fprintln(s.out, "; everything was there")
		return nil
	}
	fmt.Fprintf(s.out, ", written in %s\n", duration(took))
	return nil
}

// room refuses a disk that cannot hold what is missing.
func (f *synthFlags) room(m *synth.Model) error {
	if f.force {
		return nil
	}
	at, err := filepath.Abs(f.out)
	if err != nil {
		return err
	}
	for {
		if _, err := os.Stat(at); err == nil || filepath.Dir(at) == at {
			break
		}
		at = filepath.Dir(at)
	}
	free, _, err := (&ssdio.Drive{Path: at}).Space()
	if err != nil {
		return nil // where the system does not tell, writing will
	}
	need := m.Bytes()
	names, err := filepath.Glob(filepath.Join(f.out, "*.safetensors"))
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			need -= info.Size()
		}
	}
	if err == nil && need > free {
		return errors.New("the disk of " + f.out + " has " + humanize.Bytes(uint64(free)) + " free and " + humanize.Bytes(uint64(need)) +
			" are to be written: fewer --layers or --experts, another folder, or --force")
	}
	return err
}

package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/memory"
	"deltafin/engine/trunk"
)

// envModel names the model folder where --model does not.
const envModel = "DELTAFIN_MODEL"

// modelFlags are the flags of every command that runs a model.
type modelFlags struct {
	dir     string
	threads int
	kernel  string
	trunk   string   // form of the weights that every token uses
	cache   string   // size; "": experts are mapped
	drives  []string // specifications
	memory  memoryFlags
	routes  routesFlag // ask and bench alone
	draft   draftFlag  // what answers

	demo  bool     // the demonstration model, whatever dir and the environment say
	heard listener // what the engine says, instead of standard error; nil for that
}

// A listener hears of a model that is opened and runs. Its methods are called from
// any goroutine and must not block.
type listener interface {
	tell(engine.Notice)
	loaded(trunk.Progress)
}

func (f *modelFlags) add(c *cobra.Command) {
	addModelFlag(c, &f.dir)
	c.Flags().IntVar(&f.threads, "threads", 0, "workers of the arithmetic; never changes the text (default: one per core)")
	c.Flags().StringVar(&f.kernel, "kernel", "", "generic, avx2, avx512 or neon; never changes the text (default: the fastest here)")
	c.Flags().StringVar(&f.trunk, "trunk", engine.TrunkExact, "weights that every token uses: bf16, as the model's files have them, or int8, which takes half the memory and is not exact; see deltafin trunk convert")
	c.Flags().StringVar(&f.cache, "cache", "", "read experts from drives into a cache of this size, e.g. 64GiB; never changes the text (default: what --memory leaves; a model that fits is mapped)")
	c.Flags().StringArrayVar(&f.drives, "drive", nil, "folder on a drive to read experts from, repeatable; with limits to emulate as in DIR,limit=710MB/s (default: the model's own)")
	f.memory.add(c)
}

func addModelFlag(c *cobra.Command, dir *string) {
	c.Flags().StringVarP(dir, "model", "m", "", "folder of the model (default: $"+envModel+", else the demonstration model)")
	_ = c.MarkFlagDirname("model") // fails only for a flag that does not exist
}

// modelDir is the folder to use, "" for the demonstration model.
func modelDir(flag string) string {
	if flag != "" {
		return flag
	}
	return os.Getenv(envModel)
}

// open opens the model and tells the person what must be known about it.
func (f *modelFlags) open(ctx context.Context, c *cobra.Command, s streams) (*engine.Engine, error) {
	o, err := f.options(c)
	if err != nil {
		return nil, err
	}
	if err := f.routes.open(&o); err != nil {
		return nil, err
	}
	o.Notify = notify(s)
	o.Planned = func(p *memory.Plan) { f.memory.settle(c, s, p) }
	tell, done := loading(s)
	o.Loading = tell
	if f.heard != nil {
		o.Notify, o.Loading = f.heard.tell, f.heard.loaded
	}
	e, err := engine.Open(ctx, o)
	done()
	if err != nil {
		return nil, err
	}
	if n := e.Info().Notice; n != "" {
		fmt.Fprintln(s.err, n)
	}
	return e, nil
}

// options are what the flags say.
func (f *modelFlags) options(c *cobra.Command) (engine.Options, error) {
	dir := modelDir(f.dir)
	if f.demo {
		dir = ""
	}
	o := engine.Options{Model: dir, Threads: f.threads, Kernel: f.kernel, Drives: f.drives, Trunk: f.trunk}
	if c.Flags().Changed("threads") && f.threads < 1 {
		return o, usage("--threads %d: at least 1 is needed", f.threads)
	}
	switch f.trunk {
	case engine.TrunkExact:
	case engine.TrunkInt8: // the file may be in a folder that is noted there
		state, err := stateFolder()
		if err != nil {
			return o, err
		}
		o.DriveState = state
	default:
		return o, usage("--trunk %q: give %s or %s", f.trunk, engine.TrunkExact, engine.TrunkInt8)
	}
	if err := f.draft.apply(&o); err != nil {
		return o, err
	}
	if err := f.stream(c, &o); err != nil {
		return o, err
	}
	return o, f.memory.apply(c, &o)
}

// stream says how experts are read from drives, if they are.
func (f *modelFlags) stream(c *cobra.Command, o *engine.Options) (err error) {
	set := c.Flags().Changed
	if !set("cache") {
		if len(f.drives) > 0 && !set("memory") {
			return usage("--drive needs --cache SIZE or --memory SIZE: experts that are read need memory to be held in")
		}
		return nil
	}
	if o.ExpertCache, err = parseBytes("--cache", f.cache); err != nil {
		return err
	}
	if o.ExpertCache == 0 {
		return usage("--cache %s: give a size above zero, or leave it out to use what memory allows", f.cache)
	}
	return nil
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"deltafin/engine/planner"
	"deltafin/engine/simulate"
)

// machineHelp says how a machine is named, for plan and simulate.
const machineHelp = `MACHINE is one of the examples (m5max, pc192, laptop64) or a TOML file:

  name = "my PC"
  ram = "192GiB"
  ram_bandwidth = "75GB/s"   # what a copy of large memory reaches
  gflops = 1200              # of the kernels with many rows
  trunk = "int8"             # or bf16
  reserve = "8GiB"           # memory for the system and other programs
  [[drive]]
  name = "first"
  rate = "7GB/s"
  latency_us = 80
  hub = "left"               # if it shares a link
  [[hub]]
  name = "left"
  rate = "10GB/s"`

// newPlan tells what a machine will do with K3.
func newPlan(s streams) *cobra.Command {
	var asJSON bool
	var page string
	var named machineFlags
	c := &cobra.Command{
		Use:   "plan MACHINE",
		Short: "What a machine will do with Kimi K3, and which part to change",
		Long: `Simulates decode and prompts on a machine in three cases, with the engine's own
cache and drive scheduler, and prints what to expect and between which bounds,
where the time goes, and what one more drive, more memory, another form of the
trunk or faster links would change. No model is needed, and nothing is measured but
with --this.

` + machineHelp,
		Example: `  deltafin plan m5max
  deltafin plan --html plan.html my-pc.toml
  deltafin plan --this --drive /mnt/a --drive /mnt/b`,
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			m, err := named.machine(c.Context(), s, args)
			if err != nil {
				return err
			}
			r, err := planner.Make(c.Context(), m)
			if err != nil {
				return ofMachine(err)
			}
			if page != "" {
				return writePage(page, r)
			}
			if asJSON {
				return r.JSON(s.out)
			}
			return r.Text(s.out)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	c.Flags().StringVar(&page, "html", "", "write a page with charts to this file")
	c.MarkFlagsMutuallyExclusive("json", "html")
	named.add(c)
	return c
}

// writePage writes the page, whole or not at all.
func writePage(name string, r *planner.Report) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".plan-*")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	err = errors.Join(r.HTML(f), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return fmt.Errorf("write the page: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// machineOf reads the machine that the arguments name.
func machineOf(args []string) (*simulate.Machine, error) {
	if len(args) != 1 {
		return nil, usage("one machine must be named: a TOML file, --this, or one of %s", strings.Join(simulate.Examples(), ", "))
	}
	f, err := os.Open(args[0])
	if errors.Is(err, os.ErrNotExist) && !strings.ContainsAny(args[0], `./\`) {
		m, err := simulate.Example(args[0])
		return m, ofMachine(err)
	}
	if err != nil {
		return nil, usage("%v", err)
	}
	defer f.Close()
	m, err := simulate.ReadMachine(f)
	if err != nil {
		return nil, usage("%s: %v", args[0], err)
	}
	return m, nil
}

// ofMachine makes mistakes in a description those of the user.
func ofMachine(err error) error {
	if errors.Is(err, simulate.ErrMachine) || errors.Is(err, simulate.ErrMemory) || errors.Is(err, simulate.ErrRouting) {
		return usage("%v", err)
	}
	return err
}

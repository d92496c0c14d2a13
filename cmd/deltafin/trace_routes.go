package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"deltafin/engine"
	"deltafin/engine/expert"
)

// routesFlag is --trace-routes: a recording of which experts the router chooses.
type routesFlag struct {
	path string
	file *os.File
	rec  *expert.Recorder
}

func (f *routesFlag) add(c *cobra.Command) {
	c.Flags().StringVar(&f.path, "trace-routes", "", "record which experts are chosen to this file, for deltafin trace replay")
	_ = c.MarkFlagFilename("trace-routes") // fails only for a flag that does not exist
}

// open begins the recording, before anything is computed.
func (f *routesFlag) open(o *engine.Options) error {
	if f.path == "" {
		return nil
	}
	file, err := os.OpenFile(f.path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return usage("--trace-routes %s: the file exists; name a new one", f.path)
	}
	if err != nil {
		return usage("--trace-routes: %v", err)
	}
	name := o.Model
	if name == "" {
		name = engine.NanoName
	}
	f.file, f.rec = file, expert.NewRecorder(file, "model "+name)
	o.Routes = f.rec
	return nil
}

// close ends the recording and says what became of it.
func (f *routesFlag) close(s streams) {
	if f.file == nil {
		return
	}
	if err := errors.Join(f.rec.Err(), f.file.Close()); err != nil {
		fmt.Fprintf(s.err, "deltafin: %s: %s; the answer is not affected\n", f.path, oneLine(err.Error()))
		return
	}
	fmt.Fprintf(s.err, "routes recorded in %s\n", f.path)
}

// Package planner answers what a machine will do with Kimi K3 and which part of it
// would help most to change. It owns the scenarios, the list of changes, the warnings
// and the forms of the report; how fast anything is it asks package simulate, which
// runs the engine's own store and scheduler in virtual time. It measures nothing.
//
//	r, err := planner.Make(ctx, machine)
//	r.Text(os.Stdout)
//	r.HTML(file)
//
// Every figure is a Range: what to expect between a bad and a good case, and the
// assumptions of all three stand in the report. To answer within seconds a few
// layers stand for all, and a few passes for those over a long prompt.
package planner

package simulate

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"deltafin/engine/expert"
)

// A Pass is what a real pass asked of its experts.
type Pass struct {
	Rows   int
	Head   bool    // the output head ran
	Layers []Asked // [layers of the model]
}

// Asked is what one layer asked for, in the order in which it did.
type Asked struct {
	Want  []expert.Want      // nil for a dense layer
	Guess []expert.Candidate // what its router said beforehand
	Early []expert.Candidate // what it said still earlier, in a dense layer before it
}

// Replay runs a machine through recorded passes and tells of each phase, a run of
// them, what it did. All numbers of rows must be in Options.Arithmetic, if that is
// given.
func Replay(ctx context.Context, m *Machine, model *Model, phases [][]Pass, o Options) ([]*Result, error) {
	if err := checkPhases(model, phases, o.Arithmetic); err != nil {
		return nil, err
	}
	o.Layers = 0
	o.Router = &recording{}
	r, err := start(ctx, m, model, o)
	if err != nil {
		return nil, err
	}
	var out []*Result
	for _, passes := range phases {
		begin, rows := r.mark(), 0
		for i := range passes {
			p := &passes[i]
			r.recorded = p
			if err := r.pass(p.Rows, p.Head); err != nil {
				return nil, errors.Join(err, r.close())
			}
			rows += p.Rows
		}
		out = append(out, r.result(begin, rows, m))
	}
	return out, r.close()
}

// checkPhases refuses what is not of the model.
func checkPhases(model *Model, phases [][]Pass, a *Arithmetic) error {
	for _, p := range slices.Concat(phases...) {
		if len(p.Layers) != len(model.Layers) {
			return fmt.Errorf("a recorded pass has %d layers, %s has %d: %w", len(p.Layers), model.Name, len(model.Layers), ErrRouting)
		}
		if a == nil {
			continue
		}
		if c := a.Passes[p.Rows]; c == nil || len(c.Layers) != len(model.Layers) {
			return fmt.Errorf("the arithmetic of a pass of %d rows was not measured for all layers: %w", p.Rows, ErrRouting)
		}
	}
	return nil
}

// recording is the Router of a replay, which asks the passes instead.
type recording struct{}

// Draw implements Router.
func (recording) Draw(int, []int32) {}

// Assumptions implements Router.
func (recording) Assumptions() string {
	return "routing, and what routers said beforehand, is recorded"
}

package simulate

import (
	"errors"
	"fmt"

	"deltafin/engine/expert"
	"deltafin/engine/k3"
	"deltafin/engine/memory"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
)

// Split is how the memory of a machine is divided for a model. Sizes are bytes.
type Split struct {
	Trunk        int64 // in memory
	Streamed     int64 // of the trunk, read again for every pass
	Conversation int64
	Buffers      int64 // of the passes
	Cache        int64 // for experts
	Rows         int   // of a prompt that share a pass
	Ring         int   // buffers for streamed layers, 0 if none is
}

// What the engine plans with.
const (
	planRows    = 512       // rows of a pass, where memory suffices
	planLanes   = 2         // calls that compute in turns, each with buffers
	planProgram = 160 << 20 // code, tokenizer and runtime, about what a plan measures
	planWorkers = 16
	embedReach  = 64 << 10 // of the embedding table, what a token brings into memory
)

// Divide divides the memory of a machine without its reserve by the engine's own
// rules, package memory's. The error wraps ErrMemory.
func Divide(m *Machine, model *Model, context int) (Split, error) {
	c := model.Config
	sizes, whole := model.trunkSizes(m.Int8)
	length := min(context, c.MaxContext)
	slot := int64(ssdio.SlotBytes(int(model.Experts.Bytes)))
	experts := (model.Experts.Layers - model.Experts.Dense) * model.Experts.Experts
	plan, err := memory.Make(memory.Demand{
		Trunk: sizes.Plan(2 * whole).Memory, TrunkLeast: sizes.Least(),
		Stream: func(memory int64) (taken, perToken int64) {
			p := sizes.Plan(memory)
			return p.Memory, p.PerToken
		},
		Embed: min(model.Embed, int64(length)*embedReach), Context: length, State: k3.StateBytes(c, length),
		Rows: planRows, Pass: func(rows int) int64 {
			return planLanes * k3.PassBytes(c, k3.Pass{Rows: rows, Parts: 1, Workers: planWorkers, Positions: length})
		},
		Program: planProgram, Weights: int64(experts) * model.Experts.Bytes,
		Slot: slot, Spare: expert.Spares(len(m.Drives)), TopK: model.Experts.TopK, Experts: experts,
	}, memory.Limits{Budget: m.RAM - m.Reserve})
	var short *memory.Error
	if errors.As(err, &short) {
		return Split{}, fmt.Errorf("%s with a conversation of %d tokens needs %.1f GB beside the reserve of %.1f GB, the ram is %.1f GB: %w",
			model.Name, context, float64(short.Need)/1e9, float64(m.Reserve)/1e9, float64(m.RAM)/1e9, ErrMemory)
	}
	if err != nil {
		return Split{}, err
	}
	return Split{
		Trunk: plan.Trunk, Streamed: plan.Streamed, Conversation: plan.State, Buffers: plan.Pass + plan.Collector, Cache: plan.Cache, Rows: plan.Rows,
		Ring: sizes.Plan(plan.Trunk).Buffers,
	}, nil
}

// trunkSizes is the trunk as package trunk plans with it, and its bytes.
func (m *Model) trunkSizes(int8 bool) (*trunk.Catalog, int64) {
	layers, head := m.held(int8)
	whole := head
	for _, n := range layers {
		whole += n
	}
	return trunk.NewSizes(layers, head), whole
}

// withTrunk is the split with another memory for the trunk.
func (s Split) withTrunk(m *Machine, model *Model, bytes int64) Split {
	sizes, _ := model.trunkSizes(m.Int8)
	p := sizes.Plan(bytes)
	s.Trunk, s.Streamed, s.Ring = p.Memory, p.PerToken, p.Buffers
	return s
}

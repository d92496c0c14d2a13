package engine

import (
	"context"
	"errors"
	"math"
	"runtime"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/k3"
	"deltafin/engine/memory"
	"deltafin/engine/tokenizer"
	"deltafin/engine/trunk"
)

// SpareMemory as Options.Memory is what the machine can spare without swapping.
const SpareMemory = -1

// DefaultContext is how many tokens of conversation memory is planned for.
const DefaultContext = 8192

// A machine is where plans and the watcher take their readings from.
type machine struct {
	read func() (memory.Reading, error) // nil: memory.Read
}

func (m machine) reading() (memory.Reading, error) {
	if m.read == nil {
		return memory.Read()
	}
	return m.read()
}

// embedReach is how much of the embedding table a token brings into memory: its row
// is a few pages, and the system maps those around them as well.
const embedReach = 64 << 10

// PlanMemory is the plan that Open would make with the same options, without
// keeping anything open. Options.Memory 0 stands for SpareMemory. What Open loads
// besides the large weights is loaded, since the plan measures it. An int8 trunk need
// not be converted yet: its size follows from the model, and TrunkHow says so.
func PlanMemory(ctx context.Context, o Options) (*memory.Plan, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Memory == 0 {
		o.Memory = SpareMemory
	}
	ck, err := openCheckpoint(o.Model)
	if err != nil {
		return nil, err
	}
	defer ck.Close()
	if err := ck.Validate(ctx); err != nil {
		return nil, err
	}
	tok, err := tokenizer.Load(ck.FS(), ck.Config().Vocab)
	if err != nil {
		return nil, err
	}
	model, err := k3.Load(ck)
	if err != nil {
		return nil, err
	}
	var missing *NoInt8Error
	if err := o.openInt8(ck); err != nil && !errors.As(err, &missing) {
		return nil, err
	}
	p, err := o.plan(ck)
	runtime.KeepAlive(tok)
	runtime.KeepAlive(model)
	if err == nil && missing != nil {
		p.TrunkHow += "; not converted yet, run " + missing.command()
	}
	return p, err
}

// plan divides the memory that the options allow. The error is a *memory.Error if
// it does not suffice.
func (o *Options) plan(ck *checkpoint.Checkpoint) (*memory.Plan, error) {
	limits := memory.Limits{Budget: max(o.Memory, 0), Cache: o.ExpertCache}
	now, err := o.machine.reading()
	switch {
	case err == nil:
		limits.Now = &now
	case !errors.Is(err, memory.ErrUnknown) || o.Memory == SpareMemory && o.ExpertCache == 0:
		return nil, err
	}
	d, err := o.demand(ck, &now)
	if err != nil {
		return nil, err
	}
	if least := int64(d.TopK+d.Spare) * d.Slot; o.ExpertCache > 0 && o.ExpertCache < least {
		return nil, &expert.BudgetError{Budget: o.ExpertCache, Need: least, Slot: d.Slot, TopK: d.TopK, Spare: d.Spare}
	}
	if o.Memory == SpareMemory && o.ExpertCache == 0 && len(o.Drives) == 0 {
		if p := memory.Whole(d, now); p != nil {
			return p, nil
		}
	}
	return memory.Make(d, limits)
}

// demand is what a checkpoint needs. Two calls may compute at once where experts
// are read from drives, each with buffers of its own; they share one conversation's
// memory, since the second is usually a short one.
func (o *Options) demand(ck *checkpoint.Checkpoint, now *memory.Reading) (memory.Demand, error) {
	c := ck.Config()
	size, err := trunk.Sizes(ck)
	if err != nil {
		return memory.Demand{}, err
	}
	held, err := o.trunkCatalog(ck)
	if err != nil {
		return memory.Demand{}, err
	}
	cat, err := expert.NewCatalog(ck)
	if err != nil {
		return memory.Demand{}, err
	}
	length := min(o.Context, c.MaxContext)
	// What drafts note is the state once more, and some rows of it, in either lane. They
	// are not rows of a prompt, which would become fewer for them.
	drafts, least := int64(0), 1
	if o.Draft {
		drafts, least = lanes*k3.DraftBytes(c, maxDraftRows), maxDraftRows
	}
	d := memory.Demand{
		Trunk: held.Total(), TrunkLeast: held.Total(), TrunkHow: "mapped", Embed: min(size.Embed, int64(length)*embedReach),
		Context: length, State: stateRoom(c, length) + drafts, Drafts: drafts, Rows: o.PrefillRows,
		Pass: func(rows int) int64 {
			return lanes * k3.PassBytes(c, k3.Pass{Rows: max(rows, least), Parts: 1, Workers: o.Threads, Positions: length})
		},
		Weights: cat.Bytes(), Program: max(now.Resident, now.Own),
		Slot: cat.SlotBytes(), Spare: expert.Spares(max(len(o.Drives), 1)), TopK: c.TopK, Experts: cat.Experts(),
	}
	if ck.Path() == "" { // everything lies in the program, an exact trunk is used there
		d.Source = cat.Bytes()
		if o.Trunk == TrunkExact {
			return d, nil
		}
	}
	// A trunk in memory of its own takes no room beside it in the system's cache.
	most := int64(math.MaxInt64)
	if o.TrunkMemory > 0 {
		most = o.TrunkMemory
	}
	d.Trunk, d.TrunkLeast, d.TrunkHow = held.Plan(most).Memory, held.Least(), "read when the model is opened"
	if o.Trunk == TrunkInt8 {
		d.TrunkHow = Int8Label + ", " + d.TrunkHow
	}
	d.Stream = func(memory int64) (taken, perToken int64) {
		p := held.Plan(memory)
		return p.Memory, p.PerToken
	}
	return d, nil
}

// stateRoom is a conversation with what its growth needs: latents grow by a quarter
// at a time, and while those of one layer do, the old and the new are there.
func stateRoom(c *checkpoint.Config, n int) int64 {
	fixed := k3.StateBytes(c, 0)
	latents := k3.StateBytes(c, n) - fixed
	return fixed + latents + latents/4 + latents/int64(max(c.MLALayers(), 1))
}

// useMemory sets what a plan decides. It is nil without a budget.
func (o *Options) useMemory(ck *checkpoint.Checkpoint) (*memory.Plan, error) {
	if o.Memory == 0 {
		return nil, nil
	}
	p, err := o.plan(ck)
	if err != nil {
		return nil, err
	}
	o.PrefillRows = p.Rows
	if !p.Mapped {
		o.ExpertCache = p.Cache
		if ck.Path() != "" || o.int8 != nil {
			o.TrunkMemory = p.Trunk
		}
	}
	if o.Planned != nil {
		o.Planned(p)
	}
	return p, nil
}

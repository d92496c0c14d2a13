package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync/atomic"

	"deltafin/engine/chat"
	"deltafin/engine/checkpoint"
	"deltafin/engine/k3"
	"deltafin/engine/kernel"
	"deltafin/engine/memory"
	"deltafin/engine/nano"
	"deltafin/engine/sample"
	"deltafin/engine/tokenizer"
	"deltafin/engine/trunk"
)

// An Engine is one opened model with its workers.
type Engine struct {
	opts    Options
	ck      *checkpoint.Checkpoint
	model   *k3.Model
	tok     *tokenizer.Tokenizer
	markers chat.Markers
	pool    *kernel.Pool
	info    Info
	stop    []int
	stream  *stream      // nil: experts are mapped
	whole   *trunk.Store // of a model with mapped experts: a converted trunk; nil: the trunk is mapped too
	keeper  *keeper      // of the stream's cache

	lanes  chan *lane // those nobody uses
	baton  baton      // held by the lane that computes
	closed atomic.Bool
	stats  counters
	drafts draftPolicy // nil without Options.Draft
}

// Info says what was opened.
type Info struct {
	Name        string             // folder name, or the demonstration model's
	Dir         string             // "" for the demonstration model
	Toy         bool               // the demonstration model: Notice must be shown
	Notice      string             // one paragraph about the model's limits, or ""
	Fingerprint string             // of config, index and shard headers, hex
	Kernel      string             // level in use
	Arithmetic  string             // kernel.Arithmetic, and the trunk's form: results are the same wherever this is the same
	Trunk       string             // "int8 trunk (not exact)"; "" if its weights are those of the files
	Threads     int                // workers
	PrefillRows int                // tokens per prefill pass
	Streams     bool               // experts are read from drives
	Slots       int                // experts that the cache has room for, those in flight included; 0: mapped
	Memory      *memory.Plan       // how memory was divided at the start; nil without Options.Memory
	Config      *checkpoint.Config // the model's numbers; read only
}

// NanoName is the name of the demonstration model.
const NanoName = "k3-nano"

// Open opens a model: maps its files, checks every tensor against the config, and
// starts the workers. Nothing of the weights is read yet. Close it when done.
func Open(ctx context.Context, o Options) (_ *Engine, err error) {
	o, err = o.withDefaults()
	if err != nil {
		return nil, err
	}
	table, err := o.selectKernel()
	if err != nil {
		return nil, err
	}
	ck, err := openCheckpoint(o.Model)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			ck.Close()
		}
	}()
	if err := ck.Validate(ctx); err != nil {
		return nil, err
	}
	c := ck.Config()
	tok, err := tokenizer.Load(ck.FS(), c.Vocab)
	if err != nil {
		return nil, err
	}
	markers, err := chat.FindMarkers(tok)
	if err != nil {
		return nil, err
	}
	model, err := k3.Load(ck)
	if err != nil {
		return nil, err
	}
	if err := o.openInt8(ck); err != nil {
		return nil, err
	}
	plan, err := o.useMemory(ck)
	if err != nil {
		return nil, err
	}
	e := &Engine{opts: o, ck: ck, tok: tok, markers: markers, baton: newBaton()}
	switch {
	case o.ExpertCache > 0:
		if e.stream, err = openStream(ctx, ck, o); err != nil {
			return nil, err
		}
		model = model.WithExperts(e.stream)
		if e.stream.trunk != nil {
			model = model.WithTrunk(e.stream.trunk)
		}
	case o.int8 != nil:
		if e.whole, err = loadWhole(ctx, &o); err != nil {
			return nil, err
		}
		model = model.WithTrunk(e.whole)
	}
	e.model = model
	e.pool = kernel.NewPool(table, o.Threads)
	e.makeLanes()
	if o.Draft {
		e.drafts = &draftControl{}
	}
	e.stop = stopIDs(ck, markers)
	e.info = Info{
		Name: NanoName, Toy: true, Notice: nano.Notice, Fingerprint: ck.Fingerprint(),
		Kernel: table.Name, Arithmetic: kernel.Arithmetic, Threads: o.Threads, PrefillRows: o.PrefillRows, Memory: plan, Config: c,
	}
	if e.stream != nil {
		e.info.Streams, e.info.Slots = true, e.stream.slots()
	}
	if o.Model != "" {
		e.info.Name, e.info.Dir, e.info.Toy, e.info.Notice = filepath.Base(filepath.Clean(o.Model)), o.Model, false, ""
	}
	e.info.label(o.int8)
	e.keep()
	return e, nil
}

func openCheckpoint(dir string) (*checkpoint.Checkpoint, error) {
	if dir == "" {
		return nano.Open()
	}
	return checkpoint.Open(dir)
}

// stopIDs are the ids that end a reply: those of generation_config.json, else that
// of config.json; the end of a message; and the older end marks, which are
// harmless to honour (spec 5.5).
func stopIDs(ck *checkpoint.Checkpoint, m chat.Markers) []int {
	var ids []int
	if g := ck.Generation(); g != nil && len(g.EOS) > 0 {
		ids = append(ids, g.EOS...)
	} else if eos := ck.Config().EOS; eos >= 0 {
		ids = append(ids, eos)
	}
	for _, id := range append([]int{m.EndOfMsg}, m.Stop...) {
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Close ends the workers, closes the drives and unmaps the files. It waits for
// running calls; cancel those first.
func (e *Engine) Close() error {
	if e.closed.Swap(true) {
		return nil
	}
	for range cap(e.lanes) {
		<-e.lanes
	}
	close(e.lanes)
	e.keeper.close()
	e.pool.Close()
	var err error
	if e.stream != nil {
		err = e.stream.close()
	}
	if e.whole != nil {
		err = e.whole.Close()
	}
	if err := errors.Join(err, e.ck.Close()); err != nil {
		return fmt.Errorf("closing the model: %w", err)
	}
	return nil
}

// Info says what was opened.
func (e *Engine) Info() Info { return e.info }

// Tokenizer is the model's tokenizer.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.tok }

// StopIDs are the ids that end a reply.
func (e *Engine) StopIDs() []int { return slices.Clone(e.stop) }

// Sampling is how the model's makers advise to choose tokens: what
// generation_config.json names, the hosted service's values for the rest.
func (e *Engine) Sampling() sample.Params {
	p := sample.Default
	g := e.ck.Generation()
	if g == nil {
		return p
	}
	if g.DoSample != nil && !*g.DoSample {
		return sample.Params{}
	}
	if g.Temperature != nil {
		p.Temperature = *g.Temperature
	}
	if g.TopP != nil {
		p.TopP = *g.TopP
	}
	return p
}

// Prompt renders a conversation to token ids (spec 5.4).
func (e *Engine) Prompt(p *chat.Prompt) ([]int, error) {
	segs, err := chat.Render(p)
	if err != nil {
		return nil, err
	}
	return chat.Encode(e.tok, segs)
}

// NewReply returns what reads the model's reply to a prompt that was rendered with
// or without thinking: a parser that is driven by ids.
func (e *Engine) NewReply(thinking bool) *Reply {
	return &Reply{stream: e.tok.NewStream(), parser: chat.NewParser(e.markers, thinking)}
}

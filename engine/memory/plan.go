package memory

import "math"

// GCPercent is the growth of the Go heap between two collections that plans count
// on. The heap holds few and large buffers without pointers, so that collecting at a
// quarter costs next to nothing, while the usual doubling would take gigabytes from
// the experts.
const GCPercent = 25

// reserve is what the program takes after the plan was made: scratch of kernels and
// reads, stacks, a database.
const reserve = 32 << 20

// A Demand is what a model needs, in bytes.
type Demand struct {
	// Trunk is all matrices that every token uses, and TrunkLeast how much of that
	// must be in memory at the same time: less if the rest can be read again for
	// every token.
	Trunk, TrunkLeast int64
	// Stream says what a trunk that has so much memory takes of it, and how much is
	// read again for every token. It is nil if TrunkLeast is Trunk.
	Stream   func(memory int64) (taken, perToken int64)
	TrunkHow string // how the trunk is held, for the table
	Embed    int64  // what the conversation touches of the embedding table

	Context int                  // tokens of conversation to plan for
	State   int64                // of the conversation at that length
	Drafts  int64                // part of State: what verifying drafts notes
	Rows    int                  // prompt tokens that are to share a pass
	Pass    func(rows int) int64 // buffers for passes of so many rows
	Program int64                // resident now
	Weights int64                // all routed experts, as they lie in files
	Source  int64                // of experts that lie in the program itself
	Slot    int64                // one expert in the cache
	Spare   int                  // slots besides those of experts
	TopK    int                  // experts that must fit
	Experts int                  // of the model: more cannot be used
}

// Limits say what a plan may take.
type Limits struct {
	Budget int64    // for the whole process; 0: what can be spared
	Cache  int64    // for experts; 0: what remains
	Now    *Reading // the machine now; nil: unknown, and only Budget bounds the plan
}

// A Plan divides a budget. Sizes are bytes.
type Plan struct {
	Budget    int64  `json:"budget_bytes"`         // what the parts add up to at most; 0: unbounded
	Chosen    bool   `json:"budget_chosen"`        // by the program: the machine's spare memory
	Free      int64  `json:"free_bytes"`           // what the process can have; 0: unknown
	Margin    int64  `json:"margin_bytes"`         // left free besides
	Program   int64  `json:"program_bytes"`        // code, tokenizer, runtime, as measured, and what is to come
	Trunk     int64  `json:"trunk_bytes"`          // of the trunk, in memory
	Streamed  int64  `json:"trunk_streamed_bytes"` // of the trunk, read again for every token
	TrunkHow  string `json:"trunk_held"`
	Embed     int64  `json:"embedding_bytes"` // of the embedding table, what is touched
	Context   int    `json:"context"`         // tokens of conversation
	State     int64  `json:"conversation_bytes"`
	Drafts    int64  `json:"drafts_bytes"` // part of the conversation's: what verifying drafts notes
	Rows      int    `json:"prefill_rows"` // prompt tokens per pass
	RowsAsked int    `json:"prefill_rows_asked"`
	Pass      int64  `json:"pass_bytes"`      // buffers of the forward passes
	Collector int64  `json:"collector_bytes"` // growth of the Go heap between collections
	Cache     int64  `json:"expert_cache_bytes"`
	Slots     int    `json:"expert_slots"`     // experts that the cache has room for
	Experts   int    `json:"experts"`          // of the model
	Mapped    bool   `json:"experts_mapped"`   // all experts are in reach as parts of mapped files; Slots is 0
	HeapLimit int64  `json:"heap_limit_bytes"` // for GOMEMLIMIT
}

// Total is what the parts add up to.
func (p *Plan) Total() int64 {
	return p.Program + p.Trunk + p.Embed + p.State + p.Pass + p.Collector + p.Cache
}

// Make divides memory. Trunk, conversation and buffers come first, the cache takes
// what remains; of the trunk as much is kept as there is room for, since each of its
// bytes is read for every token. The passes over a prompt get fewer rows where their
// buffers would take more than a quarter of what trunk and conversation leave, at
// the cost of experts. The error is an *Error.
func Make(d Demand, l Limits) (*Plan, error) {
	p := &Plan{
		Budget: l.Budget, Program: d.Program + d.Source + reserve, TrunkHow: d.TrunkHow, Embed: d.Embed,
		Context: d.Context, State: d.State, Drafts: d.Drafts, RowsAsked: d.Rows, Experts: d.Experts,
	}
	bound := int64(math.MaxInt64) // nothing is known and nothing was named
	if l.Budget > 0 {
		bound = l.Budget
	}
	if l.Now != nil {
		p.Free, p.Margin = l.Now.Own+l.Now.Available, l.Now.Margin()
		bound = min(bound, p.Free)
		if l.Budget == 0 {
			bound = l.Now.Spare()
			p.Budget, p.Chosen = bound, true
		}
	}
	least := int64(d.TopK+d.Spare) * d.Slot
	most := int64(d.Experts+d.Spare) * d.Slot
	want := max(l.Cache, least) // what the cache must get
	p.fit(&d, bound, least, most, want)
	fixed := p.Total()
	switch {
	case l.Budget > 0 && p.Free > 0 && l.Budget > p.Free:
		return nil, p.refuse(l.Budget, bound, fixed, want, 0)
	case fixed+want > bound:
		return nil, p.refuse(fixed+want, bound, fixed, want, least)
	}
	p.Cache = min(bound-fixed, most)
	if l.Cache > 0 {
		p.Cache = min(l.Cache, most)
	}
	p.Cache -= p.Cache % d.Slot
	p.Slots = int(p.Cache/d.Slot) - d.Spare
	return p, nil
}

// Whole is the plan in which all weights are mapped, nil if they do not fit into what
// can be spared.
func Whole(d Demand, now Reading) *Plan {
	p := &Plan{
		Budget: now.Spare(), Chosen: true, Free: now.Own + now.Available, Margin: now.Margin(), Program: d.Program + reserve,
		Trunk: d.Trunk, TrunkHow: d.TrunkHow, Embed: d.Embed, Context: d.Context, State: d.State, Drafts: d.Drafts, Rows: d.Rows, RowsAsked: d.Rows,
		Pass: d.Pass(d.Rows), Cache: d.Weights, Experts: d.Experts, Mapped: true,
	}
	p.heap()
	if p.Total() > p.Budget {
		return nil
	}
	return p
}

// heap sets what follows from conversation and buffers.
func (p *Plan) heap() {
	p.Collector = withRoom(p.State) + withRoom(p.Pass) - p.State - p.Pass
	p.HeapLimit = p.Program + p.State + p.Pass + p.Collector
}

// fit sets rows, trunk and what follows from them. Rows are what a cache of the
// least size leaves room for: one that was asked for must not turn a prompt into
// single tokens. Memory that even all experts leave is free for rows.
func (p *Plan) fit(d *Demand, bound, least, most, cache int64) {
	room := bound - p.Program - d.TrunkLeast - d.Embed - withRoom(d.State) - least
	p.Rows = d.Rows
	for p.Rows > 1 && withRoom(d.Pass(p.Rows)) > max(room/4, room-(most-least), 0) {
		p.Rows = (p.Rows + 1) / 2
	}
	p.Pass = d.Pass(p.Rows)
	p.heap()
	p.Trunk = min(d.Trunk, d.TrunkLeast+max(room-withRoom(p.Pass)-(cache-least), 0))
	if d.Stream != nil {
		p.Trunk, p.Streamed = d.Stream(p.Trunk)
	}
}

// withRoom adds the collector's part.
func withRoom(n int64) int64 { return n + n/100*GCPercent }

func (p *Plan) refuse(need, have, fixed, want, least int64) *Error {
	e := &Error{Need: need, Have: have, Named: p.Budget > 0 && !p.Chosen && have == p.Budget, Plan: *p}
	if least > 0 && want > least && fixed+least <= have {
		e.Cache = have - fixed
		if p.Free == have {
			e.Cache = max(e.Cache-p.Margin, least)
		}
	}
	e.Plan.Cache = want
	return e
}

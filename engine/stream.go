package engine

import (
	"context"
	"errors"
	"math/bits"

	"deltafin/engine/checkpoint"
	"deltafin/engine/expert"
	"deltafin/engine/k3"
	"deltafin/engine/trunk"
	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
	"deltafin/ssdio/place"
)

// A stream is the experts of a model that are read from drives: the drives, the
// reads, and the cache in front of them. It implements k3.Experts for the
// Runners of an Engine.
type stream struct {
	fleet emulate.Fleet
	cat   *expert.Catalog
	set   *ssdio.Set
	store *expert.Store

	// around is called with what waits for a read. It is set before any feed is made.
	around func(wait func())

	placed *place.Placement   // nil for the demonstration model
	files  checkpoint.InPlace // of the demonstration model
	record bool               // keep the sums of what was read for the first time

	trunkCat *trunk.Catalog // nil: the trunk is mapped
	trunk    *trunk.Store
	layout   *ssdio.Layout
	sumsPath string // of the trunk's checksums, "" to keep none
}

// openStream opens drives and cache. Errors that a caller decides on are
// *UsageError, *expert.BudgetError and those of packages ssdio and place.
func openStream(ctx context.Context, ck *checkpoint.Checkpoint, o Options) (_ *stream, err error) {
	s := &stream{}
	if s.cat, err = expert.NewCatalog(ck); err != nil {
		return nil, err
	}
	drives, layout, err := s.openDrives(ck, o)
	if err != nil {
		return nil, err
	}
	if drives, layout, err = s.addTrunk(ck, o, drives, layout); err != nil {
		return nil, err
	}
	// Every block is checked every time: the sum costs a twentieth of a second per
	// gigabyte and core, and a wrong bit in a weight would not be noticed later.
	if s.set, err = ssdio.Open(drives, layout, &ssdio.Options{Verify: ssdio.VerifyAll()}); err != nil {
		return nil, err
	}
	s.store, err = expert.NewStore(s.cat, s.set, layout, expert.Options{
		Budget: o.ExpertCache, Drives: len(drives), NoAhead: o.NoLookahead,
	})
	if err != nil {
		return nil, errors.Join(err, s.set.Close())
	}
	readersCome()
	if err := s.openTrunk(ctx, o, layout); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// close stops the reads before the memory that they go to is given back.
func (s *stream) close() error {
	defer readersGo()
	s.fleet.Release() // an emulated drive that hangs must not hold up the end
	err := errors.Join(s.set.Close(), s.store.Close(), s.closeTrunk())
	if s.placed != nil && s.record {
		_, kept := s.placed.Record()
		err = errors.Join(err, kept)
	}
	return err
}

func (s *stream) slots() int {
	var st expert.Stats
	s.store.Stats(&st)
	return st.Slots
}

// NewFeed implements k3.Experts.
func (s *stream) NewFeed() k3.Feed { return &feed{s: s, turn: s.store.NewTurn(s.around)} }

// A feed translates between what the forward pass asks and what the store has.
type feed struct {
	s     *stream
	turn  *expert.Turn
	layer int
	want  []expert.Want
	cands []expert.Candidate
}

func (f *feed) Streams() bool { return true }

func (f *feed) Ahead(layer int, early bool) bool { return f.turn.Ahead(layer, early) }

// Guess classes candidates of one row by rank, of many rows by how many rows would
// choose them.
func (f *feed) Guess(layer, rows int, early bool, likely []k3.Want) {
	f.cands = f.cands[:0]
	for i, w := range likely {
		class := min(i, expert.Classes/2-1)
		if rows > 1 {
			class = expert.Classes/2 + min(bits.Len32(uint32(w.Rows)), expert.Classes/2-1)
		}
		f.cands = append(f.cands, expert.Candidate{Expert: w.Expert, Class: uint8(class)})
	}
	f.turn.Guess(layer, rows, early, f.cands)
}

func (f *feed) Begin(ctx context.Context, layer int, want []k3.Want) error {
	f.layer, f.want = layer, f.want[:0]
	for _, w := range want {
		f.want = append(f.want, expert.Want(w))
	}
	return f.turn.Begin(ctx, layer, f.want)
}

func (f *feed) Next(wait bool) (int, k3.Expert, bool, error) {
	i, data, ok, err := f.turn.Next(wait)
	if err != nil || !ok {
		return 0, k3.Expert{}, false, err
	}
	m, err := f.s.cat.Matrices(f.layer, int(f.want[i].Expert), data)
	return i, k3.Expert(m), err == nil, err
}

func (f *feed) Done(i int) { f.turn.Done(i) }
func (f *feed) End()       { f.turn.End() }

// Streaming is what the experts that are read from drives cost: uses and the
// cache, and the drives. All but the gauges only grow.
type Streaming struct {
	Experts expert.Stats
	Trunk   trunk.Stats // zero if the trunk is mapped
	Drives  ssdio.Counters
}

// Sub takes an earlier reading away from this one, in place.
func (s *Streaming) Sub(old *Streaming) {
	s.Experts.Sub(&old.Experts)
	s.Trunk.Sub(&old.Trunk)
	s.Drives.Sub(&old.Drives)
}

// Streaming reads the counters of the experts into st, reusing its memory. It is
// false if all experts are mapped. It takes no lock and may be called at any time
// before Close.
func (e *Engine) Streaming(st *Streaming) bool {
	if e.stream == nil {
		return false
	}
	e.stream.store.Stats(&st.Experts)
	st.Trunk = trunk.Stats{}
	if t := e.stream.trunk; t != nil {
		st.Trunk = t.Stats()
	}
	e.stream.set.Counters(&st.Drives)
	return true
}

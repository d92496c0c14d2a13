package expert

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"

	"deltafin/ssdio"
)

// Options are the options of a Store.
type Options struct {
	// Budget is the memory for experts in bytes, slack and spares included.
	Budget int64
	// HalfLife is after how many tokens a use counts half. 0 stands for
	// DefaultHalfLife.
	HalfLife float64
	// Drives is the number of drives of the set, for the spare slots that reads
	// stuck on one of them are moved to. 0 means none, and no hedging.
	Drives int
}

// DefaultHalfLife is in tokens. Of 8 to 512, replayed over recorded traces of
// three models (see Replay), 16 was best or within a point of it; long ones lose
// up to five points where few of many experts are used, as in K3.
const DefaultHalfLife = 16

// weight is what a use for n tokens of one pass adds to an expert's heat. With n
// itself a prompt would rule the cache long after its end, with 1 its favourites
// would be forgotten; the replays are best with the root.
func weight(n int) float64 { return math.Sqrt(float64(max(n, 0))) }

// sparesPerDrive is what package ssdio advises.
const sparesPerDrive = 2

// A Want is an expert that a layer needs.
type Want struct {
	Expert int32
	Rows   int32 // tokens of the pass that it is for
}

// A Store holds the experts of one model that are in memory and reads the others.
type Store struct {
	cat      *Catalog
	set      *ssdio.Set
	layout   *ssdio.Layout
	arena    *ssdio.Arena
	policy   *Policy
	halfLife float64
	slots    int
	bytes    int64

	held   []tenant // the experts that occupy a slot, in no order
	where  []int32  // [experts]: index into held, -1: absent
	unheld []int32  // free places of held

	turn   turn // the open layer
	counts []layerCounts
	cached atomic.Int64
	stuck  int // slots that a read may still write into: never used again
}

// A tenant is an expert that occupies a slot.
type tenant struct {
	buf  ssdio.Buffer
	used bool // since it was read
}

// NewStore makes a store over a set whose layout has every expert of the catalog.
// The set is used, not owned. The error is a *BudgetError if the budget does not
// hold one layer of one token.
func NewStore(cat *Catalog, set *ssdio.Set, layout *ssdio.Layout, o Options) (*Store, error) {
	for i := range cat.model.Objects {
		obj := &cat.model.Objects[i]
		if size, ok := layout.Size(obj.Key); !ok || size != obj.Size {
			return nil, fmt.Errorf("%s: the drives have %d bytes of it, the model %d: %w", obj.Key, size, obj.Size, ErrUnknown)
		}
	}
	if o.HalfLife == 0 {
		o.HalfLife = DefaultHalfLife
	}
	s := &Store{cat: cat, set: set, layout: layout, halfLife: o.HalfLife, counts: make([]layerCounts, cat.layers)}
	if err := s.makeArena(o); err != nil {
		return nil, err
	}
	// A cache with a slot for every expert needs none kept free.
	limit := s.slots
	if limit < cat.Experts() {
		limit -= cat.topK
	}
	s.policy = NewPolicy(cat.Experts(), limit)
	s.where = make([]int32, cat.Experts())
	for i := range s.where {
		s.where[i] = -1
	}
	return s, nil
}

// makeArena maps as many slots as the budget holds and the model has experts.
func (s *Store) makeArena(o Options) error {
	size := int(s.cat.largest)
	one, err := ssdio.NewArena(size, 1, 0) // reserves memory without touching it
	if err != nil {
		return err
	}
	slot := one.Bytes()
	if err := one.Close(); err != nil {
		return err
	}
	spare := sparesPerDrive * o.Drives
	need := int64(s.cat.topK+spare) * slot
	if o.Budget < need {
		return &BudgetError{Budget: o.Budget, Need: need, Slot: slot, TopK: s.cat.topK, Spare: spare}
	}
	s.slots = int(min(o.Budget/slot-int64(spare), int64(s.cat.Experts())))
	s.arena, err = ssdio.NewArena(size, s.slots, spare)
	if err != nil {
		return err
	}
	s.bytes = s.arena.Bytes()
	return nil
}

// Close gives the memory back. The set must be closed before, so that no read is
// in flight; where one is stuck in the system, the memory stays mapped and the
// error wraps ssdio.ErrArenaBusy.
func (s *Store) Close() error {
	if s.turn.open {
		return ErrOpen
	}
	for key, at := range s.where {
		if at >= 0 {
			s.policy.Remove(key)
			s.free(key)
		}
	}
	s.cached.Store(0)
	return s.arena.Close()
}

// Begin opens a layer: it names the experts that are needed, the most wanted
// first and none twice, and sends reads for those that are not in memory as far
// as there are slots; the others follow as slots are given back. Cancelling ctx
// cancels the reads. Each Begin is followed by an End, whatever it returned.
func (s *Store) Begin(ctx context.Context, layer int, want []Want) error {
	t := &s.turn
	if t.open {
		return fmt.Errorf("layer %d: layer %d: %w", layer, t.layer, ErrOpen)
	}
	t.start(ctx, layer)
	sum := 0.0
	for i, w := range want {
		key := s.cat.index(layer, int(w.Expert))
		if key < 0 {
			return fmt.Errorf("layer %d expert %d: %w", layer, w.Expert, ErrUnknown)
		}
		if s.policy.Pinned(key) {
			return fmt.Errorf("layer %d expert %d is named twice", layer, w.Expert)
		}
		sum += weight(int(w.Rows))
		t.uses = append(t.uses, need{key: int32(key), rows: w.Rows})
		s.policy.Pin(key)
		if s.where[key] < 0 {
			t.missing = append(t.missing, int32(i))
			continue
		}
		t.uses[i].state = ready
		t.ready = append(t.ready, int32(i))
	}
	for _, i := range t.ready {
		s.policy.Count(int(t.uses[i].key), weight(int(t.uses[i].rows)))
	}
	s.counts[layer].hit.Add(int64(len(t.ready)))
	s.issue()
	// Time passes with what is counted: a token of one pass is one unit.
	s.policy.Age(sum / float64(s.cat.topK) / float64(s.cat.MoELayers()) / s.halfLife)
	return nil
}

// issue sends reads for missing experts while there are slots. Each is offered to
// the cache now: who has to go for it gives it the slot.
func (s *Store) issue() {
	t := &s.turn
	var reqs []ssdio.Request
	var idx []int32
	for t.issued < len(t.missing) {
		i := t.missing[t.issued]
		u := &t.uses[i]
		obj := &s.cat.model.Objects[u.key]
		slot := s.arena.Get()
		if slot == nil {
			break
		}
		t.issued++
		victim, _ := s.policy.Offer(int(u.key))
		if victim >= 0 {
			s.free(victim)
		}
		s.policy.Count(int(u.key), weight(int(u.rows)))
		u.state = reading
		s.hold(int(u.key), slot.Buffer(s.layout.Residue(obj.Key), int(obj.Size)))
		reqs = append(reqs, ssdio.Request{Key: obj.Key, Into: s.held[s.where[u.key]].buf})
		idx = append(idx, i)
	}
	s.cached.Store(int64(s.policy.Len()))
	if len(reqs) == 0 {
		return
	}
	s.counts[t.layer].missed.Add(int64(len(reqs)))
	b := s.set.Read(t.ctx, ssdio.Demand, reqs)
	t.flights = append(t.flights, flight{batch: b, results: b.Results(), uses: idx, left: len(idx)})
}

// hold notes that an expert occupies a slot.
func (s *Store) hold(key int, b ssdio.Buffer) {
	at := int32(len(s.held))
	if n := len(s.unheld); n > 0 {
		at, s.unheld = s.unheld[n-1], s.unheld[:n-1]
		s.held[at] = tenant{buf: b}
	} else {
		s.held = append(s.held, tenant{buf: b})
	}
	s.where[key] = at
}

// tenant is the slot of an expert that is in memory.
func (s *Store) tenant(key int) *tenant { return &s.held[s.where[key]] }

// free throws an expert out and gives its slot back.
func (s *Store) free(key int) {
	t := s.tenant(key)
	if !t.used {
		c := s.countsOf(key)
		c.unused.Add(1)
		c.wasted.Add(int64(len(t.buf.Bytes())))
	}
	t.buf.Slot().Free()
	s.forget(key)
}

// forget drops an expert without giving its slot back.
func (s *Store) forget(key int) {
	*s.tenant(key) = tenant{}
	s.unheld = append(s.unheld, s.where[key])
	s.where[key] = -1
}

func (s *Store) countsOf(key int) *layerCounts {
	return &s.counts[s.cat.model.Objects[key].Key.Layer]
}

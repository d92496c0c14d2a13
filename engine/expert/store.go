package expert

import (
	"context"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

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
	// NoAhead turns reading ahead off: Turn.Guess does nothing.
	NoAhead bool
	// Reserve sets addresses aside for the experts but no memory: for a set on a
	// ssdio.Timeline, which never touches them.
	Reserve bool
	// Now is the clock of stalls and of what fits into a gap. nil is time.Now.
	Now func() time.Time
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
// Its methods, and those of its Turns, may be called from any goroutine.
type Store struct {
	cat      *Catalog
	set      *ssdio.Set
	layout   *ssdio.Layout
	arena    *ssdio.Arena
	halfLife float64
	now      func() time.Time
	most     int // slots of the arena without the spares: Resize cannot go beyond
	spare    int
	landed   chan ssdio.Result // of all reads, with room for as many as there are slots
	counts   []layerCounts
	limit    atomic.Int64 // gauges for Stats
	usable   atomic.Int64
	bytes    atomic.Int64
	cached   atomic.Int64

	mu      sync.Mutex // guards below
	policy  *Policy
	slots   int      // that may be used
	held    []tenant // the experts that occupy a slot, in no order
	where   []int32  // [experts]: index into held, -1: absent
	unheld  []int32  // free places of held
	turns   []*Turn  // those with an open layer, oldest first
	guesses foresight
	reading int // reads under way
	aside   int // slots that the cache gave up for the lookahead of a prompt
	stuck   int // slots that a read may still write into: never used again
}

// A tenant is an expert that occupies a slot.
type tenant struct {
	buf     ssdio.Buffer
	used    bool // since it was read
	guess   bool // read ahead and not asked for yet: the policy does not know it
	charged bool // its bytes count as a wrong guess

	// While it is being read:
	batch   *ssdio.Batch // nil: it is in memory
	index   int          // in the batch
	dropped bool         // cancelled
	waiters []waiter
}

// A waiter is a use that waits for a read.
type waiter struct {
	turn *Turn
	use  int32
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
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Store{cat: cat, set: set, layout: layout, halfLife: o.HalfLife, now: o.Now, counts: make([]layerCounts, cat.layers)}
	if err := s.makeArena(o); err != nil {
		return nil, err
	}
	s.landed = make(chan ssdio.Result, s.slots)
	s.policy = NewPolicy(cat.Experts(), s.slots-s.headroom(s.slots))
	s.gauge()
	s.guesses.init(s, o.NoAhead)
	s.where = make([]int32, cat.Experts())
	for i := range s.where {
		s.where[i] = -1
	}
	return s, nil
}

// headroom is how many of so many slots are kept free of cached experts: as many
// as one layer of one token needs, so that all its reads can be in flight at once,
// and where there is room as many again for what is read ahead. A cache with a
// slot for every expert needs none.
func (s *Store) headroom(slots int) int {
	if slots >= s.cat.Experts() {
		return 0
	}
	k := s.cat.topK
	return k + min(k, (slots-k)/8)
}

// keeps is how many experts the cache may hold.
func (s *Store) keeps() int { return max(s.slots-s.headroom(s.slots)-s.aside, 0) }

// makeArena maps as many slots as the budget holds and the model has experts.
func (s *Store) makeArena(o Options) error {
	slot, spare := s.cat.SlotBytes(), Spares(o.Drives)
	need := int64(s.cat.topK+spare) * slot
	if o.Budget < need {
		return &BudgetError{Budget: o.Budget, Need: need, Slot: slot, TopK: s.cat.topK, Spare: spare}
	}
	s.slots = int(min(o.Budget/slot-int64(spare), int64(s.cat.Experts())))
	s.most, s.spare = s.slots, spare
	create := ssdio.NewArena
	if o.Reserve {
		create = ssdio.ReserveArena
	}
	arena, err := create(int(s.cat.largest), s.slots, spare)
	s.arena = arena
	return err
}

// Close gives the memory back. The set must be closed before, so that no read is
// in flight; where one is stuck in the system, the memory stays mapped and the
// error wraps ssdio.ErrArenaBusy.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.turns) > 0 {
		return ErrOpen
	}
	s.poll()
	for key, at := range s.where {
		if at >= 0 && s.held[at].batch == nil {
			s.policy.Remove(key)
			s.free(key)
		}
	}
	s.cached.Store(0)
	return s.arena.Close()
}

// read sends reads for keys, each into a slot that it already holds.
func (s *Store) read(class ssdio.Class, keys []int32) {
	if len(keys) == 0 {
		return
	}
	reqs := make([]ssdio.Request, len(keys))
	for i, key := range keys {
		reqs[i] = ssdio.Request{Key: s.cat.model.Objects[key].Key, Into: s.tenant(int(key)).buf}
	}
	s.reading += len(reqs)
	// No context: several turns may come to wait for a read, so it is cancelled
	// when none is left, not when the first has enough.
	b := s.set.ReadTo(context.Background(), class, reqs, s.landed)
	for i, key := range keys {
		x := s.tenant(int(key))
		x.batch, x.index = b, i
	}
}

// take puts an absent expert into a free slot, to be read. It is false if there is
// no slot.
func (s *Store) take(key int) bool {
	slot := s.arena.Get()
	if slot == nil {
		return false
	}
	obj := &s.cat.model.Objects[key]
	at := int32(len(s.held))
	if n := len(s.unheld); n > 0 {
		at, s.unheld = s.unheld[n-1], s.unheld[:n-1]
	} else {
		s.held = append(s.held, tenant{})
	}
	s.held[at] = tenant{buf: slot.Buffer(s.layout.Residue(obj.Key), int(obj.Size))}
	s.where[key] = at
	return true
}

// tenant is the slot of an expert that has one.
func (s *Store) tenant(key int) *tenant { return &s.held[s.where[key]] }

// admit offers an expert that is needed to the cache, and counts the use. Who has
// to go for it gives up the slot.
func (s *Store) admit(key int, rows int32) {
	victim, _ := s.policy.Offer(key)
	if victim >= 0 {
		s.free(victim)
	}
	s.policy.Count(key, weight(int(rows)))
	s.cached.Store(int64(s.policy.Len()))
}

// free throws an expert out and gives its slot back.
func (s *Store) free(key int) {
	x := s.tenant(key)
	if !x.used {
		c := s.countsOf(key)
		c.unused.Add(1)
		c.wasted.Add(int64(len(x.buf.Bytes())))
	}
	x.buf.Slot().Free()
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

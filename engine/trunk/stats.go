package trunk

import (
	"sync/atomic"
	"time"
)

// Stats are gauges of a Store, and counters that only grow.
type Stats struct {
	Resident int   // gauge: layers that stay
	Streamed int   // gauge: layers that are read for every pass
	Buffers  int   // gauge: buffers for them
	Memory   int64 // gauge: bytes of all
	PerPass  int64 // gauge: bytes that a pass reads

	Layers int64         // streamed layers that were computed
	Late   int64         // of them: those that the arithmetic waited for
	Read   int64         // bytes of streamed layers that arrived
	Wasted int64         // of them: bytes that were not computed with
	Stall  time.Duration // for how long the arithmetic waited
}

// Sub takes an earlier reading's counters away from this one's, in place.
func (s *Stats) Sub(old *Stats) {
	s.Layers -= old.Layers
	s.Late -= old.Late
	s.Read -= old.Read
	s.Wasted -= old.Wasted
	s.Stall -= old.Stall
}

// counters are what Stats reads while a pass runs.
type counters struct {
	layers, late, read, wasted, stall atomic.Int64
}

// Stats reads gauges and counters. It takes no lock.
func (s *Store) Stats() Stats {
	return Stats{
		Resident: s.plan.Resident, Streamed: s.cat.Head() - s.plan.Resident, Buffers: s.plan.Buffers,
		Memory: s.plan.Memory, PerPass: s.plan.PerToken,
		Layers: s.counts.layers.Load(), Late: s.counts.late.Load(), Read: s.counts.read.Load(),
		Wasted: s.counts.wasted.Load(), Stall: time.Duration(s.counts.stall.Load()),
	}
}

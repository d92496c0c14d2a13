package engine

import (
	"sync/atomic"
	"time"
)

// Stats counts what an Engine has done since it was opened. All values only grow;
// the work between two readings is their difference, see Sub.
type Stats struct {
	Prefilled   int64         // prompt tokens computed
	Reused      int64         // prompt tokens that a sequence had seen before
	Generated   int64         // tokens generated
	PrefillTime time.Duration // spent on prompts
	DecodeTime  time.Duration // spent on generated tokens
	Draft       Drafting      // what proposed tokens did
}

// Sub returns what was done since an earlier reading.
func (s Stats) Sub(old Stats) Stats {
	return Stats{
		Prefilled: s.Prefilled - old.Prefilled, Reused: s.Reused - old.Reused, Generated: s.Generated - old.Generated,
		PrefillTime: s.PrefillTime - old.PrefillTime, DecodeTime: s.DecodeTime - old.DecodeTime,
		Draft: Drafting{
			Passes: s.Draft.Passes - old.Draft.Passes, Proposed: s.Draft.Proposed - old.Draft.Proposed,
			Accepted: s.Draft.Accepted - old.Draft.Accepted, Saved: s.Draft.Saved - old.Draft.Saved,
		},
	}
}

// counters are the Stats as they are counted; reading takes no lock.
type counters struct {
	prefilled, reused, generated, prefillNS, decodeNS atomic.Int64
	passes, proposed, accepted, savedNS               atomic.Int64 // of drafts
}

func (c *counters) add(r *Result) {
	c.prefilled.Add(int64(r.Prefilled))
	c.reused.Add(int64(r.Reused))
	c.generated.Add(int64(len(r.Tokens)))
	c.prefillNS.Add(int64(r.PrefillTime))
	c.decodeNS.Add(int64(r.DecodeTime))
	c.passes.Add(r.Draft.Passes)
	c.proposed.Add(r.Draft.Proposed)
	c.accepted.Add(r.Draft.Accepted)
	c.savedNS.Add(int64(r.Draft.Saved))
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	return Stats{
		Prefilled: e.stats.prefilled.Load(), Reused: e.stats.reused.Load(), Generated: e.stats.generated.Load(),
		PrefillTime: time.Duration(e.stats.prefillNS.Load()), DecodeTime: time.Duration(e.stats.decodeNS.Load()),
		Draft: Drafting{
			Passes: e.stats.passes.Load(), Proposed: e.stats.proposed.Load(),
			Accepted: e.stats.accepted.Load(), Saved: time.Duration(e.stats.savedNS.Load()),
		},
	}
}

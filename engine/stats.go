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
}

// Sub returns what was done since an earlier reading.
func (s Stats) Sub(old Stats) Stats {
	return Stats{
		Prefilled: s.Prefilled - old.Prefilled, Reused: s.Reused - old.Reused, Generated: s.Generated - old.Generated,
		PrefillTime: s.PrefillTime - old.PrefillTime, DecodeTime: s.DecodeTime - old.DecodeTime,
	}
}

// counters are the Stats as they are counted; reading takes no lock.
type counters struct {
	prefilled, reused, generated, prefillNS, decodeNS atomic.Int64
}

func (c *counters) add(r *Result) {
	c.prefilled.Add(int64(r.Prefilled))
	c.reused.Add(int64(r.Reused))
	c.generated.Add(int64(len(r.Tokens)))
	c.prefillNS.Add(int64(r.PrefillTime))
	c.decodeNS.Add(int64(r.DecodeTime))
}

// Stats returns the counters.
func (e *Engine) Stats() Stats {
	return Stats{
		Prefilled: e.stats.prefilled.Load(), Reused: e.stats.reused.Load(), Generated: e.stats.generated.Load(),
		PrefillTime: time.Duration(e.stats.prefillNS.Load()), DecodeTime: time.Duration(e.stats.decodeNS.Load()),
	}
}

package simulate

import (
	"encoding/json"
	"time"
)

// resultJSON is a Result for programs: times in seconds, all but layers_factor of the
// whole model, so bytes and uses are scaled up where a sample of layers was run.
type resultJSON struct {
	Tokens      int         `json:"tokens"`
	Rate        float64     `json:"tokens_per_second"`
	Elapsed     float64     `json:"elapsed_seconds"`
	Compute     float64     `json:"compute_seconds"`
	Memory      float64     `json:"memory_seconds"`
	Streaming   float64     `json:"trunk_streaming_seconds"`
	Stall       float64     `json:"stall_seconds"`
	Hit         float64     `json:"hit"`
	InTime      float64     `json:"in_time"`
	Late        float64     `json:"late"`
	Missed      float64     `json:"missed"`
	Unused      float64     `json:"unused"`
	HitRate     float64     `json:"hit_rate"`
	Useful      float64     `json:"useful_bytes"`
	Wasted      float64     `json:"wasted_bytes"`
	Read        float64     `json:"read_bytes"`
	PerToken    float64     `json:"read_bytes_per_token"`
	Trunk       int64       `json:"trunk_bytes"`
	Streamed    int64       `json:"trunk_streamed_bytes"`
	Cache       int64       `json:"expert_cache_bytes"`
	Drives      []driveJSON `json:"drives"`
	Factor      float64     `json:"layers_factor"` // share of the layers that was run
	Assumptions []string    `json:"assumptions"`
}

type driveJSON struct {
	Name string  `json:"name"`
	Read float64 `json:"read_bytes"`
	Busy float64 `json:"busy_seconds"`
}

// MarshalJSON implements json.Marshaler.
func (r *Result) MarshalJSON() ([]byte, error) {
	c := &r.Counts
	whole := func(n int64) float64 { return float64(n) / r.Factor }
	out := resultJSON{
		Tokens: r.Tokens, Rate: r.Rate(), Elapsed: r.Elapsed.Seconds(), Compute: r.Compute.Seconds(), Memory: r.Memory.Seconds(),
		Streaming: r.Streaming.Seconds(), Stall: r.Stall.Seconds(),
		Hit: whole(c.Hit), InTime: whole(c.InTime), Late: whole(c.Late), Missed: whole(c.Missed), Unused: whole(c.Unused), HitRate: c.HitRate(),
		Useful: whole(c.Useful), Wasted: whole(c.Wasted), Read: whole(r.Read), PerToken: r.PerToken(),
		Trunk: r.Trunk, Streamed: r.Streamed, Cache: r.Cache, Drives: []driveJSON{}, Factor: r.Factor, Assumptions: r.Assumptions,
	}
	for i := range r.Drives {
		d := &r.Drives[i]
		out.Drives = append(out.Drives, driveJSON{d.Name, whole(d.Read), time.Duration(whole(int64(d.Busy))).Seconds()})
	}
	return json.Marshal(out)
}

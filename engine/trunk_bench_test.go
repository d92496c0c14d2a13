package engine

import (
	"fmt"
	"testing"
	"time"

	"deltafin/engine/k3"
	"deltafin/engine/trunk"
)

// BenchmarkStreamedTrunk steps the demonstration model with every layer streamed from
// a drive of limited speed and all experts cached. share is the time that the drive
// needs for the bytes at its limit over the time that the steps took: 1 means that
// nothing but the drive was waited for. In int8 about half as many bytes are read.
func BenchmarkStreamedTrunk(b *testing.B) {
	state := b.TempDir()
	forms := map[string]*trunk.Catalog{TrunkExact: trunkOf(b, ""), TrunkInt8: convertTrunk(b, "", b.TempDir(), state).Catalog()}
	for _, limit := range []int64{20, 50, 100} {
		for _, form := range []string{TrunkExact, TrunkInt8} {
			b.Run(fmt.Sprintf("limit=%dMB/s/%s", limit, form), func(b *testing.B) {
				benchStreamed(b, limit, Options{
					ExpertCache: 1 << 30, Trunk: form, TrunkMemory: forms[form].Least(), DriveState: state, NoLookahead: true,
					Drives: []string{fmt.Sprintf("%s,name=d0,limit=%dMB/s", b.TempDir(), limit)},
				})
			})
		}
	}
}

func benchStreamed(b *testing.B, limit int64, o Options) {
	e, err := Open(b.Context(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	l, err := e.acquire(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	defer l.release()
	st := e.model.NewState()
	ids := make([]int, 512)
	for i := range ids {
		ids[i] = (i*37 + 11) % 500
	}
	if _, err := l.runner.Forward(b.Context(), st, ids, k3.LastLogits); err != nil { // fills the cache
		b.Fatal(err)
	}
	var before, after Streaming
	e.Streaming(&before)
	start := time.Now()
	for b.Loop() {
		if _, err := l.runner.Forward(b.Context(), st, ids[:1], k3.LastLogits); err != nil {
			b.Fatal(err)
		}
	}
	took := time.Since(start)
	e.Streaming(&after)
	after.Sub(&before)
	b.ReportMetric(float64(after.Drives.Total.Read)/float64(limit*1e6)/took.Seconds(), "share")
	b.ReportMetric(float64(after.Trunk.Stall)/float64(took), "stalled")
	b.ReportMetric(float64(after.Trunk.Read)/float64(b.N), "bytes/step")
}

package simulate

import (
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	for _, name := range Examples() {
		m, err := Example(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, layers := range []int{12, 0} {
			at := time.Now()
			r, err := Decode(t.Context(), m, K3(), Options{Tokens: 20, Warm: 40, Layers: layers})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s %d: %.2f tok/s, hit %.2f, compute %v mem %v stall %v stream %v cache %d GB streamed %d, %.2f GB/tok wall %v %+v", name, layers, r.Rate(), r.Counts.HitRate(), r.Compute, r.Memory, r.Stall, r.Streaming, r.Cache/1e9, r.Streamed/1e9, r.PerToken()/1e9, time.Since(at), r.Counts)
			at = time.Now()
			p, err := Prefill(t.Context(), m, K3(), 512, Options{Layers: layers})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("  prefill %v, compute %v mem %v stall %v, %.0f GB wall %v", p.Elapsed, p.Compute, p.Memory, p.Stall, p.PerToken()*512/1e9, time.Since(at))
		}
	}
}

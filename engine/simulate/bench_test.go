package simulate

import "testing"

// BenchmarkToken is the wall time of one simulated token of K3.
func BenchmarkToken(b *testing.B) {
	m, err := Example("m5max")
	if err != nil {
		b.Fatal(err)
	}
	r, err := start(b.Context(), m, K3(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if err := r.pass(1, true); err != nil {
			b.Fatal(err)
		}
	}
	if err := r.close(); err != nil {
		b.Fatal(err)
	}
}

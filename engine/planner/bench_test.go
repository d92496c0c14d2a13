package planner

import (
	"testing"

	"deltafin/engine/simulate"
)

// BenchmarkPlan is the wall time of a whole plan.
func BenchmarkPlan(b *testing.B) {
	for _, name := range simulate.Examples() {
		b.Run(name, func(b *testing.B) {
			m, err := simulate.Example(name)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Make(b.Context(), m); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

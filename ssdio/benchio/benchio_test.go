package benchio

import (
	"os"
	"testing"
)

// BenchmarkEmulated/full_copies and so on print one line for each row. The
// folder in SSDIO_BENCH_DIR should be in memory.
func BenchmarkEmulated(b *testing.B) {
	dir := os.Getenv("SSDIO_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	for _, w := range placements(Limits()) {
		b.Run(w.Name, func(b *testing.B) {
			for b.Loop() {
				rows, err := emulated(b.Context(), dir, Limits(), w.Name, w.Shares, Options{}.ensure())
				if err != nil {
					b.Fatal(err)
				}
				report(b, rows)
			}
		})
	}
}

func report(b *testing.B, rows []Row) {
	b.Helper()
	for _, r := range rows {
		b.Logf("%-50s %8.0f of %8.0f MB/s  %.1f%%  %s", r.Name, r.Value/1e6, r.Limit/1e6, 100*r.Ratio, r.Note)
	}
}

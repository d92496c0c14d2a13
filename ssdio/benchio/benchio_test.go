package benchio

import (
	"flag"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
)

// full makes TestEmulatedInVirtualTime run at full size in SSDIO_BENCH_DIR: the
// figures of BenchmarkEmulated without the noise of a busy machine.
var full = flag.Bool("full", false, "emulated drives at full size in virtual time")

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

// BenchmarkReal reads folders below SSDIO_BENCH_DIR, which should be on a disk.
func BenchmarkReal(b *testing.B) {
	dir := os.Getenv("SSDIO_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	for b.Loop() {
		rows, err := Real(b.Context(), []string{dir, dir, dir, dir}, Options{})
		if err != nil {
			b.Fatal(err)
		}
		report(b, rows)
	}
}

// BenchmarkCost reports processor time.
func BenchmarkCost(b *testing.B) {
	dir := os.Getenv("SSDIO_BENCH_DIR")
	if dir == "" {
		dir = b.TempDir()
	}
	for b.Loop() {
		rows, err := Cost(b.Context(), dir, Options{})
		if err != nil {
			b.Fatal(err)
		}
		for _, r := range rows {
			b.Logf("%-40s %.4g %s (limit %.4g) %s", r.Name, r.Value, r.Unit, r.Limit, r.Note)
		}
	}
}

// TestRowsOfSmallRuns: the shape of the results, with little data and no word
// about speed.
func TestRowsOfSmallRuns(t *testing.T) {
	o := Options{Objects: 4, Size: 3*ssdio.BlockSize + 5, Window: 4, For: 10 * time.Millisecond, WarmUp: time.Millisecond}
	dir := t.TempDir()
	rows, err := Real(t.Context(), []string{dir, dir}, o)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v %v", rows, err)
	}
	more, err := Cost(t.Context(), dir, o)
	if err != nil || len(more) != 4 {
		t.Fatalf("%v %v", more, err)
	}
	for _, r := range append(rows, more...) {
		if r.Name == "" || r.Unit == "" || !(r.Value > 0) {
			t.Errorf("row %+v", r)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestEmulatedInVirtualTime: the rows of emulated drives where time is virtual
// and so the figures mean something in a test: every placement draws 97 % of
// its limit, and 93 % of what is possible after a drive slowed down.
func TestEmulatedInVirtualTime(t *testing.T) {
	dir := t.TempDir()
	limits := []float64{34e6, 17.75e6, 17.75e6, 14.25e6}
	o := Options{Objects: 24, Size: ExpertSize / 4, For: time.Second, Set: ssdio.Options{Slice: ssdio.BlockSize}}
	if *full {
		dir, limits, o = os.Getenv("SSDIO_BENCH_DIR"), Limits(), Options{}
	}
	synctest.Test(t, func(t *testing.T) {
		rows, err := Emulated(t.Context(), dir, limits, o)
		if err != nil || len(rows) != 9 {
			t.Fatalf("%v %v", rows, err)
		}
		for i, r := range rows {
			t.Logf("%-50s %8.0f of %8.0f MB/s  %.1f%%  %s", r.Name, r.Value/1e6, r.Limit/1e6, 100*r.Ratio, r.Note)
			if bar := []float64{0.97, 0.93, 0.93}[i%3]; r.Ratio < bar {
				t.Errorf("%s: %.3f of %.0f MB/s, want %.2f", r.Name, r.Ratio, r.Limit/1e6, bar)
			}
		}
	})
}

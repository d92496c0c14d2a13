package ssdio_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
	"deltafin/ssdio/emulate"
)

// TestMeasuresEmulatedDrives: two drives of known limits on one hub, in virtual
// time. The ceilings are the limits, and together they get what the hub gives.
func TestMeasuresEmulatedDrives(t *testing.T) {
	dirs := []string{t.TempDir(), t.TempDir()}
	synctest.Test(t, func(t *testing.T) {
		var fleet emulate.Fleet
		var drives []*ssdio.Drive
		for i, dir := range dirs {
			d, err := fleet.OpenSpec(emulate.Spec{
				Path: dir, Limit: []int64{400e6, 200e6}[i], Latency: time.Millisecond, Hub: "h", HubRate: 450e6,
			}, nil)
			if err != nil {
				t.Fatal(err)
			}
			drives = append(drives, d)
		}
		var last ssdio.MeasureProgress
		profiles, err := ssdio.Measure(t.Context(), drives, &ssdio.MeasureOptions{
			Sizes: []int{256 << 10, 1 << 20}, Depths: []int{1, 4}, Bytes: 8 << 20,
		}, func(p ssdio.MeasureProgress) {
			if p.Done < last.Done {
				t.Errorf("progress went back from %v to %v", last.Done, p.Done)
			}
			last = p
		})
		if err != nil {
			t.Fatal(err)
		}
		if last.Done != 1 || last.Phase != "together" {
			t.Errorf("last progress %+v", last)
		}
		for i, p := range profiles {
			limit := []float64{400e6, 200e6}[i]
			if len(p.Points) != 4 || p.Best.Rate > limit || p.Best.Rate < 0.97*limit {
				t.Errorf("drive %d: best %+v of %d points, limit %v", i, p.Best, len(p.Points), limit)
			}
			if p.Drive != drives[i].ID || p.Emulated == "" || len(p.Company) != 1 {
				t.Errorf("drive %d: profile %+v", i, p)
			}
			if _, err := os.Stat(filepath.Join(dirs[i], "deltafin-measure.tmp")); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("the test file was left behind: %v", err)
			}
		}
		if sum := profiles[0].Together + profiles[1].Together; sum > 450e6 || sum < 430e6 {
			t.Errorf("together %v, the hub gives 450e6", sum)
		}
	})
}

func TestMeasureUsesFilesThatAreThereAndStops(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "model"), make([]byte, 4<<20), 0o644); err != nil {
		t.Fatal(err)
	}
	d, err := ssdio.OpenDrive(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	o := &ssdio.MeasureOptions{Sizes: []int{64 << 10}, Depths: []int{1}, Bytes: 4 << 20, Point: time.Millisecond}
	_, err = ssdio.Measure(t.Context(), []*ssdio.Drive{d}, o, func(p ssdio.MeasureProgress) {
		if p.Phase == "writing" {
			t.Error("wrote a file although one was there")
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	o.Bytes = 8 << 20
	if _, err := ssdio.Measure(ctx, []*ssdio.Drive{d}, o, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	left, err := filepath.Glob(filepath.Join(dir, "*.tmp"))
	if err != nil || left != nil {
		t.Errorf("left behind: %v %v", left, err)
	}
	if _, err := ssdio.Measure(t.Context(), []*ssdio.Drive{d}, &ssdio.MeasureOptions{Sizes: []int{1000}}, nil); !errors.Is(err, ssdio.ErrRange) {
		t.Errorf("a size of 1000: %v", err)
	}
}

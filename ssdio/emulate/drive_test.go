package emulate

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"deltafin/ssdio"
)

const fileSize = 1 << 20

// folder has one file of known bytes.
func folder(t *testing.T) (dir string, data []byte) {
	t.Helper()
	dir = t.TempDir()
	data = make([]byte, fileSize)
	for i := range data {
		data[i] = byte(i * 31 >> 3)
	}
	if err := os.WriteFile(filepath.Join(dir, "f"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir, data
}

func open(t *testing.T, f *Fleet, dir, options string) ssdio.Source {
	t.Helper()
	spec, err := ParseSpec("x" + options)
	if err != nil {
		t.Fatal(err)
	}
	spec.Path = dir
	d, err := f.OpenSpec(spec, nil)
	if err != nil {
		t.Fatal(err)
	}
	src, err := d.FS.Open("f")
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// TestLimitsAreExact: a drive that is kept busy gives its limit, whatever the
// number of readers, and two on a hub share what the hub gives.
func TestLimitsAreExact(t *testing.T) {
	dir, _ := folder(t)
	for _, c := range []struct {
		options []string
		readers int
		seconds float64 // for 64 reads of 64 KiB from each drive
	}{
		{[]string{",limit=1MiB/s"}, 1, 4},
		{[]string{",limit=1MiB/s"}, 8, 4},
		{[]string{",limit=1MiB/s,latency=10ms"}, 8, 4.01},
		{[]string{",latency=10ms"}, 8, 0.08},
		{[]string{",hub=a:1MiB/s", ",hub=a"}, 4, 8},
		{[]string{",limit=1MiB/s,hub=a:16MiB/s", ",limit=4MiB/s,hub=a"}, 4, 4},
	} {
		synctest.Test(t, func(t *testing.T) {
			var fleet Fleet
			var wait sync.WaitGroup
			begin := time.Now()
			for _, o := range c.options {
				src := open(t, &fleet, dir, o)
				defer src.Close()
				for range c.readers {
					wait.Add(1)
					go func() {
						defer wait.Done()
						var w ssdio.Scratch
						defer w.Free()
						p := make([]byte, 64<<10)
						for range 64 / c.readers {
							if _, err := src.ReadInto(p, 4096, &w); err != nil {
								t.Error(err)
							}
						}
					}()
				}
			}
			wait.Wait()
			if got := time.Since(begin).Seconds(); got < 0.999*c.seconds || got > 1.01*c.seconds {
				t.Errorf("%v with %d readers took %v s, want %v", c.options, c.readers, got, c.seconds)
			}
		})
	}
}

func TestFaultsStrikeAsWritten(t *testing.T) {
	dir, data := folder(t)
	var w ssdio.Scratch
	defer w.Free()
	for _, c := range []struct {
		options string
		bad     []bool // for each of the reads, one a second
		want    error  // nil: wrong bytes
	}{
		{",fault=error/after=1/count=2", []bool{false, true, true, false}, syscall.EIO},
		{",fault=error/every=3", []bool{true, false, false, true}, syscall.EIO},
		{",fault=error/every=2/count=1/after=1", []bool{false, true, false, false}, syscall.EIO},
		{",fault=error/at=5000-5001", []bool{true, true, true, true}, syscall.EIO},
		{",fault=error/at=20000-20001", []bool{false, false, false, false}, nil},
		{",fault=error/file=g*", []bool{false, false, false, false}, nil},
		{",fault=short/count=1", []bool{true, false, false, false}, ssdio.ErrShort},
		{",fault=flip/count=1/at=5000-5001", []bool{true, false, false, false}, nil},
		{",fault=gone/from=1s/for=2s", []bool{false, true, true, false}, ssdio.ErrGone},
	} {
		synctest.Test(t, func(t *testing.T) {
			var fleet Fleet
			src := open(t, &fleet, dir, c.options)
			defer src.Close()
			for i, bad := range c.bad {
				p := make([]byte, 8192)
				_, err := src.ReadInto(p, 4096, &w)
				right := err == nil && bytes.Equal(p, data[4096:4096+8192])
				if right == bad || (bad && c.want != nil && !errors.Is(err, c.want)) || (bad && c.want == nil && err != nil) {
					t.Errorf("%s, read %d: right %v, %v", c.options, i, right, err)
				}
				<-time.After(time.Second)
			}
		})
	}
}

// TestStallsEnd: after their time, or when the fleet is released.
func TestStallsEnd(t *testing.T) {
	dir, _ := folder(t)
	synctest.Test(t, func(t *testing.T) {
		var fleet Fleet
		src := open(t, &fleet, dir, ",fault=stall/count=1/for=5s,fault=stall/after=1/count=1")
		defer src.Close()
		var w ssdio.Scratch
		defer w.Free()
		p := make([]byte, 100)
		begin := time.Now()
		if _, err := src.ReadInto(p, 0, &w); err != nil || time.Since(begin) != 5*time.Second {
			t.Errorf("stalled for %v, %v", time.Since(begin), err)
		}
		time.AfterFunc(time.Hour, fleet.Release)
		if _, err := src.ReadInto(p, 0, &w); err == nil || time.Since(begin) < time.Hour {
			t.Errorf("a stall without end ended after %v with %v", time.Since(begin), err)
		}
	})
}

func TestHubsNeedOneRate(t *testing.T) {
	dir, _ := folder(t)
	var fleet Fleet
	if _, err := fleet.OpenSpec(Spec{Path: dir, Hub: "a"}, nil); !errors.Is(err, ErrSpec) {
		t.Errorf("a hub without a rate: %v", err)
	}
	for i, want := range []error{nil, nil, ErrSpec} {
		_, err := fleet.OpenSpec(Spec{Path: dir, Hub: "a", HubRate: []int64{5, 0, 6}[i]}, nil)
		if !errors.Is(err, want) {
			t.Errorf("drive %d: %v, want %v", i, err, want)
		}
	}
}

func TestPlainPathIsAPlainDrive(t *testing.T) {
	dir, _ := folder(t)
	var fleet Fleet
	d, err := fleet.Open(dir, nil)
	if err != nil || d.Emulated != "" {
		t.Errorf("%+v, %v", d, err)
	}
	d, err = fleet.Open(dir+",limit=1GB/s,name=x", nil)
	if err != nil || d.Emulated != "limit=1000000000B/s" || d.Name != "x" {
		t.Errorf("%+v, %v", d, err)
	}
}

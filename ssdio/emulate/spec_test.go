package emulate

import (
	"errors"
	"reflect"
	"testing"
	"time"
)

func TestParseSpec(t *testing.T) {
	for text, want := range map[string]Spec{
		"/mnt/a":             {Path: "/mnt/a"},
		`D:\a,,b,limit=1MB`:  {Path: `D:\a,b`, Limit: 1e6},
		"D:/x,limit=500MB/s": {Path: "D:/x", Limit: 500e6},
		"a,limit=1.5GiB,latency=80us,jitter=1.5ms": {Path: "a", Limit: 3 << 29, Latency: 80 * time.Microsecond, Jitter: 1500 * time.Microsecond},
		"a,hub=left:4GB/s,name=nvme1,cached":       {Path: "a", Hub: "left", HubRate: 4e9, Name: "nvme1", Cached: true},
		"a,hub=left":                               {Path: "a", Hub: "left"},
		"a,fault=flip/after=10/count=1/at=4KiB-8KiB,fault=gone/from=2s/for=3s": {Path: "a", Faults: []Fault{
			{Kind: Flip, After: 10, Count: 1, At: [2]int64{4096, 8192}}, {Kind: Gone, From: 2 * time.Second, For: 3 * time.Second},
		}},
		"a,fault=slow/by=3/from=1s/file=*.pack,fault=stall/count=always": {Path: "a", Faults: []Fault{
			{Kind: Slow, By: 3, From: time.Second, File: "*.pack"}, {Kind: Stall},
		}},
	} {
		got, err := ParseSpec(text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v; want %+v", text, got, err, want)
		}
		again, err := ParseSpec(got.String())
		if err != nil || !reflect.DeepEqual(again, want) {
			t.Errorf("%s: written as %s, read as %+v, %v", text, got, again, err)
		}
	}
	for _, text := range []string{
		"", ",limit=1MB", "a,", "a,b", "a,limit", "a,limit=0", "a,limit=-5", "a,limit=fast", "a,limit=NaN", "a,limit=1e99GB",
		"a,latency=-1s", "a,latency=5", "a,hub=", "a,hub=x:", "a,name=", "a,fault=", "a,fault=melt", "a,fault=flip/after=-1",
		"a,fault=flip/at=9-9", "a,fault=flip/at=9", "a,fault=flip/count=0", "a,fault=flip/by=3", "a,fault=slow/by=0", "a,fault=slow/by=NaN",
		"a,fault=flip/when=now", "a,fault=flip/file=[", "a,fault=flip/from=x",
	} {
		if s, err := ParseSpec(text); !errors.Is(err, ErrSpec) {
			t.Errorf("%q was read as %+v, %v", text, s, err)
		}
	}
}

// FuzzParseSpec: whatever parses is written and read back as the same.
func FuzzParseSpec(f *testing.F) {
	f.Add("/mnt/a,limit=710MB/s,latency=80us,hub=left:1GB/s,fault=flip/after=10/count=1")
	f.Add("a,,b,name=x,,y,cached,jitter=1h")
	f.Add("a,fault=slow/by=2.5/from=1s/for=2s,fault=error/at=1KiB-2KiB/file=*.pack")
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSpec(text)
		if err != nil {
			if !errors.Is(err, ErrSpec) {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		again, err := ParseSpec(s.String())
		if err != nil || !reflect.DeepEqual(again, s) {
			t.Fatalf("%q: %+v is written as %q and read as %+v, %v", text, s, s.String(), again, err)
		}
	})
}

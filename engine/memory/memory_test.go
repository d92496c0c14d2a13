package memory

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

const (
	gb  = int64(1e9)
	gib = int64(1 << 30)
	mib = int64(1 << 20)
)

func files(m map[string]string) fstest.MapFS {
	out := fstest.MapFS{}
	for name, text := range m {
		out[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return out
}

const meminfo = "MemTotal:       134217728 kB\nMemFree:         1000000 kB\nMemAvailable:   104857600 kB\nHugePages_Total:       0\n"

// TestReadProc reads /proc and control groups as they are found on real systems.
func TestReadProc(t *testing.T) {
	base := map[string]string{
		"proc/meminfo":         meminfo,
		"proc/self/status":     "Name:\tdeltafin\nVmRSS:\t  300000 kB\nRssAnon:\t  200000 kB\nRssFile:\t  100000 kB\nRssShmem:\t       0 kB\n",
		"proc/pressure/memory": "some avg10=2.50 avg60=0.10 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1\n",
	}
	cases := []struct {
		name             string
		more             map[string]string
		total, available int64
		how              string
	}{
		{"no groups", nil, 128 * gib, 100 * gib, "MemAvailable"},
		{"v2 without a limit", map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 128 * gib, 100 * gib, "MemAvailable"},
		{"v2, the parent is the tighter one", map[string]string{
			"proc/self/cgroup":                 "0::/a/b\n",
			"sys/fs/cgroup/a/b/memory.max":     "68719476736\n",
			"sys/fs/cgroup/a/b/memory.current": "1073741824\n",
			"sys/fs/cgroup/a/memory.max":       "34359738368\n",
			"sys/fs/cgroup/a/memory.current":   "11811160064\n",
			"sys/fs/cgroup/a/memory.stat":      "anon 5\ninactive_file 1073741824\nactive_file 7\n",
		}, 32 * gib, 22 * gib, "control group"},
		{"v2 in a container, path of the host", map[string]string{
			"proc/self/cgroup":             "0::/docker/0123\n",
			"sys/fs/cgroup/memory.max":     "8589934592\n",
			"sys/fs/cgroup/memory.current": "8589934592\n",
		}, 8 * gib, 0, "control group"},
		{"v1", map[string]string{
			"proc/self/cgroup": "9:name=systemd:/\n4:cpu,memory:/jobs\n0::/\n",
			"sys/fs/cgroup/memory/jobs/memory.limit_in_bytes": "17179869184\n",
			"sys/fs/cgroup/memory/jobs/memory.usage_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/jobs/memory.stat":           "inactive_file 9\ntotal_inactive_file 1073741824\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes":      "9223372036854771712\n",
		}, 16 * gib, 15 * gib, "control group"},
		{"a limit above what is free", map[string]string{
			"proc/self/cgroup":             "0::/\n",
			"sys/fs/cgroup/memory.max":     "128849018880\n",
			"sys/fs/cgroup/memory.current": "0\n",
		}, 120 * gib, 100 * gib, "MemAvailable"},
	}
	for _, c := range cases {
		all := files(base)
		for name, f := range files(c.more) {
			all[name] = f
		}
		r, err := ReadProc(all)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if r.Total != c.total || r.Available != c.available || r.How != c.how {
			t.Errorf("%s: total %d, available %d by %s; want %d, %d by %s", c.name, r.Total, r.Available, r.How, c.total, c.available, c.how)
		}
		if r.Own != 200000<<10 || r.Resident != 300000<<10 || r.Pressure != 2.5 {
			t.Errorf("%s: own %d, resident %d, pressure %v", c.name, r.Own, r.Resident, r.Pressure)
		}
	}
	for _, bad := range []map[string]string{{}, {"proc/meminfo": "MemTotal: 5 kB\n"}, {"proc/meminfo": "MemAvailable: 5 kB\n"}, {"proc/meminfo": "MemTotal: -5 kB\nMemAvailable: x kB\n"}} {
		if _, err := ReadProc(files(bad)); !errors.Is(err, ErrUnknown) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestReadThisMachine(t *testing.T) {
	r, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if r.Total < 64*mib || r.Available <= 0 || r.Available > r.Total || r.Own <= 0 || r.Resident < r.Own/2 || r.How == "" {
		t.Errorf("%+v", r)
	}
}

// k3 is about what the real model needs, with an int8 trunk.
func k3() Demand {
	return Demand{
		Trunk: 57 * gb, TrunkLeast: 57 * gb, Context: 8192, State: 900 * 1e6, Rows: 512,
		Pass: func(rows int) int64 { return int64(rows) * 4 * 1e6 }, Program: 200 * 1e6,
		Slot: 17_600_000, Spare: 8, TopK: 16, Experts: 82_432,
	}
}

// TestPlan: whatever is asked, the parts add up to no more than is allowed, and what
// remains are experts.
func TestPlan(t *testing.T) {
	now := Reading{Total: 128 * gb, Available: 110 * gb, Own: gb / 5}
	// Layers of a gigabyte, two of them as buffers.
	stream := func(d *Demand) {
		d.TrunkLeast = 2 * gb
		d.Stream = func(n int64) (int64, int64) {
			if n >= 57*gb {
				return 57 * gb, 0
			}
			return n / gb * gb, 57*gb - (n/gb-2)*gb
		}
	}
	cases := []struct {
		name   string
		d      func(*Demand)
		l      Limits
		rows   int
		trunk  int64
		bound  int64
		chosen bool
	}{
		{"what can be spared", nil, Limits{Now: &now}, 512, 57 * gb, now.Spare(), true},
		{"a budget", nil, Limits{Budget: 80 * gb, Now: &now}, 512, 57 * gb, 80 * gb, false},
		{"a budget on an unknown machine", nil, Limits{Budget: 80 * gb}, 512, 57 * gb, 80 * gb, false},
		{"little beside the trunk: fewer rows", nil, Limits{Budget: 61 * gb, Now: &now}, 64, 57 * gb, 61 * gb, false},
		{"a trunk that can be streamed", stream, Limits{Budget: 40 * gb, Now: &now}, 512, 35 * gb, 40 * gb, false},
		{"a trunk that could be streamed, but fits", stream, Limits{Budget: 80 * gb, Now: &now}, 512, 57 * gb, 80 * gb, false},
		{"a cache at the cost of the trunk", stream, Limits{Budget: 40 * gb, Cache: 20 * gb, Now: &now}, 512, 16 * gb, 40 * gb, false},
		{"more memory than experts", func(d *Demand) { d.Experts = 100 }, Limits{Now: &now}, 512, 57 * gb, now.Spare(), true},
		{"nothing known", func(d *Demand) { d.Experts = 100 }, Limits{}, 512, 57 * gb, 1 << 60, false},
		{"a cache of a size", nil, Limits{Cache: 10 * gb, Now: &now}, 512, 57 * gb, now.Spare(), true},
	}
	for _, c := range cases {
		d := k3()
		if c.d != nil {
			c.d(&d)
		}
		p, err := Make(d, c.l)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if p.Total() > c.bound || p.Rows != c.rows || p.Chosen != c.chosen || (p.Streamed > 0) != (p.Trunk < d.Trunk) {
			t.Errorf("%s: %d bytes of %d, %d rows, trunk %d + %d: %+v", c.name, p.Total(), c.bound, p.Rows, p.Trunk, p.Streamed, p)
		}
		if c.trunk > 0 && p.Trunk != c.trunk {
			t.Errorf("%s: trunk %d, want %d", c.name, p.Trunk, c.trunk)
		}
		most := int64(d.Experts+d.Spare) * d.Slot
		if c.l.Cache > 0 {
			most = c.l.Cache
		}
		if idle := min(c.bound-p.Total(), most-p.Cache); c.trunk > 0 && idle >= d.Slot {
			t.Errorf("%s: %d bytes are left over that could hold experts", c.name, idle)
		}
		if p.Slots < d.TopK || p.Slots > d.Experts || p.Cache%d.Slot != 0 || p.HeapLimit < p.State+p.Pass {
			t.Errorf("%s: %d slots, cache %d, heap limit %d", c.name, p.Slots, p.Cache, p.HeapLimit)
		}
	}
}

// TestPlanRefusals: a plan that cannot work names its numbers and a way out that
// works.
func TestPlanRefusals(t *testing.T) {
	now := Reading{Total: 128 * gb, Available: 102 * gb}
	text := func(l Limits, d Demand) (string, *Error) {
		t.Helper()
		_, err := Make(d, l)
		var e *Error
		if !errors.As(err, &e) {
			t.Fatalf("%+v: %v", l, err)
		}
		return e.Error(), e
	}
	msg, _ := text(Limits{Budget: 118 * gb, Now: &now}, k3())
	if want := "this plan needs 118 GB, free are 102 GB: start with --memory 89GiB, or close other programs"; msg != want {
		t.Errorf("%q, want %q", msg, want)
	}
	msg, e := text(Limits{Cache: 60 * gb, Now: &now}, k3())
	if !strings.HasPrefix(msg, "this plan needs 121 GB, free are 96 GB besides the 6.4 GB left to the system: start with --cache ") {
		t.Errorf("%q", msg)
	}
	if p, err := Make(k3(), Limits{Cache: e.Cache, Now: &now}); err != nil || p.Cache > e.Cache {
		t.Errorf("the cache that was advised does not work: %v", err)
	}
	msg, _ = text(Limits{Budget: 50 * gb, Now: &now}, k3())
	for _, want := range []string{"allowed are 50 GB", "the trunk 57 GB", "a conversation of 8192 tokens 900 MB", "give --memory more"} {
		if !strings.Contains(msg, want) {
			t.Errorf("%q does not say %q", msg, want)
		}
	}
	poor := Reading{Total: gb, Available: gb / 10}
	if msg, _ = text(Limits{Now: &poor}, k3()); !strings.Contains(msg, "free are 0 B besides the 537 MB left to the system") {
		t.Errorf("%q", msg)
	}
	long := k3()
	long.State = 60 * gb
	if msg, _ = text(Limits{Now: &now}, long); !strings.Contains(msg, "fewer tokens with --context") {
		t.Errorf("%q", msg)
	}
	if msg, _ = text(Limits{Budget: 1, Now: &now}, k3()); !strings.Contains(msg, "allowed are 1 B") {
		t.Errorf("%q", msg)
	}
}

// TestGovernor walks through days of a machine, one reading a second.
func TestGovernor(t *testing.T) {
	b := Bounds{Least: 1 * gb, Most: 96 * gb}
	full := Reading{Total: 128 * gb, Available: 8 * gb, Own: 100 * gb} // margin 6.4 GB
	start := time.Unix(1000, 0)
	type step struct {
		at       int // seconds
		avail    int64
		pressure float64
		held     int64 // -1: all of the cache
		to       int64 // 0: no change
		say      bool
	}
	cases := []struct {
		name  string
		steps []step
	}{
		{"enough: nothing happens", []step{{1, 8 * gb, 0, -1, 0, false}, {100, 7 * gb, 0, -1, 0, false}, {200, 7 * gb, 50, -1, 0, false}}},
		{"below the margin, above the floor", []step{{1, 4 * gb, 0, -1, 0, false}, {2, 4 * gb, 9.9, -1, 0, false}}},
		{"below the margin under pressure", []step{{1, 4 * gb, 12, -1, 96*gb - 24*gb/10, true}}},
		{"below the floor", []step{{1, 12 * gb / 10, 0, -1, 96*gb - 52*gb/10, true}, {2, 64 * gb / 10, 0, -1, 0, false}}},
		{"the cache is not full yet", []step{{1, 12 * gb / 10, 0, 50 * gb, 50*gb - 52*gb/10, true}}},
		{"nothing left to give: said once", []step{{1, 1, 0, 3 * gb, 1 * gb, true}, {2, 1, 0, -1, 0, true}, {3, 1, 0, -1, 0, false}}},
		{"back, slowly", []step{
			{1, 12 * gb / 10, 0, -1, 96*gb - 52*gb/10, true},
			{2, 30 * gb, 0, -1, 0, false},  // plenty since here
			{40, 30 * gb, 0, -1, 0, false}, // too soon after shrinking
			{121, 30 * gb, 0, -1, 96 * gb, true},
		}},
		{"in steps", []step{
			{1, 1, 0, 40 * gb, 40*gb - 64*gb/10 + 1, true},
			{150, 60 * gb, 0, -1, 0, false},
			{181, 60 * gb, 0, -1, 40*gb - 64*gb/10 + 1 + 6*gb, false},
			{182, 60 * gb, 0, -1, 0, false},
			{212, 60 * gb, 0, -1, 40*gb - 64*gb/10 + 1 + 12*gb, false},
		}},
		{"plenty must last", []step{
			{1, 1, 0, 40 * gb, 40*gb - 64*gb/10 + 1, true},
			{150, 60 * gb, 0, -1, 0, false},
			{170, 8 * gb, 0, -1, 0, false},
			{181, 60 * gb, 0, -1, 0, false},
			{200, 60 * gb, 2, -1, 0, false},
			{215, 60 * gb, 0, -1, 0, false},
			{240, 60 * gb, 0, -1, 0, false},
			{246, 60 * gb, 0, -1, 40*gb - 64*gb/10 + 1 + 6*gb, false},
		}},
		{"what is promised to the cache is not plenty", []step{
			{1, 1, 0, 40 * gb, 40*gb - 64*gb/10 + 1, true},
			{150, 40 * gb, 0, 1 * gb, 0, false},
			{200, 40 * gb, 0, 1 * gb, 0, false},
		}},
	}
	for _, c := range cases {
		g := Governor{Cache: b.Most, Base: full}
		for _, s := range c.steps {
			held := s.held
			if held < 0 {
				held = g.Cache
			}
			r := Reading{Total: full.Total, Available: s.avail, Own: full.Own, Pressure: s.pressure}
			before := g.Cache
			next, n, change, say := g.Decide(b, r, held, start.Add(time.Duration(s.at)*time.Second))
			if change != (s.to != 0) || say != s.say {
				t.Fatalf("%s, second %d: change %v, say %v: %s", c.name, s.at, change, say, n)
			}
			if want := s.to; want != 0 && (next.Cache != want || n.To != want || n.From != before) {
				t.Fatalf("%s, second %d: from %d to %d, want %d: %s", c.name, s.at, n.From, n.To, want, n)
			}
			g = next
		}
	}
}

func TestNotices(t *testing.T) {
	g := Governor{Cache: 96 * gb, Base: Reading{Available: 10 * gb, Own: 100 * gb}}
	r := Reading{Total: 128 * gb, Available: 12 * gb / 10, Own: 100*gb - 2*gb/10}
	_, n, _, _ := g.Decide(Bounds{gb, 96 * gb}, r, 96*gb, time.Unix(0, 0))
	if got, want := n.String(), "Only 1.2 GB RAM left (another program took 9.0 GB). Expert cache cut from 96 GB to 91 GB."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	n = Notice{From: 84 * gb, To: 96 * gb, Available: 25 * gb}
	if got, want := n.String(), "25 GB RAM left. Expert cache grown from 84 GB to 96 GB."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	n = Notice{From: gb, To: gb, Available: 1000, Short: true}
	if got := n.String(); !strings.Contains(got, "as small as it can be") || strings.Contains(got, "another program") {
		t.Errorf("%q", got)
	}
}

// TestWatch: readings become resizes and notices, failures are told and survived,
// and the end of the context ends it.
func TestWatch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	type reading struct {
		available int64
		err       error
	}
	script := make(chan reading, 1)
	tick, done := make(chan time.Time), make(chan struct{})
	var sizes []int64
	var notices, failures int
	go func() {
		defer close(done)
		Watch(ctx, Config{
			Governor: Governor{Cache: 96 * gb, Base: Reading{Available: 8 * gb}}, Bounds: Bounds{gb, 96 * gb}, Tick: tick,
			Read: func() (Reading, error) {
				r := <-script
				return Reading{Total: 128 * gb, Available: r.available}, r.err
			},
			Held: func() int64 { return 96 * gb },
			Resize: func(n int64) error {
				sizes = append(sizes, n)
				if len(sizes) == 2 {
					return errors.New("the system keeps its memory")
				}
				return nil
			},
			Notice: func(Notice) { notices++ },
			Failed: func(error) { failures++ },
		})
	}()
	for i, r := range []reading{{8 * gb, nil}, {gb, nil}, {0, errors.New("no such file")}, {2 * gb, nil}, {7 * gb, nil}} {
		script <- r
		tick <- time.Unix(int64(i), 0)
	}
	cancel()
	<-done
	if want := []int64{96*gb - 54*gb/10, 96*gb - 54*gb/10 - 44*gb/10}; !slices.Equal(sizes, want) || notices != 2 || failures != 2 {
		t.Errorf("sizes %v, want %v; %d notices, %d failures, want 2 and 2", sizes, want, notices, failures)
	}
}

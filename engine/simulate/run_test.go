package simulate

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// quick is a run of a few layers.
func quick(t *testing.T, name string, edit func(*Machine), o Options) *Result {
	t.Helper()
	m, err := Example(name)
	if err != nil {
		t.Fatal(err)
	}
	if edit != nil {
		edit(m)
	}
	o.Layers, o.Tokens, o.Warm = 8, 12, 24
	r, err := Decode(t.Context(), m, K3(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestRunsAreFunctionsOfTheirInput: equal runs are equal to the nanosecond.
func TestRunsAreFunctionsOfTheirInput(t *testing.T) {
	a, b := quick(t, "m5max", nil, Options{}), quick(t, "m5max", nil, Options{})
	if !reflect.DeepEqual(a, b) {
		t.Errorf("two runs differ:\n%+v\n%+v", a, b)
	}
	if c := quick(t, "m5max", nil, Options{Seed: 7}); c.Elapsed == a.Elapsed {
		t.Errorf("another seed gave the same time, %v", c.Elapsed)
	}
}

// TestNothingIsLost: uses, time and bytes add up, and drives obey their limits.
func TestNothingIsLost(t *testing.T) {
	for _, name := range Examples() {
		r := quick(t, name, nil, Options{})
		if want := int64(12 * 8 * 16); r.Counts.Uses() != want {
			t.Errorf("%s: %d uses, want %d", name, r.Counts.Uses(), want)
		}
		sum := r.Compute + r.Memory + r.Streaming + r.Stall
		if d := (r.Elapsed - sum).Abs(); d > r.Elapsed/1000 {
			t.Errorf("%s: the parts are %v of %v", name, sum, r.Elapsed)
		}
		m, _ := Example(name)
		if rate := float64(r.Read) / (r.Elapsed.Seconds() * r.Factor); rate > 1.02*m.Rate() {
			t.Errorf("%s: drives of %.1f GB/s gave %.1f", name, m.Rate()/1e9, rate/1e9)
		}
		if waste := float64(r.Counts.Wasted) / float64(r.Counts.Useful); waste > 0.05 {
			t.Errorf("%s: %.1f %% read in vain", name, 100*waste)
		}
	}
}

// TestPartsMatter: a machine is faster with more of what holds it back.
func TestPartsMatter(t *testing.T) {
	base := quick(t, "m5max", nil, Options{}).Rate()
	for what, r := range map[string]*Result{
		"twice the drives": quick(t, "m5max", func(m *Machine) { m.Drives = append(m.Drives, m.Drives...) }, Options{}),
		"twice the memory": quick(t, "m5max", func(m *Machine) { m.RAM *= 2 }, Options{}),
	} {
		if r.Rate() < 1.1*base {
			t.Errorf("%s: %.2f tokens/s after %.2f", what, r.Rate(), base)
		}
	}
	for what, r := range map[string]*Result{
		"a hub": quick(t, "m5max", func(m *Machine) {
			m.Hubs = []Hub{{"left", 7e9}}
			m.Drives[1].Hub, m.Drives[2].Hub = "left", "left"
		}, Options{}),
		"no lookahead": quick(t, "m5max", nil, Options{NoAhead: true}),
		"flat routing": quick(t, "m5max", nil, Options{Router: generator(t, Flat)}),
		"bf16":         quick(t, "m5max", func(m *Machine) { m.Int8 = false }, Options{}),
	} {
		if r.Rate() >= base {
			t.Errorf("%s: %.3f tokens/s, no less than %.3f", what, r.Rate(), base)
		}
	}
}

func generator(t *testing.T, f Fit) *Generator {
	g, err := NewGenerator(K3().Experts, f, 0)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestPrompts: a pass reads each expert at most once, and a long prompt pays for
// what its rows look back on.
func TestPrompts(t *testing.T) {
	m, err := Example("pc192")
	if err != nil {
		t.Fatal(err)
	}
	model := K3()
	one, err := Prefill(t.Context(), m, model, 512, Options{Layers: 4})
	if err != nil {
		t.Fatal(err)
	}
	all := float64(4 * 896 * model.Experts.Bytes)
	if got := float64(one.Read); got > 1.001*all || got < 0.8*all {
		t.Errorf("512 rows read %.1f GB of %.1f", got/1e9, all/1e9)
	}
	long, err := Prefill(t.Context(), m, model, 8192, Options{Layers: 4, Passes: 1})
	if err != nil {
		t.Fatal(err)
	}
	if long.Elapsed <= 16*one.Elapsed*9/10 || long.Compute <= 16*one.Compute {
		t.Errorf("16 passes take %v, %v of it arithmetic; one takes %v, %v", long.Elapsed, long.Compute, one.Elapsed, one.Compute)
	}
}

// TestEndsEarly: a cancelled run gives its memory back and says why.
func TestEndsEarly(t *testing.T) {
	m, err := Example("laptop64")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Decode(ctx, m, K3(), Options{Layers: 4, Tokens: 50, Progress: func(done, _ int) {
		if done == 3 {
			cancel()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled run gave %v", err)
	}
}

// TestNonsenseIsRefused: each with the key that is wrong.
func TestNonsenseIsRefused(t *testing.T) {
	const good = "ram = \"64GiB\"\nram_bandwidth = \"90GB/s\"\ngflops = 500\n[[drive]]\nname = \"a\"\nrate = \"6GB/s\"\n"
	if _, err := ReadMachine(strings.NewReader(good)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"gflops = 500", "gflops = -5", "gflops"},
		{"gflops = 500", "gflops = 0", "gflops"},
		{"gflops = 500", "gflops = nan", "gflops"},
		{"gflops = 500", "gflops = 1e12", "gflops"},
		{"gflops = 500", "gigaflops = 500", "gigaflops"},
		{"64GiB", "0GB", "ram"},
		{"64GiB", "-3GB", "ram"},
		{"64GiB", "9000TB", "ram"},
		{"90GB/s", "90GB", "ram_bandwidth"},
		{"90GB/s", "1B/s", "ram_bandwidth"},
		{"6GB/s", "0GB/s", "drive a"},
		{"6GB/s", "900GB/s", "drive a"},
		{"rate = ", "hub = \"x\"\nrate = ", "hub x"},
		{"rate = ", "latency_us = -1\nrate = ", "latency"},
		{"rate = ", "speed = 1\nrate = ", "speed"},
		{"[[drive]]", "[[disk]]", "disk"},
		{"gflops = 500", "gflops = 500\ntrunk = \"int4\"", "trunk"},
		{"gflops = 500", "gflops = 500\noverlap = -1", "overlap"},
		{"gflops = 500", "gflops = 500\nreserve = \"64GiB\"", "reserve"},
		{good, "ram = [", "machine"},
	} {
		_, err := ReadMachine(strings.NewReader(strings.Replace(good, c.old, c.new, 1)))
		if !errors.Is(err, ErrMachine) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q for %q: %v, want a word of %s", c.new, c.old, err, c.want)
		}
	}
	small := strings.NewReader(strings.Replace(good, "64GiB", "9GiB", 1))
	m, err := ReadMachine(small)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Decode(t.Context(), m, K3(), Options{Layers: 4}); !errors.Is(err, ErrMemory) {
		t.Errorf("9 GiB for K3: %v", err)
	}
}

// TestStreamedTrunkTakesTheDrives: what memory has no room for is read for every token,
// from the first drive, beside the experts and not beyond its rate, and reads ahead of
// its use.
func TestStreamedTrunkTakesTheDrives(t *testing.T) {
	edit := func(m *Machine) {
		m.Int8, m.RAM = false, 64<<30
		m.Drives = append(m.Drives, Drive{Name: "second", Rate: m.Drives[0].Rate, Latency: m.Drives[0].Latency})
	}
	r := quick(t, "laptop64", edit, Options{})
	m, _ := Example("laptop64")
	per := float64(r.Streamed)
	if per < 40e9 || r.Streaming == 0 {
		t.Fatalf("%.1f GB are streamed for a token, %v is waited for them", per/1e9, r.Streaming)
	}
	experts := float64(r.Counts.Useful + r.Counts.Wasted)
	trunk := float64(r.Read) - experts
	// A layer more or less is on its way at the ends.
	if got := trunk / r.Factor / float64(r.Tokens); got < 0.95*per || got > 1.05*per {
		t.Errorf("%.1f GB of trunk are read for a token, %.1f are streamed", got/1e9, per/1e9)
	}
	first := float64(r.Drives[0].Read)
	if first < trunk {
		t.Errorf("the first drive gave %.1f GB, the trunk is %.1f", first/1e9, trunk/1e9)
	}
	rate := first / r.Factor / r.Elapsed.Seconds()
	if ceiling := m.Drives[0].Rate; rate > 1.01*ceiling || rate < 0.9*ceiling {
		t.Errorf("the first drive gave %.2f GB/s of %.2f", rate/1e9, ceiling/1e9)
	}
	if prompt, err := Prefill(t.Context(), m, K3(), 64, Options{Layers: 4}); err != nil || prompt.Streaming > prompt.Elapsed {
		t.Errorf("a prompt: %+v, %v", prompt, err)
	}
}

package main

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deltafin/engine/simulate"
	"deltafin/ssdio"
)

// TestSimulateSaysWhatItAssumes: a quick run, for people and for programs.
func TestSimulateSaysWhatItAssumes(t *testing.T) {
	code, out, errs := program(t, "", "simulate", "laptop64", "--layers", "4", "--tokens", "5", "--warm", "2")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	for _, want := range []string{"tokens/s", "Assumptions", "routing is generated", "4 layers stand for all"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	code, out, errs = program(t, "", "simulate", "laptop64", "--layers", "4", "--tokens", "5", "--warm", "2", "--json")
	var got struct {
		Tokens      int      `json:"tokens"`
		Rate        float64  `json:"tokens_per_second"`
		Read        float64  `json:"read_bytes_per_token"`
		Assumptions []string `json:"assumptions"`
	}
	if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil || got.Tokens != 5 || got.Rate <= 0 || got.Read <= 0 || len(got.Assumptions) == 0 {
		t.Errorf("exit %d, %v, %s: %s", code, err, errs, out)
	}
}

// TestTrunkOfAMachine: --trunk takes the place of what the machine says.
func TestTrunkOfAMachine(t *testing.T) {
	bytes := map[string]int64{}
	for _, form := range []string{"", "bf16", "int8"} {
		code, out, errs := program(t, "", "simulate", "pc192", "--layers", "4", "--tokens", "3", "--warm", "1", "--json", "--trunk", form)
		var got struct {
			Trunk int64 `json:"trunk_bytes"`
		}
		if err := json.Unmarshal([]byte(out), &got); code != exitDone || err != nil || got.Trunk <= 0 {
			t.Fatalf("--trunk %q: exit %d, %v, %s: %s", form, code, err, errs, out)
		}
		bytes[form] = got.Trunk
	}
	if ratio := float64(bytes["bf16"]) / float64(bytes["int8"]); ratio < 1.8 || ratio > 2 || bytes[""] != bytes["int8"] && bytes[""] != bytes["bf16"] {
		t.Errorf("trunk of %v bytes", bytes)
	}
}

// TestPlanRefusesNonsense: with the key that is wrong, before anything is simulated.
func TestPlanRefusesNonsense(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.toml")
	if err := os.WriteFile(bad, []byte("ram = \"64GiB\"\nram_bandwidth = \"90GB/s\"\ngflops = -1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"plan", bad}, "gflops"},
		{[]string{"plan", "abacus"}, "m5max"},
		{[]string{"plan"}, "one machine"},
		{[]string{"plan", "--this", "m5max"}, "two machines"},
		{[]string{"plan", "m5max", "--drive", "."}, "--this"},
		{[]string{"plan", "m5max", "--trunk", "fp8"}, "bf16 or int8"},
		{[]string{"simulate", "--check", "--trunk", "int8"}, "--trunk"},
		{[]string{"simulate", bad}, "gflops"},
		{[]string{"simulate", "--check", "m5max"}, "m5max"},
		{[]string{"simulate", "--check", "--layers", "4"}, "--layers"},
		{[]string{"simulate", "--check", "--scratch", bad}, "no folder"},
		{[]string{"simulate", "m5max", "--scratch", "."}, "--check"},
		{[]string{"simulate", "m5max", "--recall", "2"}, "--recall"},
		{[]string{"simulate", "m5max", "--expert-cache", "1KB", "--layers", "4"}, "1000"},
	} {
		code, _, errs := program(t, "", c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, want a word of %q:\n%s", c.args, code, c.want, errs)
		}
	}
}

// TestMeasuredDrivesAreDescribed: their rates and latencies, and a hub where all
// together give less than each alone.
func TestMeasuredDrivesAreDescribed(t *testing.T) {
	drive := func(name string, together float64, company ...string) *ssdio.Drive {
		return &ssdio.Drive{ID: name, Name: name, Profile: &ssdio.Profile{
			Points: []ssdio.Point{
				{Size: 2e6, Depth: 1, Rate: 1.5e9, P50: 1200 * time.Microsecond},
				{Size: 2e5, Depth: 1, Rate: 1e9, P50: 190 * time.Microsecond},
				{Size: 2e6, Depth: 8, Rate: 2e9, P50: 8 * time.Millisecond},
			},
			Best: ssdio.Point{Size: 2e6, Depth: 8, Rate: 2e9}, Together: together, Company: company,
		}}
	}
	for _, c := range []struct {
		set  *driveSet
		hubs int
	}{
		{&driveSet{drives: []*ssdio.Drive{drive("a", 0)}}, 0},
		{&driveSet{drives: []*ssdio.Drive{drive("a", 1.98e9, "b"), drive("b", 1.98e9, "a")}}, 0},
		{&driveSet{drives: []*ssdio.Drive{drive("a", 1.2e9, "b"), drive("b", 1.2e9, "a")}}, 1},
	} {
		m := simulate.Machine{RAM: 64 << 30, Bandwidth: 5e10, Gflops: 100}
		describeDrives(&m, c.set)
		if err := m.Check(); err != nil {
			t.Fatal(err)
		}
		if len(m.Hubs) != c.hubs || len(m.Drives) != len(c.set.drives) || m.Drives[0].Rate != 2e9 {
			t.Errorf("described as %+v", m)
		}
		if got := m.Drives[0].Latency; math.Abs(got-90e-6) > 1e-9 {
			t.Errorf("a latency of %g s, want 90 us", got)
		}
		if c.hubs == 1 && m.Rate() != 2.4e9 {
			t.Errorf("together they give %g B/s, want 2.4e9", m.Rate())
		}
	}
}

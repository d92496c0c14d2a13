package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
		{[]string{"simulate", bad}, "gflops"},
		{[]string{"simulate", "m5max", "--recall", "2"}, "--recall"},
		{[]string{"simulate", "m5max", "--expert-cache", "1KB", "--layers", "4"}, "1000"},
	} {
		code, _, errs := program(t, "", c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) {
			t.Errorf("%v: exit %d, want a word of %q:\n%s", c.args, code, c.want, errs)
		}
	}
}

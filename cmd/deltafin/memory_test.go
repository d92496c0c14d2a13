package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/engine/memory"
	"deltafin/session/paths"
)

// TestAskWithinMemory: with a budget the answer is the same, the plan is printed at
// the start, and the heat is kept for the next run.
func TestAskWithinMemory(t *testing.T) {
	home := t.TempDir()
	t.Setenv(paths.HomeVar, home)
	t.Setenv("GOGC", "100") // the collector of this process is left alone
	t.Setenv("GOMEMLIMIT", "off")
	for range 2 {
		code, out, errs := program(t, "", "ask", "--greedy", "--effort", "low", "--memory", "2GiB", "--context", "500", "--stats", "hello")
		if code != exitDone || out != helloAnswer+"\n" {
			t.Fatalf("exit %d, output %q\n%s", code, out, errs)
		}
		for _, want := range []string{"of 2.1 GB (named with --memory, free are ", "how counted", "500 tokens, set with --context", "448 of 448 fit", "hit rate"} {
			if !strings.Contains(errs, want) {
				t.Errorf("standard error lacks %q:\n%s", want, errs)
			}
		}
	}
	if heat, err := os.ReadDir(filepath.Join(home, "state", "heat")); err != nil || len(heat) != 1 {
		t.Errorf("%v %v", heat, err)
	}
}

// TestNoRoomForHeat: an answer does not suffer from it, and the person hears of it.
func TestNoRoomForHeat(t *testing.T) {
	home := t.TempDir()
	t.Setenv(paths.HomeVar, home)
	if err := os.MkdirAll(filepath.Join(home, "state"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "state", "heat"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := program(t, "", "ask", "--greedy", "--effort", "low", "--cache", "2MiB", "hello")
	if code != exitDone || out != helloAnswer+"\n" || !strings.Contains(errs, "could not be kept for the next run") {
		t.Errorf("exit %d, output %q\n%s", code, out, errs)
	}
}

func TestMemoryPlan(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	code, out, errs := program(t, "", "memory", "--memory", "1GiB", "--json")
	var p memory.Plan
	if err := json.Unmarshal([]byte(out), &p); code != exitDone || err != nil {
		t.Fatalf("exit %d, %v: %s%s", code, err, out, errs)
	}
	if p.Budget != 1<<30 || p.Total() > p.Budget || p.Slots != 448 || p.Context != 8192 || p.Rows != 512 {
		t.Errorf("%+v", p)
	}
	code, out, _ = program(t, "", "memory")
	if code != exitDone || !strings.Contains(out, "all 448, mapped") || !strings.Contains(out, "are left to the system") {
		t.Errorf("exit %d: %s", code, out)
	}
	code, out, _ = program(t, "", "memory", "--memory", "1GiB", "--draft", "auto", "--json")
	var d memory.Plan
	if err := json.Unmarshal([]byte(out), &d); code != exitDone || err != nil || d.Drafts <= 0 || d.State != p.State+d.Drafts || p.Drafts != 0 {
		t.Errorf("exit %d, %v: drafts take %d bytes of %d, without them it was %d", code, err, d.Drafts, d.State, p.State)
	}
	if _, out, _ = program(t, "", "memory", "--memory", "1GiB", "--draft", "auto"); !strings.Contains(out, memory.Text(d.Drafts)+" of it are for --draft") {
		t.Error(out)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--memory 1GiB --draft perhaps", exitUsage, "auto or off"},
		{"--memory 10MB", exitMemory, "this plan needs "},
		{"--memory 10MB", exitMemory, "give --memory more"},
		{"--memory 900TB", exitMemory, "start with --memory "},
		{"--memory 0", exitUsage, "above zero"},
		{"--memory lots", exitUsage, "not a size"},
		{"--memory 1GiB --context 0", exitUsage, "--context 0"},
		{"--cache 10kB", exitMemory, "is too small"},
	} {
		for _, command := range []string{"memory", "ask --greedy hello"} {
			code, _, errs := program(t, "", append(strings.Fields(command), strings.Fields(c.args)...)...)
			if code != c.code || !strings.Contains(errs, c.text) {
				t.Errorf("%s %s: exit %d, want %d with %q:\n%s", command, c.args, code, c.code, c.text, errs)
			}
		}
	}
}

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTraceReplayPrintsHitRates(t *testing.T) {
	text := "turn,phase,step,layer,slot,expert\n"
	for step := range 8 { // two experts, then two others, again and again
		text += fmt.Sprintf("0,1,%d,0,0,%d\n0,1,%d,0,1,%d\n", step, step%2*2, step, step%2*2+1)
	}
	good := filepath.Join(t.TempDir(), "routes.csv")
	if err := os.WriteFile(good, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	code, out, errs := program(t, "", "trace", "replay", "--tokens", "1,2", good)
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if want := "8 tokens, 16 uses, 2 experts of 1 layers a token"; !strings.Contains(out, want) {
		t.Errorf("lacks %q:\n%s", want, out)
	}
	// Room for two of the four that come round: LRU never hits, the policy keeps
	// two and hits every other token but the first. Room for four: all hit but the
	// first of each.
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, want := range [][]string{{"1", "2", "0.0", "", "37.5", "37.5"}, {"2", "4", "75.0", "75.0", "75.0", "75.0"}} {
		got := strings.Fields(lines[len(lines)-2+i])
		for k, w := range want {
			if k >= len(got) || w != "" && got[k] != w {
				t.Errorf("row %q, want %q", got, want)
				break
			}
		}
	}
	bad := filepath.Join(t.TempDir(), "bad.csv")
	if err := os.WriteFile(bad, []byte(text+"0,1,2,0,0,x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"", exitUsage, "no trace was named"},
		{bad, exitError, "line 18"},
		{"--tokens -1 " + good, exitUsage, "--tokens"},
		{"--half-life 0 " + good, exitUsage, "--half-life"},
		{filepath.Join(t.TempDir(), "absent"), exitUsage, "absent"},
	} {
		code, _, errs := program(t, "", append([]string{"trace", "replay"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.text, errs)
		}
	}
}

// TestAskRecordsRoutes: a recording can be replayed, is not written over, and a place
// where none can be is refused before anything is computed.
func TestAskRecordsRoutes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "routes.csv")
	code, _, errs := program(t, "", "ask", "--greedy", "-n", "6", "--trace-routes", file, "What is Deltafin?")
	if code != exitDone || !strings.Contains(errs, "routes recorded in "+file) {
		t.Fatalf("exit %d: %s", code, errs)
	}
	code, out, errs := program(t, "", "trace", "replay", file)
	if code != exitDone || !strings.Contains(out, "28 experts of 8 layers a token") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	code, out, errs = program(t, "", "ask", "--greedy", "--trace-routes", file, "What is Deltafin?")
	if code != exitUsage || out != "" || !strings.Contains(errs, "the file exists") {
		t.Errorf("a second recording: exit %d: %s%s", code, out, errs)
	}
	code, out, errs = program(t, "", "ask", "--trace-routes", filepath.Join(file, "x"), "What?")
	if code != exitUsage || out != "" || !strings.Contains(errs, "--trace-routes") {
		t.Errorf("no such folder: exit %d: %s%s", code, out, errs)
	}
}

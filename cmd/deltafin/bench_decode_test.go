package main

import (
	"encoding/json"
	"strings"
	"testing"

	"deltafin/session/paths"
)

// benchJSON runs a benchmark of the demonstration model on two emulated drives.
func benchJSON(t *testing.T, name string, more ...string) map[string]benchRow {
	t.Helper()
	t.Setenv(paths.HomeVar, t.TempDir())
	args := append([]string{"bench", name, "--json", "--cache", "2MiB", "--drive", t.TempDir() + ",name=a,limit=100MB/s",
		"--drive", t.TempDir() + ",name=b,limit=150MB/s"}, more...)
	code, out, errs := program(t, "", args...)
	if code != exitDone {
		t.Fatalf("exit %d\n%s", code, errs)
	}
	var r benchReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if r.Bench != name {
		t.Errorf("the report is of %q, want %q", r.Bench, name)
	}
	rows := map[string]benchRow{}
	for _, row := range r.Results {
		rows[row.Name] = row
	}
	return rows
}

// TestBenchDecode: the classes of uses add up, and the limit of reading is that of
// the emulated drives together.
func TestBenchDecode(t *testing.T) {
	rows := benchJSON(t, "decode", "--prompt", "8", "--tokens", "6")
	sum := rows["hit"].Value + rows["in time"].Value + rows["late"].Value + rows["missed"].Value
	if uses := rows["hit"].Limit; uses == 0 || sum != uses {
		t.Errorf("classes add up to %v of %v uses", sum, uses)
	}
	if got := rows["rate of reading"].Limit; got != 250e6 {
		t.Errorf("ceiling %v, want the sum of the limits, 250e6", got)
	}
	if got := rows["overlap efficiency"].Value; !(got > 0) {
		t.Errorf("overlap efficiency %v, want above 0", got)
	}
	if rows["speed"].Value <= 0 || rows["read per token"].Value <= 0 {
		t.Errorf("speed %v and bytes %v of a token, want both above 0", rows["speed"], rows["read per token"])
	}
}

// TestBenchPrefill: what a pass reads is set against the experts it needs. On a toy
// two wrong guesses are a hundredth of all, and how many there are depends on time:
// the bar of 2 % is for models of real size.
func TestBenchPrefill(t *testing.T) {
	row := benchJSON(t, "prefill", "--prompt", "64")["read of the experts needed"]
	if row.Limit == 0 || row.Ratio > 1.25 {
		t.Errorf("read %v GB for experts of %v GB, ratio %v", row.Value, row.Limit, row.Ratio)
	}
}

func TestBenchModelRefusals(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	for _, c := range []struct{ args, text string }{
		{"decode", "needs --cache"},
		{"decode --cache 2MiB --tokens 0", "--tokens 0"},
		{"prefill --cache 2MiB --prompt 0", "--prompt 0"},
		{"prefill --cache 2MiB --drive .,limit=fast", "limit"},
	} {
		code, _, errs := program(t, "", append([]string{"bench"}, strings.Fields(c.args)...)...)
		if code != exitUsage || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", c.args, code, exitUsage, c.text, errs)
		}
	}
}

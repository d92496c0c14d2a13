package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestDoctorSaysWhatItFound, and what it means for the user, without an error for
// what is missing.
func TestDoctorSaysWhatItFound(t *testing.T) {
	t.Setenv("DELTAFIN_HOME", t.TempDir())
	report := func(model string, env map[string]string) string {
		t.Helper()
		var out bytes.Buffer
		if err := doctor(t.Context(), streams{out: &out, outTTY: true}, model, func(k string) string { return env[k] }); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	plain := report("", map[string]string{"NO_COLOR": "1", "LANG": "C", "TERM": "xterm"})
	for _, want := range []string{"arithmetic", "generic", "memory", "none given", "no colours (NO_COLOR)", "nothing; the engine is free"} {
		if !strings.Contains(plain, want) {
			t.Errorf("the report lacks %q:\n%s", want, plain)
		}
	}
	dir := small(t, nil)
	if text := report(dir, map[string]string{"TERM": "dumb"}); !strings.Contains(text, "all files are there") || !strings.Contains(text, "not measured") || !strings.Contains(text, "TERM says it knows nothing") {
		t.Errorf("with a model:\n%s", text)
	}
	if text := report(t.TempDir(), nil); !strings.Contains(text, "config.json") {
		t.Errorf("an empty folder:\n%s", text)
	}
}

package main

import (
	"fmt"
	"strings"
	"testing"

	"deltafin/session/paths"
)

// TestAskStreamsExperts: the demonstration model from four emulated drives with a
// cache of a quarter gives the same answer, and --stats says what it cost.
func TestAskStreamsExperts(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	args := []string{"ask", "--greedy", "--effort", "low", "--cache", "2MiB", "--stats", "hello"}
	for i := range 4 {
		args = append(args, "--drive", fmt.Sprintf("%s,name=d%d,limit=%dMB/s", t.TempDir(), i, 200+50*i))
	}
	code, out, errs := program(t, "", args...)
	if code != exitDone || out != helloAnswer+"\n" {
		t.Fatalf("exit %d, output %q\n%s", code, out, errs)
	}
	for _, want := range []string{"hit rate", "prompt", "answer", "cache: ", "d0 (emulated)", "d3 (emulated)"} {
		if !strings.Contains(errs, want) {
			t.Errorf("standard error lacks %q:\n%s", want, errs)
		}
	}
}

func TestStreamFailuresHaveTheirCodes(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"--stats", exitUsage, "--stats needs --cache"},
		{"--drive .", exitUsage, "--drive needs --cache"},
		{"--cache 0", exitUsage, "above zero"},
		{"--cache much", exitUsage, "not a size"},
		{"--cache 2MiB --drive .,limit=fast", exitUsage, "limit"},
		{"--cache 2MiB --stats --new", exitUsage, "stats"},
		{"--cache 10kB", exitMemory, "is too small"},
		{"--cache 2MiB --drive .,name=left,fault=gone/after=50/count=always", exitDrive, "left"},
		{"--cache 2MiB --drive .,name=left,fault=flip/after=50/count=always", exitDrive, "checksum"},
	} {
		code, _, errs := program(t, "", append([]string{"ask", "--greedy", "hello"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.text, errs)
		}
	}
}

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"deltafin/session/paths"
)

// TestAskDrafts: drafts change no text, say what they did, and a kept answer has them
// as well.
func TestAskDrafts(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	for _, args := range [][]string{{}, {"--cache", "2MiB"}, {"--new"}} {
		args = append([]string{"ask", "--greedy", "--effort", "low", "--draft", "auto"}, args...)
		code, out, errs := program(t, "", append(args, "hello")...)
		if code != exitDone || out != helloAnswer+"\n" || !strings.Contains(errs, "\ndrafts: ") {
			t.Errorf("%v: exit %d, output %q\n%s", args, code, out, errs)
		}
	}
	code, out, _ := program(t, "", "ask", "--greedy", "--json", "--draft", "auto", "hello")
	var sum summary
	if err := json.Unmarshal([]byte(out), &sum); err != nil || code != exitDone || sum.Draft == nil || sum.Draft.Gain <= 0 {
		t.Errorf("exit %d, %v: %s", code, err, out)
	}
	code, out, errs := program(t, "", "ask", "--greedy", "--json", "hello")
	if code != exitDone || strings.Contains(out, `"draft"`) || strings.Contains(errs, "drafts:") {
		t.Errorf("without drafts: exit %d, %s\n%s", code, out, errs)
	}
	if code, _, errs := program(t, "", "ask", "--draft", "maybe", "hello"); code != exitUsage || !strings.Contains(errs, `--draft "maybe"`) {
		t.Errorf("an unknown way: exit %d\n%s", code, errs)
	}
}

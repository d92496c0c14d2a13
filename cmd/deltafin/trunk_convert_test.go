package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/engine"
	"deltafin/engine/trunk"
	"deltafin/session/paths"
	"deltafin/tui"
	"deltafin/tui/pane"
)

// convertDemo makes the int8 trunk of the demonstration model and returns its file.
func convertDemo(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if code, out, errs := program(t, "", "trunk", "convert", "--to", dir); code != exitDone {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	return filepath.Join(dir, trunk.Int8Name)
}

// TestTrunkConvert: the trunk is converted once, where there is a place for it, and
// what is printed says how large the errors are.
func TestTrunkConvert(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	for _, args := range []string{"ask --trunk int8 hello", "trunk verify", "logits --trunk int8 --ids 1,2 --out x"} {
		code, out, errs := program(t, "", strings.Fields(args)...)
		if code != exitNoModel || out != "" || !strings.Contains(errs, "deltafin trunk convert --to DIR") {
			t.Errorf("%s: exit %d: %s%s", args, code, out, errs)
		}
	}
	if code, _, errs := program(t, "", "memory", "--trunk", "int8"); code != exitDone || errs != "" {
		t.Errorf("a plan before there is a file: exit %d: %s", code, errs)
	}
	file := convertDemo(t)
	dir := filepath.Dir(file)
	for _, c := range []struct {
		args string
		want []string
	}{
		{"trunk convert --to " + dir, []string{"was there already", engine.Int8Label}},
		{"trunk convert --again --to " + dir, []string{"converted in", file, "KDA attention", "rms error", "router"}},
		{"trunk verify", []string{file, engine.Int8Label, "every block is as it was written"}},
		{"inspect", []string{file, engine.Int8Label, "largest error", "KDA attention"}},
		{"memory --trunk int8", []string{engine.Int8Label, "read when the model is opened"}},
	} {
		if code, out, errs := program(t, "", strings.Fields(c.args)...); code != exitDone || !contains(out, c.want...) {
			t.Errorf("%s: exit %d, want %q:\n%s%s", c.args, code, c.want, out, errs)
		}
	}
	var r report
	_, out, _ := program(t, "", "inspect", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Int8 == nil || r.Int8.File != file {
		t.Fatalf("%v: %s", err, out)
	}
	for _, c := range r.Int8.Classes {
		if c.Name == "router" != (c.Int8 == 0) || c.Int8 > 0 != (c.Relative > 0.004 && c.Relative < 0.01 && c.MaxError > 0) {
			t.Errorf("%+v", c)
		}
	}
}

func contains(text string, words ...string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// TestTrunkInt8IsLabelled: whatever runs or shows the model says that it is not exact.
func TestTrunkInt8IsLabelled(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	convertDemo(t)
	ask := []string{"ask", "--greedy", "--effort", "low", "--trunk", "int8"}
	for _, more := range []string{"", "--new", "--cache 2MiB --stats", "--memory 2GiB --stats", "--memory 64GB --stats"} {
		code, out, errs := program(t, "", append(append(ask, strings.Fields(more)...), "hello")...)
		if strings.Contains(more, "64GB") && code == exitMemory {
			continue // this machine is smaller
		}
		if code != exitDone || out == "" || !strings.Contains(errs, "It runs with an "+engine.Int8Label) {
			t.Errorf("%q: exit %d: %s%s", more, code, out, errs)
		}
		if strings.Contains(more, "stats") && !strings.Contains(errs, "trunk: "+engine.Int8Label+", all layers in ") {
			t.Errorf("%q: the table does not say it:\n%s", more, errs)
		}
	}
	_, out, _ := program(t, "", append(ask, "--json", "hello")...)
	if m := decode(t, out).Model; m.Trunk != engine.Int8Label || !contains(m.Name+m.Notice, engine.Int8Label) || engine.TrunkOf(m.Arithmetic) != engine.TrunkInt8 {
		t.Errorf("%+v", m)
	}
	_, out, _ = program(t, "", "ask", "--greedy", "--effort", "low", "--json", "hello")
	if m := decode(t, out).Model; m.Trunk != "" || engine.TrunkOf(m.Arithmetic) != engine.TrunkExact {
		t.Errorf("exact: %+v", m)
	}
	_, list, _ := program(t, "", "sessions", "--json")
	var threads []struct{ ID string }
	if err := json.Unmarshal([]byte(list), &threads); err != nil || len(threads) != 1 {
		t.Fatalf("%v: %s", err, list)
	}
	if _, out, errs := program(t, "", "show", threads[0].ID); !strings.Contains(out, engine.Int8Label) {
		t.Errorf("show: %s%s", out, errs)
	}
	_, out, errs := program(t, "", "bench", "decode", "--cache", "2MiB", "--trunk", "int8", "--tokens", "2", "--json")
	if !contains(out, `"trunk":"int8"`, engine.Int8Label) {
		t.Errorf("bench: %s%s", out, errs)
	}
}

// TestTrunkFlagIsChecked: what cannot be is refused, and what would do nothing.
func TestTrunkFlagIsChecked(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	for _, c := range []struct {
		args string
		code int
		text string
	}{
		{"ask --trunk int4 hello", exitUsage, "--trunk"},
		{"memory --trunk fp8", exitUsage, "--trunk"},
		{"queue add --trunk int8 hello", exitUsage, "the queue keeps none"},
		{"trunk", exitUsage, "deltafin trunk convert"},
		{"trunk convert", exitUsage, "name a folder"},
		{"trunk convert --to x --threads 0", exitUsage, "--threads 0"},
		{"trunk convert --model /nowhere/at/all", exitNoModel, "/nowhere/at/all"},
	} {
		if code, _, errs := program(t, "", strings.Fields(c.args)...); code != c.code || !strings.Contains(errs, c.text) {
			t.Errorf("%s: exit %d, want %d with %q:\n%s", c.args, code, c.code, c.text, errs)
		}
	}
}

// TestTrunkFileIsDamaged: a wrong bit is found by verify and never computed with, and
// another conversion mends it; an interrupted one changes nothing.
func TestTrunkFileIsDamaged(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	file := convertDemo(t)
	whole, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	bad := append([]byte(nil), whole...)
	bad[len(bad)/2] ^= 1
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(bad)
	if code, out, _ := program(t, "", "trunk", "verify"); code != exitDrive || !contains(out, "will not be used: 1", "offset ", "--again") {
		t.Errorf("verify: exit %d: %s", code, out)
	}
	for _, more := range []string{"", "--cache 2MiB"} {
		args := append([]string{"ask", "--greedy", "--trunk", "int8", "hello"}, strings.Fields(more)...)
		if code, out, errs := program(t, "", args...); code == exitDone || out != "" || !strings.Contains(errs, "checksum") {
			t.Errorf("ask %s: exit %d: %s%s", more, code, out, errs)
		}
	}
	write(whole[:len(whole)/2])
	if code, _, errs := program(t, "", "trunk", "verify"); code != exitDrive || !strings.Contains(errs, "damaged") {
		t.Errorf("verify of half a file: exit %d: %s", code, errs)
	}
	if _, out, errs := program(t, "", "inspect"); !strings.Contains(out, "not usable: ") {
		t.Errorf("inspect: %s%s", out, errs)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if code, out, errs := programIn(t, gone, "", "trunk", "convert", "--to", filepath.Dir(file)); code != exitInterrupted || out != "" || !strings.Contains(errs, "nothing was changed") {
		t.Errorf("interrupted: exit %d: %s%s", code, out, errs)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	// A file that does not open is made anew without --again.
	if code, _, errs := program(t, "", "trunk", "convert", "--to", filepath.Dir(file)); code != exitDone {
		t.Errorf("exit %d: %s", code, errs)
	}
	if now, err := os.ReadFile(file); err != nil || string(now) != string(whole) {
		t.Errorf("another conversion made another file (%d and %d bytes): %v", len(now), len(whole), err)
	}
}

// TestResumeFollowsTheTrunk: an answer that was begun with an int8 trunk ends with it,
// as one that was not interrupted, and never with the exact one.
func TestResumeFollowsTheTrunk(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	convertDemo(t)
	ask := []string{"ask", "--greedy", "--effort", "low", "--trunk", "int8", "--json"}
	_, out, _ := program(t, "", append(ask, "hello")...)
	want := decode(t, out)
	_, out, errs := program(t, "", append(ask, "--new", "--max-tokens", "5", "hello")...)
	if got := decode(t, out); len(got.Tokens) != 5 {
		t.Fatalf("%+v\n%s", got, errs)
	}
	if code, out, errs := program(t, "", "resume", "--last", "--trunk", "bf16"); code == exitDone || out != "" || !contains(errs, "--trunk int8", "--trunk bf16") {
		t.Errorf("in the other form: exit %d: %s%s", code, out, errs)
	}
	code, out, errs := program(t, "", "resume", "--last", "--max-tokens", "500", "--json")
	if code != exitDone {
		t.Fatalf("exit %d: %s", code, errs)
	}
	if got := decode(t, out); got.Text != want.Text || !equal(got.Tokens, want.Tokens) || got.Model.Trunk != engine.Int8Label {
		t.Errorf("%q, want %q; %+v", got.Text, want.Text, got.Model)
	}
	// A further question follows too, and may be asked of the exact model.
	_, out, _ = program(t, "", "ask", "--last", "--json", "--max-tokens", "3", "And now?")
	if m := decode(t, out).Model; m.Trunk == "" {
		t.Errorf("%+v", m)
	}
	code, out, errs = program(t, "", "ask", "--last", "--trunk", "bf16", "--json", "--max-tokens", "3", "And now?")
	if code != exitDone || decode(t, out).Model.Trunk != "" || !strings.Contains(errs, "later words may differ") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestScreenSaysInt8: the header says it for as long as the model is open, behind what
// is wrong.
func TestScreenSaysInt8(t *testing.T) {
	t.Setenv(paths.HomeVar, t.TempDir())
	convertDemo(t)
	state, err := stateFolder()
	if err != nil {
		t.Fatal(err)
	}
	o := demoOptions(false, 50)
	o.Trunk, o.DriveState = engine.TrunkInt8, state
	b := newBackend(func(ctx context.Context, _ string) (*desk, error) {
		k := newDesk(streams{})
		return k, k.openDemo(ctx, o)
	})
	b.start(t.Context(), "")
	t.Cleanup(func() {
		if err := b.close().close(0); err != nil {
			t.Error(err)
		}
	})
	label := pane.Mark{Text: engine.Int8Label, Short: engine.Int8Short}
	said := func(s *tui.Sample) {
		t.Helper()
		if n := len(s.Marks); n == 0 || s.Marks[n-1] != label || !strings.Contains(s.Model, label.Text) {
			t.Errorf("%q, %+v", s.Model, s.Marks)
		}
	}
	s := waitFor(t, b, func(s *tui.Sample) bool { return s.State == pane.Idle })
	said(&s)
	if !strings.Contains(s.Notice, label.Text) {
		t.Errorf("%q", s.Notice)
	}
	if err := b.Ask(t.Context(), tui.Question{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	s = waitFor(t, b, func(s *tui.Sample) bool { return s.Answers == 1 && !s.State.Busy() })
	said(&s)
}

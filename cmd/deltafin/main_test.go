package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/checkpoint/checkpointtest"
)

// program runs the whole program in this process, with files for its ends.
func program(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return programIn(t, t.Context(), stdin, args...)
}

func programIn(t *testing.T, ctx context.Context, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	s := streams{in: strings.NewReader(stdin), out: &out, err: &errs, inTTY: stdin == ""}
	code = run(ctx, args, s)
	return code, out.String(), errs.String()
}

// small writes a small valid checkpoint and returns its folder.
func small(t *testing.T, edit func(*checkpoint.Config)) string {
	t.Helper()
	cfg := checkpointtest.Small()
	if edit != nil {
		edit(&cfg)
	}
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, checkpointtest.Options{Config: cfg}, 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

const helloAnswer = "Hello! I am the tiny demo model of Deltafin. Ask me something."

func TestAskAnswersOnStandardOutput(t *testing.T) {
	code, out, errs := program(t, "", "ask", "--greedy", "--effort", "low", "hello")
	if code != exitDone || out != helloAnswer+"\n" {
		t.Errorf("exit %d, output %q", code, out)
	}
	for _, want := range []string{"demonstration model, a toy", "thought for", "tokens/s"} {
		if !strings.Contains(errs, want) {
			t.Errorf("standard error lacks %q:\n%s", want, errs)
		}
	}
	if strings.Contains(errs, "The user says hello.") {
		t.Errorf("the thinking was not folded:\n%s", errs)
	}
	if _, _, errs = program(t, "", "ask", "--greedy", "--effort", "low", "--thinking", "hello"); !strings.Contains(errs, "The user says hello.") {
		t.Errorf("--thinking does not show it:\n%s", errs)
	}
}

func TestAskAppendsStandardInput(t *testing.T) {
	_, both, _ := program(t, "hello", "ask", "--greedy", "--effort", "low", "--json")
	_, alone, _ := program(t, "", "ask", "--greedy", "--effort", "low", "--json", "hello")
	a, b := decode(t, both), decode(t, alone)
	if a.Text != helloAnswer || b.Text != a.Text || len(a.PromptIDs) != len(b.PromptIDs) {
		t.Errorf("from standard input %q, as argument %q", a.Text, b.Text)
	}
	_, joined, _ := program(t, "b", "ask", "--max-tokens", "1", "--raw", "--json", "a")
	if got := decode(t, joined).PromptIDs; len(got) != 3 {
		t.Errorf("%q and %q joined by an empty line gave ids %v", "a", "b", got)
	}
}

func decode(t *testing.T, line string) summary {
	t.Helper()
	var s summary
	if err := json.Unmarshal([]byte(line), &s); err != nil {
		t.Fatalf("not one JSON object: %v\n%s", err, line)
	}
	return s
}

func TestAskJSONHoldsEverything(t *testing.T) {
	code, out, _ := program(t, "", "ask", "--greedy", "--effort", "low", "--json", "hello")
	s := decode(t, out)
	if code != exitDone || s.Text != helloAnswer || s.Thinking != "The user says hello." || s.Finish != "stop" {
		t.Errorf("exit %d: %+v", code, s)
	}
	if !s.Model.Toy || s.Model.Notice == "" || len(s.Model.Fingerprint) != 64 || !s.Sampling.Greedy {
		t.Errorf("model %+v, sampling %+v", s.Model, s.Sampling)
	}
	if s.Counts.Prompt != len(s.PromptIDs) || s.Counts.Generated != len(s.Tokens) || s.Counts.Prefilled != s.Counts.Prompt ||
		s.Timings.Decode <= 0 || s.Timings.PrefillTS <= 0 {
		t.Errorf("counts %+v, timings %+v", s.Counts, s.Timings)
	}
}

func TestAskJSONLTellsAsItHappens(t *testing.T) {
	_, out, _ := program(t, "", "ask", "--greedy", "--effort", "low", "--jsonl", "hello")
	var kinds []string
	var text string
	for line := range strings.Lines(out) {
		var ev struct{ Event, Text string }
		if err := json.Unmarshal([]byte(line), &ev); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if len(kinds) == 0 || kinds[len(kinds)-1] != ev.Event {
			kinds = append(kinds, ev.Event)
		}
		if ev.Event == "ResponseDelta" {
			text += ev.Text
		}
	}
	if text != helloAnswer {
		t.Errorf("the pieces make %q", text)
	}
	if kinds[0] != "prefill" || kinds[len(kinds)-1] != "done" {
		t.Errorf("events %v", kinds)
	}
}

// TestSameSeedSameText: sampled text is a function of the seed, whatever the
// threads.
func TestSameSeedSameText(t *testing.T) {
	ask := func(more ...string) []int {
		args := append([]string{"ask", "--json", "--temperature", "1.5", "--max-tokens", "20", "Tell me a story."}, more...)
		_, out, _ := program(t, "", args...)
		return decode(t, out).Tokens
	}
	a, b, c := ask("--seed", "5"), ask("--seed", "5", "--threads", "1"), ask("--seed", "6")
	if !equal(a, b) {
		t.Errorf("seed 5 gave %v and %v", a, b)
	}
	if equal(a, c) {
		t.Error("seeds 5 and 6 gave the same text")
	}
}

func equal(a, b []int) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// interrupting cancels the program when something of the answer appears.
type interrupting struct {
	bytes.Buffer
	cancel context.CancelFunc
}

func (w *interrupting) Write(p []byte) (int, error) {
	w.cancel()
	return w.Buffer.Write(p)
}

func TestInterruptKeepsWhatWasPrinted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	out := &interrupting{cancel: cancel}
	var errs bytes.Buffer
	code := run(ctx, []string{"ask", "--greedy", "Tell me a story about a fox."}, streams{out: out, err: &errs, inTTY: true})
	if code != exitInterrupted || out.Len() == 0 || !strings.HasSuffix(out.String(), "\n") {
		t.Errorf("exit %d, output %q", code, out.String())
	}
	if !strings.Contains(errs.String(), "interrupted after") {
		t.Errorf("standard error: %s", errs.String())
	}
}

// closed refuses everything that is written to it.
type closed struct{}

func (closed) Write([]byte) (int, error) { return 0, errors.New("broken pipe") }

func TestUnwritableOutputEndsTheRun(t *testing.T) {
	var errs bytes.Buffer
	code := run(t.Context(), []string{"ask", "--greedy", "Tell me a story about a fox."}, streams{out: closed{}, err: &errs, inTTY: true})
	if code != exitError || !strings.Contains(errs.String(), "writing the answer: broken pipe") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

func TestLogitsPrefillAndStepsAgree(t *testing.T) {
	dir := t.TempDir()
	all, step := filepath.Join(dir, "all.f32"), filepath.Join(dir, "step.f32")
	ids := "3843,1351 1355"
	if code, _, errs := program(t, "", "logits", "--ids", ids, "--out", all); code != exitDone {
		t.Fatal(errs)
	}
	if code, _, errs := program(t, "", "logits", "--ids", ids, "--out", step, "--step"); code != exitDone {
		t.Fatal(errs)
	}
	a, err := os.ReadFile(all)
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(step)
	if err != nil {
		t.Fatal(err)
	}
	if len(a) != 3*4096*4 || !bytes.Equal(a, b) {
		t.Errorf("%d and %d bytes, equal %v", len(a), len(b), bytes.Equal(a, b))
	}
	if _, err := os.Stat(all + ".part"); err == nil {
		t.Error("a temporary file was left behind")
	}
}

func TestTokenizeBothWays(t *testing.T) {
	_, ids, _ := program(t, "", "tokenize", "Hello, world!")
	code, text, _ := program(t, "", "tokenize", "--decode", strings.TrimSpace(ids))
	if code != exitDone || text != "Hello, world!\n" {
		t.Errorf("%s decodes to %q", ids, text)
	}
	if _, chat, _ := program(t, "", "tokenize", "--chat", "--effort", "low", "hello"); len(strings.Fields(chat)) != 87 {
		t.Errorf("the prompt of the golden conversation has %d ids, want 87", len(strings.Fields(chat)))
	}
	if _, plain, _ := program(t, "", "tokenize", "<|open|>"); strings.TrimSpace(plain) == "3843" {
		t.Error("a typed marker became a special token")
	}
	if _, special, _ := program(t, "", "tokenize", "--special", "<|open|>"); strings.TrimSpace(special) != "3843" {
		t.Errorf("--special gave %s", special)
	}
}

func TestInspectPrintsTheFigures(t *testing.T) {
	dir := t.TempDir()
	config, err := os.ReadFile(filepath.Join("..", "..", "engine", "checkpoint", "testdata", "official-config.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := program(t, "", "inspect", "--model", dir)
	if code != exitDone {
		t.Fatal(errs)
	}
	// Spec 2.4 and 4.
	for _, want := range []string{"1,446,456,066,048", "24,310,185,984", "9,454,620,672", "1,182,074,880", "61,258,257,408",
		"11,145,412,608", "1,453,326,336", "2,348,810,240", "8,042,496", "113,509,540,864", "894,717,952", "1,560,860,324,864",
		"25,829,572,608", "17,547,264", "497,220", "93 layers: 69 KDA, 24 MLA; 1 dense, 92 with 16 of 896"} {
		if !strings.Contains(out, want) {
			t.Errorf("the report lacks %s", want)
		}
	}
	for line := range strings.Lines(out) {
		if len(line) > 81 && !strings.Contains(line, dir) {
			t.Errorf("a line of %d columns: %s", len(line), line)
		}
	}
	_, out, _ = program(t, "", "inspect", "--json")
	var r report
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Notice == "" || r.Layers.Count != 8 || r.Total.Bytes != 13028416 {
		t.Errorf("%v: %s", err, out)
	}
}

func TestManAndCompletion(t *testing.T) {
	if _, out, _ := program(t, "", "man"); !strings.HasPrefix(out, ".nh") && !strings.Contains(out, ".TH") {
		t.Errorf("no manual page: %.80s", out)
	}
	if code, out, _ := program(t, "", "completion", "bash"); code != exitDone || !strings.Contains(out, "deltafin") {
		t.Errorf("no completion: exit %d", code)
	}
}

func TestStatusLineIsSafeAndShort(t *testing.T) {
	if got := printable("a\x1b[2Jb\u009bc\td\n\x7f"); got != "a\u241b[2Jb\ufffdc\td\n\u2421" {
		t.Errorf("printable gives %q", got)
	}
	for d, want := range map[float64]string{0.25: "250 ms", 5.04: "5.0 s", 75: "1m15s", 3700: "1h01m"} {
		if got := duration(secs(d)); got != want {
			t.Errorf("%v s prints as %q, want %q", d, got, want)
		}
	}
	if rate(5, 0) != 0 || math.Abs(rate(10, secs(2))-5) > 1e-9 {
		t.Error("rate")
	}
}

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deltafin/engine/checkpoint"
	"deltafin/engine/checkpoint/checkpointtest"
)

func secs(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// TestBadInputEndsWithOneLine: whatever is wrong with the model or the command
// line, the program says what and where in one line, exits with the code of the
// table, and shows no stack trace.
func TestBadInputEndsWithOneLine(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	shard := checkpointtest.ShardName
	layers := checkpointtest.Small().Layers
	third := shard(3, layers+1)
	broken := func(do func(dir string) error) func() string {
		return func() string {
			dir := small(t, nil)
			must(do(dir))
			return dir
		}
	}
	config := func(key string, value any) func() string {
		return broken(func(dir string) error {
			return checkpointtest.EditConfig(dir, func(text, _ map[string]any) { text[key] = value })
		})
	}
	cases := []struct {
		name  string
		dir   func() string // "" for the demonstration model
		args  []string
		code  int
		wants []string
	}{
		{"no such folder", func() string { return filepath.Join(t.TempDir(), "nothing") }, nil, exitNoModel, []string{"nothing"}},
		{"empty folder", t.TempDir, nil, exitNoModel, []string{"config.json"}},
		{"missing shard", broken(func(d string) error { return checkpointtest.Remove(d, third) }), nil, exitNoModel, []string{third}},
		{"missing tensor", broken(func(d string) error {
			return checkpointtest.DropTensor(d, third, "language_model.model.layers.2.input_layernorm.weight")
		}), nil, exitError, []string{"model.safetensors.index.json", "layers.2.input_layernorm.weight", "missing"}},
		{"wrong dtype", broken(func(d string) error {
			return checkpointtest.EditHeader(d, third, func(h checkpointtest.Header) {
				h["language_model.model.layers.2.input_layernorm.weight"]["dtype"] = "I16"
			})
		}), nil, exitError, []string{"layers.2.input_layernorm.weight", "I16", "BF16"}},
		{"wrong shape", config("hidden_size", 64), nil, exitError, []string{"48", "64"}},
		{"truncated file", broken(func(d string) error { return checkpointtest.Truncate(d, third, 1000) }), nil, exitError, []string{third}},
		{"index points outside", broken(func(d string) error {
			return checkpointtest.EditIndex(d, func(w map[string]any) { w["language_model.lm_head.weight"] = "../../secret.safetensors" })
		}), nil, exitError, []string{"../../secret.safetensors"}},
		{"another architecture", config("model_type", "llama"), nil, exitError, []string{"model_type", "llama", "kimi_linear"}},
		{"unknown activation", config("hidden_act", "gelu"), nil, exitError, []string{"hidden_act", "gelu", "situ"}},
		{"empty prompt", nil, []string{"ask", "  "}, exitUsage, []string{"nothing was asked"}},
		{"prompt longer than the context", func() string {
			return small(t, func(c *checkpoint.Config) { c.MaxContext = 16 })
		}, []string{"ask", "a question that is longer than sixteen bytes"}, exitUsage, []string{"context of this model is 16", "tokens"}},
		{"max-tokens 0", nil, []string{"ask", "--max-tokens", "0", "hello"}, exitUsage, []string{"--max-tokens 0"}},
		{"max-tokens below", nil, []string{"ask", "--max-tokens", "-3", "hello"}, exitUsage, []string{"--max-tokens -3"}},
		{"id out of range", nil, []string{"logits", "--ids", "1,2,4096", "--out", "x"}, exitUsage, []string{"4096", "position 2", "0 to 4095"}},
		{"negative id", nil, []string{"logits", "--ids", "-1", "--out", "x"}, exitUsage, []string{"-1"}},
		{"id to decode out of range", nil, []string{"tokenize", "--decode", "99999"}, exitUsage, []string{"99999", "4096"}},
		{"id that is none", nil, []string{"logits", "--ids", "1,x", "--out", "x"}, exitUsage, []string{`"x"`}},
		{"no ids", nil, []string{"logits", "--out", "x"}, exitUsage, []string{"--ids"}},
		{"no out", nil, []string{"logits", "--ids", "1"}, exitUsage, []string{"--out"}},
		{"unknown flag", nil, []string{"ask", "--frobnicate", "hello"}, exitUsage, []string{"--frobnicate"}},
		{"unknown command", nil, []string{"answer", "hello"}, exitUsage, []string{"answer"}},
		{"unknown effort", nil, []string{"ask", "--effort", "huge", "hello"}, exitUsage, []string{"huge", "low, high or max"}},
		{"contradiction", nil, []string{"ask", "--greedy", "--temperature", "1", "hello"}, exitUsage, []string{"--greedy", "--temperature"}},
		{"both json forms", nil, []string{"ask", "--json", "--jsonl", "hello"}, exitUsage, []string{"json"}},
		{"temperature", nil, []string{"ask", "--temperature", "-1", "hello"}, exitUsage, []string{"temperature -1"}},
		{"top-p", nil, []string{"ask", "--top-p", "1.5", "hello"}, exitUsage, []string{"top-p 1.5"}},
		{"threads", nil, []string{"ask", "--threads", "0", "hello"}, exitUsage, []string{"--threads 0"}},
		{"kernel", nil, []string{"ask", "--kernel", "abacus", "hello"}, exitUsage, []string{"abacus", "generic"}},
		{"inert flag", nil, []string{"tokenize", "--no-think", "hello"}, exitUsage, []string{"--no-think", "--chat"}},
		{"timeout", nil, []string{"ask", "--timeout", "0s", "hello"}, exitUsage, []string{"--timeout"}},
		{"theme without a terminal", nil, []string{"demo", "--theme", "pink"}, exitUsage, []string{"--theme pink", "no terminal"}},
		{"theme of nothing", nil, []string{"demo", "--plain", "--theme", "dark"}, exitUsage, []string{"--theme", "--plain"}},
		{"nothing to tell", nil, []string{"tell"}, exitUsage, []string{"pause", "break-in"}},
		{"bench of no model", func() string { return filepath.Join(t.TempDir(), "nothing") }, []string{"bench", "decode", "--cache", "1MB"}, exitNoModel, []string{"nothing"}},
		{"no such machine", nil, []string{"plan", "abacus"}, exitUsage, []string{"abacus", "m5max"}},
		{"synth without a place", nil, []string{"synth"}, exitUsage, []string{"--out"}},
		{"too little memory", nil, []string{"ask", "--memory", "1kB", "hello"}, exitMemory, []string{"1.0 kB", "needs"}},
		{"unwritable out", nil, []string{"logits", "--ids", "1", "--out", filepath.Join(os.DevNull, "x")}, exitError, []string{os.DevNull}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			args := c.args
			if args == nil {
				args = []string{"ask", "hello"}
			}
			if c.dir != nil {
				args = append(args, "--model", c.dir())
			}
			code, out, errs := program(t, "", args...)
			if code != c.code {
				t.Errorf("exit %d, want %d", code, c.code)
			}
			if out != "" {
				t.Errorf("standard output: %q", out)
			}
			var said string
			for line := range strings.Lines(errs) {
				if strings.HasPrefix(line, "deltafin: ") {
					if said != "" {
						t.Errorf("more than one line: %s", errs)
					}
					said = line
				}
			}
			for _, want := range c.wants {
				if !strings.Contains(said, want) {
					t.Errorf("the message lacks %q: %s", want, errs)
				}
			}
			for _, never := range []string{"goroutine ", "panic", "runtime error"} {
				if strings.Contains(errs, never) {
					t.Errorf("a stack trace: %s", errs)
				}
			}
		})
	}
}

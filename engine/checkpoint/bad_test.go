package checkpoint_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/checkpoint/checkpointtest"
)

const (
	normName = "language_model.model.layers.1.input_layernorm.weight"
	w1Packed = "language_model.model.layers.1.block_sparse_moe.experts.2.w1.weight_packed"
	w1Scale  = "language_model.model.layers.1.block_sparse_moe.experts.2.w1.weight_scale"
)

// layer1 is the shard of the tensors above.
var layer1 = checkpointtest.ShardName(2, 6)

func header(edit func(checkpointtest.Header)) func(string) error {
	return func(dir string) error { return checkpointtest.EditHeader(dir, layer1, edit) }
}

func weights(edit func(map[string]any)) func(string) error {
	return func(dir string) error { return checkpointtest.EditIndex(dir, edit) }
}

func text(file string, content string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644) }
}

func replace(file, old, new string) func(string) error {
	return func(dir string) error {
		path := filepath.Join(dir, file)
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(old)) {
			return errors.New(old + " is not in " + file)
		}
		return os.WriteFile(path, bytes.Replace(b, []byte(old), []byte(new), 1), 0o644)
	}
}

// TestBrokenCheckpoints: each fault is an error of one line that names file or
// tensor and the values, from Open or from Validate, and has the right sentinel.
func TestBrokenCheckpoints(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(dir string) error
		is    error    // sentinel, nil for a *FormatError
		says  []string // all must occur in the message
	}{
		{"no config", func(d string) error { return checkpointtest.Remove(d, "config.json") },
			checkpoint.ErrNotCheckpoint, []string{"config.json", "give the folder"}},
		{"no index", func(d string) error { return checkpointtest.Remove(d, checkpoint.IndexFile) },
			checkpoint.ErrMissingShard, []string{"model.safetensors.index.json", "not complete"}},
		{"missing shard", func(d string) error { return checkpointtest.Remove(d, layer1) },
			checkpoint.ErrMissingShard, []string{layer1, "model.layers.1."}},
		{"missing tensor", func(d string) error { return checkpointtest.DropTensor(d, layer1, normName) },
			checkpoint.ErrMissingTensor, []string{normName, "BF16 or F32 [48]"}},
		{"missing expert tensor", func(d string) error { return checkpointtest.DropTensor(d, layer1, w1Scale) },
			checkpoint.ErrMissingTensor, []string{w1Scale, "U8 [32 1]"}},
		{"wrong dtype", header(func(h checkpointtest.Header) { h[normName]["dtype"] = "F16" }),
			checkpoint.ErrMismatch, []string{layer1, normName, "F16 [48]", "BF16 or F32 [48]"}},
		{"wrong dtype of an expert", header(func(h checkpointtest.Header) { h[w1Packed]["dtype"] = "I8" }),
			checkpoint.ErrMismatch, []string{layer1, w1Packed, "I8 [32 16]", "U8 [32 16]"}},
		{"wrong shape", header(func(h checkpointtest.Header) { h[normName]["shape"] = []int{6, 8} }),
			checkpoint.ErrMismatch, []string{layer1, normName, "BF16 [6 8]", "[48]"}},
		{"wrong shape of an expert", header(func(h checkpointtest.Header) { h[w1Packed]["shape"] = []int{16, 32} }),
			checkpoint.ErrMismatch, []string{layer1, w1Packed, "U8 [16 32]", "U8 [32 16]"}},
		{"expert of one dimension", header(func(h checkpointtest.Header) { h[w1Packed]["shape"] = []int{512} }),
			nil, []string{layer1, w1Packed, "[512]", "two dimensions"}},
		{"another config", func(d string) error {
			return checkpointtest.EditConfig(d, func(x, _ map[string]any) { x["hidden_size"] = 64 })
		}, checkpoint.ErrMismatch, []string{"embed_tokens", "[512 48]", "[512 64]"}},
		{"more experts than files", func(d string) error {
			return checkpointtest.EditConfig(d, func(x, _ map[string]any) { x["num_experts"] = 6 })
		}, checkpoint.ErrMismatch, []string{"gate.weight", "[5 48]", "[6 48]"}},
		{"far more experts than the index could name", func(d string) error {
			return checkpointtest.EditConfig(d, func(x, _ map[string]any) { x["num_experts"] = 16000 })
		}, nil, []string{"index.json", "num_experts 16000"}},
		{"fewer experts than files", func(d string) error {
			return checkpointtest.EditConfig(d, func(x, _ map[string]any) { x["num_experts"] = 4 })
		}, checkpoint.ErrMismatch, []string{"gate.weight", "[5 48]", "[4 48]"}},
		{"a scale that the model does not use", weights(func(m map[string]any) { m["language_model.model.layers.1.extra"] = layer1 }),
			checkpoint.ErrMissingTensor, []string{layer1, "model.layers.1.extra", "index.json"}},
		{"A_log with a live tail", func(d string) error {
			return checkpointtest.EditData(d, checkpointtest.ShardName(1, 6), "language_model.model.layers.0.self_attn.A_log",
				func(b []byte) { b[len(b)-1] = 0x40 })
		}, checkpoint.ErrMismatch, []string{"A_log", "2 at index 31", "2 heads"}},

		{"truncated shard", func(d string) error { return checkpointtest.Truncate(d, layer1, -10) },
			nil, []string{layer1, "at byte", "truncated"}},
		{"truncated in the header", func(d string) error { return checkpointtest.Truncate(d, layer1, 100) },
			nil, []string{layer1, "at byte 0", "only 92 bytes follow", "truncated"}},
		{"truncated in the length", func(d string) error { return checkpointtest.Truncate(d, layer1, 5) },
			nil, []string{layer1, "at byte 0", "5 bytes", "truncated"}},
		{"empty shard", func(d string) error { return checkpointtest.Truncate(d, layer1, 0) },
			nil, []string{layer1, "empty"}},
		{"a folder for a shard", func(d string) error {
			return errors.Join(checkpointtest.Remove(d, layer1), os.Mkdir(filepath.Join(d, layer1), 0o755))
		}, nil, []string{layer1, "not a regular file"}},
		{"truncated index", func(d string) error { return checkpointtest.Truncate(d, checkpoint.IndexFile, -300) },
			nil, []string{"index.json", "at byte", "does not end"}},
		{"index leaves the folder", weights(func(m map[string]any) { m[normName] = "../other.safetensors" }),
			nil, []string{"index.json", "../other.safetensors", "plain file name"}},
		{"index names the wrong shard", weights(func(m map[string]any) { m[normName] = checkpointtest.ShardName(3, 6) }),
			nil, []string{layer1, normName, "not in this shard"}},
		{"index forgets a tensor", weights(func(m map[string]any) { delete(m, normName) }),
			nil, []string{layer1, normName, "not in this shard"}},
		{"index repeats a name", replace(checkpoint.IndexFile, `"weight_map": {`, `"weight_map": {"`+w1Scale+`": "`+layer1+`",`),
			nil, []string{"index.json", "at byte", w1Scale, "stands twice"}},
		{"index with both forms of a matrix", weights(func(m map[string]any) { m[strings.TrimSuffix(w1Packed, "_packed")] = layer1 }),
			nil, []string{"index.json", "experts.2.w1.weight", "weight_packed"}},
		{"names with and without prefix", weights(func(m map[string]any) { m["model.norm.weight"] = layer1 }),
			nil, []string{"index.json", `"model.norm.weight"`, "mixed"}},
		{"index without a map", text(checkpoint.IndexFile, `{"metadata":{"total_size":1}`+strings.Repeat(" ", 4000)+`}`),
			nil, []string{"index.json", "weight_map is absent"}},
		{"index with a list", text(checkpoint.IndexFile, `{"weight_map":[`+strings.Repeat(" ", 4000)+`]}`),
			nil, []string{"index.json", "at byte 14", "'['"}},
		{"negative total", replace(checkpoint.IndexFile, `"total_size": `, `"total_size": -`),
			nil, []string{"index.json", "total_size", "-"}},
		{"index not in UTF-8", replace(checkpoint.IndexFile, "input_layernorm", "input\xfflayernorm"),
			nil, []string{"index.json", "at byte", "UTF-8"}},

		{"generation config with a wild id", text(checkpoint.GenerationFile, `{"eos_token_id": [258, 512]}`),
			nil, []string{"generation_config.json", "eos_token_id", "[258, 512]", "511"}},
		{"generation config with a wild temperature", text(checkpoint.GenerationFile, `{"temperature": -1}`),
			nil, []string{"generation_config.json", "temperature is -1"}},
		{"generation config that is no JSON", text(checkpoint.GenerationFile, `eos`),
			nil, []string{"generation_config.json", "at byte 0"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := write(t, checkpointtest.Options{})
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			m, err := checkpoint.Open(dir)
			if err == nil {
				defer m.Close()
				err = m.Validate(t.Context())
			}
			checkFault(t, err, c.is, c.says)
		})
	}
}

func checkFault(t *testing.T, err, is error, says []string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	var format *checkpoint.FormatError
	var config *checkpoint.ConfigError
	if is != nil && !errors.Is(err, is) || is == nil && !errors.As(err, &format) && !errors.As(err, &config) {
		t.Errorf("%v is a %T, want %v", err, err, is)
	}
	msg := err.Error()
	if strings.Contains(msg, "\n") || len(msg) > 700 {
		t.Errorf("not one line of sane length: %q", msg)
	}
	for _, s := range says {
		if !strings.Contains(msg, s) {
			t.Errorf("message %q does not say %q", msg, s)
		}
	}
}

func TestExtraTensorsAreRefused(t *testing.T) {
	dir := write(t, checkpointtest.Options{Single: true})
	err := checkpointtest.EditHeader(dir, checkpoint.SingleFile, func(h checkpointtest.Header) {
		// Nothing but an empty tensor fits between the others.
		h["language_model.model.layers.1.self_attn.q_proj.bias"] = map[string]any{
			"dtype": "BF16", "shape": []int{0}, "data_offsets": []int{0, 0}}
	})
	if err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	checkFault(t, c.Validate(t.Context()), checkpoint.ErrMismatch, []string{"q_proj.bias", "no such tensor"})
}

func TestOpenOfAFileAndOfNothing(t *testing.T) {
	dir := write(t, checkpointtest.Options{})
	_, err := checkpoint.Open(filepath.Join(dir, "config.json"))
	checkFault(t, err, checkpoint.ErrNotCheckpoint, []string{"config.json is a file"})
	if _, err := checkpoint.Open(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("absent folder: %v", err)
	}
}

func TestExpertsOutsideTheModel(t *testing.T) {
	c := opened(t, write(t, checkpointtest.Options{}))
	for _, at := range [][2]int{{-1, 0}, {0, 0}, {1, -1}, {1, 5}, {5, 0}, {1 << 40, 1 << 40}} {
		if _, err := c.Expert(at[0], at[1]); !errors.Is(err, checkpoint.ErrMissingTensor) {
			t.Errorf("expert %v: %v", at, err)
		}
		if _, _, _, ok := c.ExpertSpan(at[0], at[1]); ok {
			t.Errorf("span of expert %v", at)
		}
	}
}

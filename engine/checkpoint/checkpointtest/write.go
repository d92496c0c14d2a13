package checkpointtest

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"deltafin/engine/checkpoint"
	"deltafin/engine/synth"
)

// A tensor in the making.
type tensor struct {
	name  string
	dtype checkpoint.DType
	shape []int
	data  []byte
}

// Write makes a checkpoint in dir: one shard per layer, then one for what lies
// outside the layers, as in the official files.
func Write(dir string, opt Options, seed uint64) error {
	c := &opt.Config
	w := writer{opt: opt, rng: rand.New(rand.NewPCG(seed, 0x6b33))}
	shards := make([][]tensor, c.Layers+1)
	c.Each(func(s checkpoint.Spec) bool {
		in := s.Layer
		if in < 0 {
			in = c.Layers
		}
		shards[in] = append(shards[in], w.tensor(s))
		return true
	})
	for l := range c.Layers {
		if c.MoE(l) {
			shards[l] = append(shards[l], w.experts(l)...)
		}
	}
	if opt.Vision {
		bf := func(name string, shape ...int) tensor {
			return w.random(name, checkpoint.BF16, shape, 0, 0.1)
		}
		shards = append(shards,
			[]tensor{bf("mm_projector.proj.0.weight", 8, 8), bf("mm_projector.post_norm.weight", c.Hidden)},
			[]tensor{bf("vision_tower.encoder.final_layernorm.weight", 8)})
	}
	if opt.Single {
		var all []tensor
		for _, s := range shards {
			all = append(all, s...)
		}
		shards = [][]tensor{all}
	}
	if err := writeShards(dir, shards, opt.Single); err != nil {
		return err
	}
	if err := writeJSON(dir, checkpoint.ConfigFile, c.Tree()); err != nil {
		return err
	}
	if err := writeJSON(dir, checkpoint.GenerationFile, map[string]any{"eos_token_id": c.EOS}); err != nil {
		return err
	}
	return writeTokenizer(dir, c.Vocab)
}

func writeShards(dir string, shards [][]tensor, single bool) error {
	total, weights := 0, map[string]string{}
	for i, list := range shards {
		name := ShardName(i+1, len(shards))
		if single {
			name = checkpoint.SingleFile
		}
		for _, t := range list {
			weights[t.name] = name
			total += len(t.data)
		}
		if err := os.WriteFile(filepath.Join(dir, name), encode(list), 0o644); err != nil {
			return err
		}
	}
	if single {
		return nil
	}
	return writeJSON(dir, checkpoint.IndexFile,
		map[string]any{"metadata": map[string]any{"total_size": total}, "weight_map": weights})
}

// ShardName is the official name of shard i (from 1) of n.
func ShardName(i, n int) string { return fmt.Sprintf("model-%05d-of-%06d.safetensors", i, n) }

// encode writes a safetensors file, tensors in the given order.
func encode(list []tensor) []byte {
	entries := make([]checkpoint.Entry, len(list))
	for i, t := range list {
		entries[i] = checkpoint.Entry{Name: t.name, DType: t.dtype, Shape: t.shape}
	}
	out := checkpoint.FormatHeader(entries)
	for _, t := range list {
		out = append(out, t.data...)
	}
	return out
}

func writeJSON(dir, name string, v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, name), append(b, '\n'), 0o644)
}

// writer draws the weights.
type writer struct {
	opt Options
	rng *rand.Rand
}

func (w *writer) name(short string) string {
	if w.opt.NoPrefix {
		return short
	}
	return "language_model." + short
}

// random makes a tensor of normally distributed values.
func (w *writer) random(name string, dt checkpoint.DType, shape []int, mean, deviation float64) tensor {
	n := 1
	for _, d := range shape {
		n *= d
	}
	t := tensor{name: name, dtype: dt, shape: shape}
	for range n {
		bits := math.Float32bits(float32(mean + deviation*w.rng.NormFloat64()))
		if dt == checkpoint.BF16 {
			t.data = binary.LittleEndian.AppendUint16(t.data, uint16(bits>>16))
		} else {
			t.data = binary.LittleEndian.AppendUint32(t.data, bits)
		}
	}
	return t
}

func (w *writer) tensor(s checkpoint.Spec) tensor {
	name := w.name(s.Name)
	switch {
	case strings.HasSuffix(s.Name, "A_log"):
		return w.aLog(name, s.DType)
	case strings.HasSuffix(s.Name, "dt_bias"), strings.HasSuffix(s.Name, "e_score_correction_bias"):
		return w.random(name, s.DType, s.Shape, 0, 0.1)
	case strings.HasSuffix(s.Name, "conv1d.weight"):
		return w.random(name, s.DType, s.Shape, 0.25, 0.2)
	case len(s.Shape) == 1:
		return w.random(name, s.DType, s.Shape, 1, 0.1)
	}
	return w.random(name, s.DType, s.Shape, 0, 1/math.Sqrt(float64(s.Shape[1])))
}

// aLog draws one value per head and stores them in the wanted form.
func (w *writer) aLog(name string, dt checkpoint.DType) tensor {
	heads := w.opt.Config.KDAHeads
	t := w.random(name, dt, []int{heads}, 0, 0.5)
	switch w.opt.ALog {
	case Padded:
		t.shape = []int{max(heads, w.opt.Config.KDAHeadDim)}
		t.data = append(t.data, make([]byte, int(dt.Bits())/8*(t.shape[0]-heads))...)
	case Nested:
		t.shape = []int{1, 1, heads, 1}
	}
	return t
}

// experts makes all routed experts of a layer, each as w1, w2, w3 in a row.
func (w *writer) experts(layer int) []tensor {
	c := &w.opt.Config
	var out []tensor
	for e := range c.Experts {
		for m := 1; m <= 3; m++ {
			rows, cols := c.ExpertIntermediate, c.Latent
			if m == 2 {
				rows, cols = cols, rows
			}
			name := w.name(checkpoint.LayerName(layer, fmt.Sprintf("block_sparse_moe.experts.%d.w%d.weight", e, m)))
			if w.opt.Format == checkpoint.MXFP4 {
				out = append(out, w.packed(name, rows, cols)...)
			} else {
				out = append(out, w.random(name, c.DType, []int{rows, cols}, 0, 1/math.Sqrt(float64(cols))))
			}
		}
	}
	if w.opt.Scatter {
		// A stride that is no divisor takes the parts of an expert apart.
		mixed := make([]tensor, 0, len(out))
		for from := range 4 {
			for i := from; i < len(out); i += 4 {
				mixed = append(mixed, out[i])
			}
		}
		return mixed
	}
	return out
}

// packed draws codes evenly and scales around the size that fits the width.
func (w *writer) packed(name string, rows, cols int) []tensor {
	codes := tensor{name + "_packed", checkpoint.U8, []int{rows, cols / 2}, make([]byte, rows*cols/2)}
	for i := range codes.data {
		codes.data[i] = byte(w.rng.Uint32())
	}
	scales := tensor{name + "_scale", checkpoint.U8, []int{rows, cols / 32}, make([]byte, rows*cols/32)}
	// The codes have a root mean square of about 2.9.
	middle := 127 - int(math.Log2(2.9*math.Sqrt(float64(cols))))
	for i := range scales.data {
		scales.data[i] = byte(middle - 1 + w.rng.IntN(3))
	}
	return []tensor{codes, scales}
}

// byteVocab is the vocabulary that writeTokenizer serves: single bytes and the
// 256 special ids.
const byteVocab = 512

func writeTokenizer(dir string, vocab int) error {
	if vocab != byteVocab {
		return nil
	}
	ranks, config, err := synth.Tokenizer(vocab)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "tiktoken.model"), ranks, 0o644); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "tokenizer_config.json"), config, 0o644)
}

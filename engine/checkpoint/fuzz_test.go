package checkpoint_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/checkpoint/checkpointtest"
)

// typed demands that whatever was refused was refused by our own checks.
func typed(t *testing.T, err error) {
	t.Helper()
	var format *checkpoint.FormatError
	var config *checkpoint.ConfigError
	var tensor *checkpoint.TensorError
	if err != nil && !errors.As(err, &format) && !errors.As(err, &config) && !errors.As(err, &tensor) &&
		!errors.Is(err, checkpoint.ErrMissingShard) {
		t.Errorf("%T: %v", err, err)
	}
}

// FuzzConfig: any text is refused with a typed error or gives a config whose
// arithmetic holds.
func FuzzConfig(f *testing.F) {
	f.Add(officialText(f))
	f.Add([]byte(`{"model_type":"kimi_linear","num_hidden_layers":1e3}`))
	f.Add([]byte(`{"text_config":{"linear_attn_config":{"kda_layers":[1,1]}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := checkpoint.ParseConfig(data)
		typed(t, err)
		if err != nil {
			return
		}
		a := c.Account()
		for class, s := range a.ByClass {
			if s.Tensors < 0 || s.Params < 0 || s.Bytes < 0 {
				t.Errorf("%v overflows: %+v", checkpoint.Class(class), s)
			}
		}
		if a.ActiveParams() <= 0 || a.State.Fixed() < 0 {
			t.Errorf("%+v", a)
		}
		_, err = checkpoint.ParseGeneration(data, c.Vocab)
		typed(t, err)
	})
}

// FuzzHeader: a header that passes describes bytes inside the file only.
func FuzzHeader(f *testing.F) {
	f.Add(shardOf(`{"a":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}`, 8))
	f.Add(shardOf(`{"__metadata__":{"format":"pt"},"\u0061":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}`, 1))
	f.Add(shardOf(`{"a":{"dtype":"U8","shape":[9007199254740992],"data_offsets":[0,9007199254740992]}}`, 1))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, start, err := checkpoint.ParseHeader("f", data)
		typed(t, err)
		if err == nil && (start < 8 || start > int64(len(data))) {
			t.Errorf("data from byte %d of %d", start, len(data))
		}
	})
}

// FuzzIndex replaces the index of a good model. Whatever opens must survive
// validation, and whatever validates must be readable in full.
func FuzzIndex(f *testing.F) {
	fsys := small(f)
	f.Add(fsys[checkpoint.IndexFile])
	f.Add([]byte(`{"weight_map":{"model.norm.weight":"model-00001-of-000003.safetensors"}}`))
	f.Add([]byte(`{"metadata":{"total_size":1},"weight_map":{"a":"../b.safetensors"}}`))
	f.Fuzz(func(t *testing.T, data []byte) { openAndRead(t, with(fsys, checkpoint.IndexFile, data)) })
}

// FuzzShard replaces one shard of a good model.
func FuzzShard(f *testing.F) {
	fsys := small(f)
	name := checkpointtest.ShardName(2, 3)
	f.Add(fsys[name])
	f.Fuzz(func(t *testing.T, data []byte) { openAndRead(t, with(fsys, name, data)) })
}

func openAndRead(t *testing.T, fsys inPlace) {
	c, err := checkpoint.OpenFS(fsys)
	typed(t, err)
	if err != nil {
		return
	}
	defer c.Close()
	err = c.Validate(t.Context())
	typed(t, err)
	c.Fingerprint()
	if err != nil {
		return
	}
	c.Config().Each(func(s checkpoint.Spec) bool {
		x, err := c.Tensor(s.Name)
		if err != nil || int64(len(x.Data)) != x.Length {
			t.Errorf("%s: %v", s.Name, err)
		}
		return true
	})
	for e := range c.Config().Experts {
		if _, err := c.Expert(1, e); err != nil {
			t.Error(err)
		}
	}
}

// tiny is the least that has every kind of tensor: a short file is mutated where
// it matters.
func tiny() checkpoint.Config {
	c := checkpointtest.Small()
	c.Layers, c.MLALayer, c.ResBlock = 2, []bool{false, true}, 2
	c.Hidden, c.Vocab, c.DenseIntermediate = 2, 4, 2
	c.Heads, c.QLoRA, c.KVLoRA, c.QKNope, c.QKRope, c.VHead = 1, 2, 2, 1, 1, 1
	c.KDAHeads, c.KDAHeadDim = 1, 2
	c.Experts, c.TopK, c.SharedExperts = 2, 1, 1
	c.BOS, c.EOS, c.Pad = 1, 2, 3
	return c
}

// small is a whole model in memory.
func small(f *testing.F) inPlace {
	cfg := tiny()
	dir := write(f, checkpointtest.Options{Config: cfg})
	out := inPlace{}
	list, err := os.ReadDir(dir)
	if err != nil {
		f.Fatal(err)
	}
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			f.Fatal(err)
		}
		out[e.Name()] = b
	}
	return out
}

func with(fsys inPlace, name string, data []byte) inPlace {
	out := inPlace{name: data}
	for k, v := range fsys {
		if k != name {
			out[k] = v
		}
	}
	return out
}

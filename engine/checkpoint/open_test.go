package checkpoint_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deltafin/engine/checkpoint"
	"deltafin/engine/checkpoint/checkpointtest"
)

// write makes a checkpoint for a test.
func write(t testing.TB, opt checkpointtest.Options) string {
	t.Helper()
	if opt.Config.Layers == 0 {
		opt.Config = checkpointtest.Small()
	}
	dir := t.TempDir()
	if err := checkpointtest.Write(dir, opt, 1); err != nil {
		t.Fatal(err)
	}
	return dir
}

// opened opens a checkpoint that must be whole.
func opened(t testing.TB, dir string) *checkpoint.Checkpoint {
	t.Helper()
	c, err := checkpoint.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := c.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestGoldenCheckpointsAreWhole(t *testing.T) {
	for _, g := range []struct {
		name    string
		tensors int
		bytes   int64
		mla     []int
	}{
		{"tiny-a", 1132, 1_312_752, []int{3, 7, 11, 12}},
		{"tiny-b", 416, 1_334_368, []int{1, 4}},
		{"tiny-c", 636, 1_452_496, []int{2, 5}},
	} {
		t.Run(g.name, func(t *testing.T) {
			c := opened(t, filepath.Join("..", "testdata", "golden", g.name))
			s := c.Summary()
			if s.Tensors != g.tensors || s.Total != g.bytes || s.Mapped != g.bytes || s.Ignored != 0 {
				t.Errorf("summary %+v", s)
			}
			a := c.Account()
			if sum := a.Total(); sum.Bytes != g.bytes || sum.Tensors != int64(g.tensors) {
				t.Errorf("account %+v", sum)
			}
			var mla []int
			for l, full := range c.Config().MLALayer {
				if full {
					mla = append(mla, l)
				}
			}
			if !slices.Equal(mla, g.mla) {
				t.Errorf("MLA layers %v, want %v", mla, g.mla)
			}
			if len(c.Generation().EOS) != 1 || c.Generation().EOS[0] != 258 {
				t.Errorf("stop ids %v", c.Generation().EOS)
			}
		})
	}
}

// variants are the forms of a checkpoint that all must open.
var variants = map[string]checkpointtest.Options{
	"official":       {},
	"twin":           {Config: checkpointtest.Twin(), Format: checkpoint.Plain, ALog: checkpointtest.Bare},
	"twin in MXFP4":  {Config: quantisedTwin(), ALog: checkpointtest.Nested},
	"BF16 experts":   {Config: bf16Twin(), Format: checkpoint.Plain},
	"no prefix":      {NoPrefix: true},
	"one file":       {Single: true},
	"vision shards":  {Vision: true},
	"all in one":     {Vision: true, Single: true},
	"scattered":      {Scatter: true},
	"no latent norm": {Config: withoutNorm()},
}

func quantisedTwin() checkpoint.Config {
	c := checkpointtest.Twin()
	c.Quantized = true
	return c
}

func bf16Twin() checkpoint.Config {
	c := checkpointtest.Twin()
	c.DType = checkpoint.BF16
	return c
}

func withoutNorm() checkpoint.Config {
	c := checkpointtest.Small()
	c.LatentNorm = false
	return c
}

func TestEveryVariantOpens(t *testing.T) {
	for name, opt := range variants {
		t.Run(name, func(t *testing.T) {
			dir := write(t, opt)
			c := opened(t, dir)
			cfg, want := c.Config(), opt.Config
			if want.Layers == 0 {
				want = checkpointtest.Small()
			}
			if cfg.HasGateLowerBound != want.HasGateLowerBound || cfg.GateLowerBound != want.GateLowerBound ||
				cfg.DType != want.DType || cfg.Quantized != want.Quantized || cfg.LatentNorm != want.LatentNorm {
				t.Errorf("config came back as %+v", cfg)
			}
			if c.ExpertFormat() != opt.Format {
				t.Errorf("expert format %v, want %v", c.ExpertFormat(), opt.Format)
			}
			prefix := "language_model."
			if opt.NoPrefix {
				prefix = ""
			}
			s := c.Summary()
			if s.Prefix != prefix {
				t.Errorf("prefix %q", s.Prefix)
			}
			if opt.Vision != (s.Ignored == 3) || !opt.Single && !opt.Vision && s.Mapped != s.Total {
				t.Errorf("summary %+v", s)
			}
			if _, err := c.Tensor("vision_tower.encoder.final_layernorm.weight"); !errors.Is(err, checkpoint.ErrMissingTensor) {
				t.Errorf("a tensor that is no text: %v", err)
			}
			a, err := c.ALog(0)
			if err != nil || len(a) != cfg.KDAHeads || a[0] == 0 {
				t.Errorf("A_log %v, %v", a, err)
			}
			checkExperts(t, c, opt)
		})
	}
}

// checkExperts compares every expert's data with the bytes of its file.
func checkExperts(t *testing.T, c *checkpoint.Checkpoint, opt checkpointtest.Options) {
	t.Helper()
	cfg, whole := c.Config(), map[string][]byte{}
	for l := range cfg.Layers {
		for e := range cfg.Experts {
			x, err := c.Expert(l, e)
			if !cfg.MoE(l) {
				if !errors.Is(err, checkpoint.ErrMissingTensor) {
					t.Fatalf("expert in dense layer %d: %v", l, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			file, off, n, ok := c.ExpertSpan(l, e)
			if ok == opt.Scatter {
				t.Fatalf("layer %d expert %d contiguous: %v", l, e, ok)
			}
			var sum int64
			for _, m := range []checkpoint.ExpertMatrix{x.W1, x.W2, x.W3} {
				for _, part := range []checkpoint.Tensor{m.Weight, m.Scale} {
					if part.Name == "" {
						continue
					}
					sum += part.Length
					if ok && (part.File != file || part.Offset < off || part.Offset+part.Length > off+n) {
						t.Errorf("%s lies outside the span of its expert", part.Name)
					}
					compare(t, whole, part)
				}
			}
			if ok && sum != n {
				t.Errorf("span of %d bytes holds %d bytes of tensors", n, sum)
			}
			if x.Format == checkpoint.MXFP4 && (x.W1.Scale.Shape[1]*32 != x.W1.Cols || x.W2.Weight.Shape[1]*2 != x.W2.Cols) {
				t.Errorf("shapes %v %v", x.W1.Scale.Shape, x.W2.Weight.Shape)
			}
		}
	}
}

func compare(t *testing.T, whole map[string][]byte, part checkpoint.Tensor) {
	t.Helper()
	if whole[part.File] == nil {
		b, err := os.ReadFile(part.File)
		if err != nil {
			t.Fatal(err)
		}
		whole[part.File] = b
	}
	if !bytes.Equal(part.Data, whole[part.File][part.Offset:part.Offset+part.Length]) {
		t.Errorf("%s: data is not what the file has at %d", part.Name, part.Offset)
	}
}

func TestTensorsOfAMappedAndAReadModelAgree(t *testing.T) {
	dir := write(t, checkpointtest.Options{})
	disk := opened(t, dir)
	mem, err := checkpoint.OpenFS(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	defer mem.Close()
	disk.Config().Each(func(s checkpoint.Spec) bool {
		a, errA := disk.Expect(s.Name, s.Allowed, s.Shape...)
		b, errB := mem.Expect(s.Name, s.Allowed, s.Shape...)
		if errA != nil || errB != nil || !bytes.Equal(a.Data, b.Data) || a.Offset != b.Offset {
			t.Errorf("%s: %v %v", s.Name, errA, errB)
		}
		return true
	})
	if disk.Fingerprint() != mem.Fingerprint() {
		t.Error("fingerprint depends on where the files lie")
	}
}

func TestFloat32sDecodes(t *testing.T) {
	c := opened(t, write(t, checkpointtest.Options{}))
	for name, dt := range map[string]checkpoint.DType{
		"model.norm.weight":                          checkpoint.BF16,
		checkpoint.LayerName(0, "self_attn.dt_bias"): checkpoint.F32,
	} {
		x, err := c.Tensor(name)
		if err != nil || x.DType != dt {
			t.Fatal(name, x.DType, err)
		}
		got, err := checkpoint.Float32s(x)
		if err != nil || len(got) != x.Shape[0] {
			t.Fatal(name, len(got), err)
		}
		for i, v := range got {
			bits := uint32(0)
			if dt == checkpoint.BF16 {
				bits = uint32(binary.LittleEndian.Uint16(x.Data[2*i:])) << 16
			} else {
				bits = binary.LittleEndian.Uint32(x.Data[4*i:])
			}
			if math.Float32bits(v) != bits {
				t.Fatalf("%s[%d] = %g", name, i, v)
			}
		}
	}
	if _, err := checkpoint.Float32s(checkpoint.Tensor{Name: "x", DType: checkpoint.U8}); !errors.Is(err, checkpoint.ErrMismatch) {
		t.Errorf("decoding U8: %v", err)
	}
}

func TestFingerprintSeesConfigHeadersAndData(t *testing.T) {
	print := func(change func(dir string) error) string {
		dir := write(t, checkpointtest.Options{Vision: true})
		if change != nil {
			if err := change(dir); err != nil {
				t.Fatal(err)
			}
		}
		return opened(t, dir).Fingerprint()
	}
	base := print(nil)
	if len(base) != 64 || base != print(nil) {
		t.Fatalf("fingerprint %q is not stable", base)
	}
	shard := checkpointtest.ShardName(2, 8)
	for name, change := range map[string]func(string) error{
		"config": func(dir string) error {
			return checkpointtest.EditConfig(dir, func(text, _ map[string]any) { text["rms_norm_eps"] = 1e-6 })
		},
		"header": func(dir string) error {
			return checkpointtest.EditHeader(dir, shard, func(h checkpointtest.Header) { h["__metadata__"]["format"] = "np" })
		},
		"weights": func(dir string) error {
			return checkpointtest.EditData(dir, shard, "language_model.model.layers.1.input_layernorm.weight", func(b []byte) { b[0]++ })
		},
	} {
		if print(change) == base {
			t.Errorf("a change of the %s is not seen", name)
		}
	}
	if print(func(dir string) error { return checkpointtest.Remove(dir, checkpointtest.ShardName(8, 8)) }) != base {
		t.Error("absent vision shards change the fingerprint")
	}
}

func TestAfterCloseThereAreNoTensors(t *testing.T) {
	c, err := checkpoint.Open(write(t, checkpointtest.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err1 := c.Tensor("model.norm.weight")
	_, err2 := c.Expert(1, 0)
	for _, err := range []error{err1, err2, c.Validate(t.Context())} {
		if !errors.Is(err, checkpoint.ErrClosed) {
			t.Errorf("after Close: %v", err)
		}
	}
}

func TestIndexOnlyNeedsNoShards(t *testing.T) {
	dir := write(t, checkpointtest.Options{})
	for i := range 6 {
		if err := checkpointtest.Remove(dir, checkpointtest.ShardName(i+1, 6)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := checkpoint.Open(dir, checkpoint.IndexOnly())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	a := c.Account()
	if s := c.Summary(); s.Total != a.Total().Bytes || int64(s.Tensors) != a.Total().Tensors || s.Mapped != 0 {
		t.Errorf("summary %+v, account %+v", s, a.Total())
	}
	if _, err := c.Tensor("lm_head.weight"); !errors.Is(err, checkpoint.ErrNoWeights) {
		t.Errorf("tensor: %v", err)
	}
	if _, _, _, ok := c.ExpertSpan(1, 0); ok {
		t.Error("a span without shards")
	}
}

func TestLookupsFromManyGoroutines(t *testing.T) {
	c := opened(t, write(t, checkpointtest.Options{}))
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for e := range c.Config().Experts {
				if _, err := c.Expert(2, e); err != nil {
					t.Error(err)
				}
			}
			c.Fingerprint()
		})
	}
	wg.Wait()
}

func TestOtherFilesAreReachable(t *testing.T) {
	c := opened(t, write(t, checkpointtest.Options{}))
	b, err := fs.ReadFile(c.FS(), "tiktoken.model")
	if err != nil || strings.Count(string(b), "\n") != 256 {
		t.Errorf("rank file: %d bytes, %v", len(b), err)
	}
}

func TestWritingIsReproducible(t *testing.T) {
	a, b := write(t, checkpointtest.Options{}), write(t, checkpointtest.Options{})
	for i := range 6 {
		name := checkpointtest.ShardName(i+1, 6)
		x, errX := os.ReadFile(filepath.Join(a, name))
		y, errY := os.ReadFile(filepath.Join(b, name))
		if errX != nil || errY != nil || !bytes.Equal(x, y) {
			t.Errorf("%s differs between two runs: %v %v", name, errX, errY)
		}
	}
}

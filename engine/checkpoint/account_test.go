package checkpoint_test

import (
	"testing"

	"deltafin/engine/checkpoint"
)

// TestOfficialFigures: the lines of spec section 2.4, to the byte.
func TestOfficialFigures(t *testing.T) {
	a := official(t).Account()
	class := func(c checkpoint.Class) int64 { return a.ByClass[c].Bytes }
	text, trunk, total := a.Text(), a.Trunk(), a.Total()
	for _, c := range []struct {
		what      string
		got, want int64
	}{
		{"routed experts", a.Experts, 82_432},
		{"routed experts, bytes", class(checkpoint.RoutedExperts), 1_446_456_066_048},
		{"one expert", a.ExpertBytes, 17_547_264},
		{"one expert, in pages", a.ExpertBytes / 4096, 4284},
		{"shared experts", class(checkpoint.SharedExperts), 24_310_185_984},
		{"latent down, up, norm", class(checkpoint.LatentProjections), 9_454_620_672},
		{"router", class(checkpoint.Router), 1_182_074_880},
		{"attention", class(checkpoint.KDA) + class(checkpoint.MLA), 72_403_670_016},
		{"KDA", class(checkpoint.KDA), 61_258_257_408},
		{"KDA, a layer", class(checkpoint.KDA) / 69, 887_800_832},
		{"MLA", class(checkpoint.MLA), 11_145_412_608},
		{"MLA, a layer", class(checkpoint.MLA) / 24, 464_392_192},
		{"dense", class(checkpoint.Dense), 1_453_326_336},
		{"embeddings", class(checkpoint.Embeddings), 2_348_810_240},
		{"head", class(checkpoint.Head), 2_348_810_240},
		{"norms", class(checkpoint.Norms), 8_042_496},
		{"text without experts", trunk.Bytes, 113_509_540_864},
		{"vision", class(checkpoint.Vision), 894_717_952},
		{"vision tensors", a.ByClass[checkpoint.Vision].Tensors, 168},
		{"text tensors", text.Tensors, 497_052},
		{"text bytes", text.Bytes, 1_559_965_606_912},
		{"all tensors", total.Tensors, officialTensors},
		{"all bytes", total.Bytes, officialBytes},
		{"layer 0", a.LayerBytes[0], 2_341_213_184},
		{"KDA layer with experts", a.LayerBytes[1], 1_267_744_256},
		{"MLA layer with experts", a.LayerBytes[3], 844_335_616},
		{"last layer is MLA", a.LayerBytes[92], 844_335_616},
		{"experts of a layer", a.ExpertBytes * 896, 15_722_348_544},
		{"experts per token", a.ExpertsPerToken, 1472},
		{"expert bytes per token", a.ExpertsBytesPerToken(), 25_829_572_608},
		{"expert bytes per token and layer", a.ExpertsBytesPerToken() / 92, 280_756_224},
		{"embedding row", a.EmbeddingRow, 14_336},
		{"trunk per token", a.TrunkPerToken(), 113_509_540_864 - 2_348_810_240 + 14_336},
		// Section 0: 2.779 T parameters, 104.2 G active, both rounded.
		{"parameters, G", (text.Params + 5e8) / 1e9, 2779},
		{"active parameters, 0.1 G", (a.ActiveParams() + 5e7) / 1e8, 1042},
		// Section 4, in the engine's float32.
		{"KDA state", 4 * a.State.KDA, 434_110_464},
		{"conv rows", 4 * a.State.Conv, 30_523_392},
		{"latents per token, as bf16", 2 * a.State.PerToken, 27_648},
		{"state at 8192, as bf16 + fp32 + bf16", 2*a.State.PerToken*8192 + 4*a.State.KDA + 2*a.State.Conv, 675_864_576},
		{"state at 8192", a.State.Bytes(8192), 434_110_464 + 30_523_392 + 2*226_492_416},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}

func TestAccountOfAnUnquantisedModel(t *testing.T) {
	c := *official(t)
	c.Quantized, c.DType = false, checkpoint.F32
	a := c.Account()
	if want := int64(3 * 3072 * 3584 * 4); a.ExpertBytes != want {
		t.Errorf("float32 expert %d bytes, want %d", a.ExpertBytes, want)
	}
	if s := a.ByClass[checkpoint.RoutedExperts]; s.Tensors != 3*82_432 || s.Bytes != 4*s.Params {
		t.Errorf("routed experts %+v", s)
	}
}

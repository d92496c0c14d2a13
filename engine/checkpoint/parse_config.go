package checkpoint

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
)

// Names of the metadata files of a checkpoint.
const (
	ConfigFile     = "config.json"
	GenerationFile = "generation_config.json"
	IndexFile      = "model.safetensors.index.json"
	SingleFile     = "model.safetensors" // a small checkpoint may be one file without an index
)

// Limits far above every known model of the family. They keep each product of
// two or three sizes inside int64; maxParams bounds the whole.
const (
	maxLayers  = 1 << 10
	maxWidth   = 1 << 20 // any one width
	maxHeads   = 1 << 12
	maxHeadDim = 1 << 12
	maxExperts = 1 << 14
	maxVocab   = 1 << 24
	maxParams  = 1 << 50
)

// groupSize is the number of weights that share a scale in MXFP4.
const groupSize = 32

// ParseConfig reads the text of a config.json: the outer object of the
// multimodal wrapper with its text_config, or a text config alone. An error is a
// *FormatError (not strict JSON) or a *ConfigError (field, its value, the value
// wanted); errors.Is(err, ErrUnsupported) tells another model from a broken file.
func ParseConfig(data []byte) (*Config, error) { return parseConfig(ConfigFile, data) }

func parseConfig(file string, data []byte) (*Config, error) {
	tree, err := parseTree(file, data)
	if err != nil {
		return nil, err
	}
	top := fields{m: tree, err: &err}
	text := top
	if _, nested := tree["text_config"]; nested {
		top.only("model_type", "kimi_k3", false)
		top.architecture("KimiK3ForConditionalGeneration")
		text = top.object("text_config")
	}
	text.only("model_type", "kimi_linear", false)
	text.architecture("KimiLinearForCausalLM")
	c := &Config{}
	c.fixed(top, text)
	c.sizes(text)
	c.mixers(text)
	c.experts(text)
	c.quantization(top, text)
	c.tokens(top, text)
	c.Vision = parseVision(top)
	if err == nil {
		err = c.consistent()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return c, nil
}

// architecture accepts an absent list: some conversions drop it, model_type
// names the architecture already.
func (f fields) architecture(want string) {
	if !f.has("architectures") {
		return
	}
	list, ok := f.m["architectures"].([]any)
	if !ok || len(list) != 1 || list[0] != want {
		f.fail("architectures", fmt.Sprintf("[%q]", want), true)
	}
}

// fixed checks the switches that have one supported position. The last
// argument of only says whether the family's default is that position too.
func (c *Config) fixed(top, text fields) {
	text.only("hidden_act", "situ", false)
	text.only("mla_use_nope", true, false)
	text.only("mla_use_output_gate", true, false)
	text.only("topk_method", "noaux_tc", true)
	text.only("moe_router_activation_func", "sigmoid", true)
	text.only("num_expert_group", number("1"), true)
	text.only("topk_group", number("1"), true)
	text.only("num_nextn_predict_layers", number("0"), true)
	for _, f := range []fields{top, text} {
		f.only("tie_word_embeddings", false, true)
	}
	text.only("attention_bias", false, true)
	for _, key := range []string{"logit_scale", "final_logit_softcapping"} {
		if text.has(key) {
			text.fail(key, "absent", true)
		}
	}
	la := text.object("linear_attn_config")
	la.only("use_full_rank_gate", true, false)
}

func (c *Config) sizes(f fields) {
	c.Layers = f.integer("num_hidden_layers", 1, maxLayers)
	c.Hidden = f.integer("hidden_size", 1, maxWidth)
	c.Vocab = f.integer("vocab_size", 1, maxVocab)
	c.MaxContext = f.integer("max_position_embeddings", 1, 1<<40)
	c.DenseIntermediate = f.integer("intermediate_size", 1, maxWidth)
	c.FirstDense = f.integer("first_k_dense_replace", 0, c.Layers)
	c.MoEFreq = f.optional("moe_layer_freq", 1, maxLayers, 1)
	c.SituBeta = float32(f.real("activation_situ_beta", 1e-3, 1e6))
	c.SituLinearBeta = float32(f.real("activation_situ_linear_beta", 1e-3, 1e6))
	c.ResBlock = f.integer("attn_res_block_size", 1, maxLayers)
	c.Eps = float32(f.real("rms_norm_eps", 1e-12, 1e-1))
	c.DType = BF16
	for _, key := range []string{"torch_dtype", "dtype"} {
		if !f.has(key) {
			continue
		}
		switch f.m[key] {
		case "bfloat16":
			c.DType = BF16
		case "float32":
			c.DType = F32
		default:
			f.fail(key, `"bfloat16" or "float32"`, true)
		}
	}
}

func (c *Config) mixers(f fields) {
	c.Heads = f.integer("num_attention_heads", 1, maxHeads)
	if kv := f.optional("num_key_value_heads", 1, maxHeads, c.Heads); kv != c.Heads {
		f.fail("num_key_value_heads", fmt.Sprintf("num_attention_heads, %d", c.Heads), true)
	}
	c.QLoRA = f.integer("q_lora_rank", 1, maxWidth)
	c.KVLoRA = f.integer("kv_lora_rank", 1, maxWidth)
	c.QKNope = f.integer("qk_nope_head_dim", 1, maxHeadDim)
	c.QKRope = f.integer("qk_rope_head_dim", 1, maxHeadDim)
	c.VHead = f.integer("v_head_dim", 1, maxHeadDim)
	la := f.object("linear_attn_config")
	c.KDAHeads = la.integer("num_heads", 1, maxHeads)
	c.KDAHeadDim = la.integer("head_dim", 1, maxHeadDim)
	c.ConvKernel = la.integer("short_conv_kernel_size", 2, 64)
	if la.has("gate_lower_bound") {
		// Below about -87 one step's decay leaves the range of float32.
		c.GateLowerBound = float32(la.real("gate_lower_bound", -80, -1e-6))
		c.HasGateLowerBound = true
	}
	c.layerKinds(la)
}

// layerKinds demands that the two lists cover 1..Layers exactly once.
func (c *Config) layerKinds(la fields) {
	const mlaKey, kdaKey = "full_attn_layers", "kda_layers"
	mla, kda := la.layers(mlaKey, c.Layers), la.layers(kdaKey, c.Layers)
	if *la.err != nil {
		return
	}
	seen := make([]int, c.Layers)
	c.MLALayer = make([]bool, c.Layers)
	for _, l := range mla {
		seen[l-1]++
		c.MLALayer[l-1] = true
	}
	for _, l := range kda {
		seen[l-1]++
	}
	for l, n := range seen {
		if n != 1 {
			*la.err = &ConfigError{Field: la.path + mlaKey + " and " + kdaKey,
				Got:  fmt.Sprintf("a pair of lists with layer %d in %d places", l+1, n),
				Want: fmt.Sprintf("each layer from 1 to num_hidden_layers, %d, once", c.Layers)}
			return
		}
	}
}

func (c *Config) experts(f fields) {
	c.Experts = f.integer("num_experts", 1, maxExperts)
	c.TopK = f.integer("num_experts_per_token", 1, c.Experts)
	c.SharedExperts = f.integer("num_shared_experts", 1, 1<<10)
	c.ExpertIntermediate = f.integer("moe_intermediate_size", 1, maxWidth)
	c.Latent = f.integer("routed_expert_hidden_size", 1, maxWidth)
	c.LatentNorm = f.boolean("latent_moe_use_norm", false)
	c.Renormalize = f.boolean("moe_renormalize", true)
	c.RoutedScale = 1
	if f.has("routed_scaling_factor") {
		c.RoutedScale = float32(f.real("routed_scaling_factor", 1e-6, 1e6))
	}
}

// quantization accepts one scheme, MXFP4 weights with unquantised activations,
// wherever the object stands.
func (c *Config) quantization(top, text fields) {
	for _, f := range []fields{top, text} {
		if !f.has("quantization_config") || *f.err != nil {
			continue
		}
		c.Quantized = true
		q := f.object("quantization_config")
		q.only("quant_method", "compressed-tensors", false)
		q.only("format", "mxfp4-pack-quantized", false)
		q.only("kv_cache_scheme", nil, true)
		groups := q.object("config_groups")
		for _, name := range slices.Sorted(maps.Keys(groups.m)) {
			g := groups.object(name)
			g.only("format", "mxfp4-pack-quantized", true)
			g.only("input_activations", nil, true)
			g.only("output_activations", nil, true)
			w := g.object("weights")
			w.only("num_bits", number("4"), false)
			w.only("type", "float", false)
			w.only("group_size", number("32"), false)
			w.only("strategy", "group", true)
			w.only("symmetric", true, true)
			w.only("dynamic", false, true)
		}
	}
	if c.Quantized && *text.err == nil {
		*text.err = c.groups()
	}
}

// groups checks that the expert matrices are made of whole MXFP4 groups.
func (c *Config) groups() error {
	for _, f := range []struct {
		key string
		n   int
	}{{"moe_intermediate_size", c.ExpertIntermediate}, {"routed_expert_hidden_size", c.Latent}} {
		if f.n%groupSize != 0 {
			return &ConfigError{Field: "text_config." + f.key, Got: strconv.Itoa(f.n), Unsupported: true,
				Want: fmt.Sprintf("a multiple of the MXFP4 group size, %d", groupSize)}
		}
	}
	return nil
}

// tokens takes the ids of the outer level first, as the official tools do.
func (c *Config) tokens(top, text fields) {
	one := func(key string) int {
		for _, f := range []fields{top, text} {
			if ids := f.tokens(key, c.Vocab); len(ids) > 0 {
				return ids[0]
			}
		}
		return -1
	}
	c.BOS, c.EOS, c.Pad = one("bos_token_id"), one("eos_token_id"), one("pad_token_id")
}

// parseVision never refuses: the engine does not run the tower.
func parseVision(top fields) *VisionConfig {
	m, ok := top.m["vision_config"].(map[string]any)
	if !ok {
		return nil
	}
	var err error
	f := fields{path: "vision_config.", m: m, err: &err}
	v := &VisionConfig{
		Layers: f.integer("vt_num_hidden_layers", 1, maxLayers), Hidden: f.integer("vt_hidden_size", 1, maxWidth),
		QKV: f.integer("qkv_hidden_size", 1, maxWidth), Intermediate: f.integer("vt_intermediate_size", 1, maxWidth),
		Patch: f.integer("patch_size", 1, 1<<10), Height: f.integer("init_pos_emb_height", 1, 1<<10),
		Width: f.integer("init_pos_emb_width", 1, 1<<10), Merge: 1,
	}
	kernel, _ := m["merge_kernel_size"].([]any)
	for i := range kernel {
		k := fields{m: map[string]any{"merge": kernel[i]}, err: &err}
		v.Merge *= k.integer("merge", 1, 1<<4)
		if v.Merge > 1<<8 {
			return nil
		}
	}
	if err != nil || len(kernel) != 2 {
		return nil
	}
	return v
}

// consistent checks what involves several fields. The parameter count is taken
// in floating point so that absurd sizes cannot wrap around on the way.
func (c *Config) consistent() error {
	inner := float64(max(c.KDAInner(), c.MLAInner(), c.Heads*(c.QKNope+c.QKRope)))
	h, layers := float64(c.Hidden), float64(c.Layers)
	params := 2*float64(c.Vocab)*h +
		layers*(6*inner*h+3*h*float64(max(c.DenseIntermediate, c.SharedIntermediate()))) +
		layers*inner*float64(c.QLoRA+2*c.KVLoRA) +
		layers*float64(c.Experts)*3*float64(c.ExpertIntermediate)*float64(c.Latent)
	if params > maxParams || math.IsNaN(params) {
		return &ConfigError{Field: "text_config", Got: fmt.Sprintf("a model of about %.3g parameters", params),
			Want: fmt.Sprintf("at most %.3g", float64(maxParams))}
	}
	return nil
}

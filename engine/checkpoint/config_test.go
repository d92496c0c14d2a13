package checkpoint_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"deltafin/engine/checkpoint"
)

func TestOfficialConfig(t *testing.T) {
	c := official(t)
	if c.Layers != 93 || c.Hidden != 7168 || c.Vocab != 163840 || c.MaxContext != 1048576 ||
		c.Experts != 896 || c.TopK != 16 || c.Latent != 3584 || c.ExpertIntermediate != 3072 || c.SharedIntermediate() != 6144 ||
		c.KDAInner() != 12288 || c.MLAInner() != 12288 || c.MLALayers() != 24 || c.MoELayers() != 92 {
		t.Errorf("%+v", c)
	}
	for l, mla := range c.MLALayer {
		if mla != (l%4 == 3 || l == 92) {
			t.Errorf("layer %d MLA: %v", l, mla)
		}
	}
	if !c.HasGateLowerBound || c.GateLowerBound != -5 || c.Eps != 1e-5 || c.SituBeta != 4 || c.SituLinearBeta != 25 ||
		c.ResBlock != 12 || c.RoutedScale != 1 || !c.Renormalize || !c.LatentNorm || !c.Quantized || c.DType != checkpoint.BF16 {
		t.Errorf("%+v", c)
	}
	if c.BOS != 163584 || c.EOS != 163586 || c.Pad != 163839 || c.MoE(0) || !c.MoE(1) || c.Vision == nil {
		t.Errorf("%+v", c)
	}
}

// edited changes the official config: fields by dotted path, nil deletes,
// null sets null.
type null struct{}

func edited(t testing.TB, changes map[string]any) []byte {
	t.Helper()
	var top map[string]any
	if err := json.Unmarshal(officialText(t), &top); err != nil {
		t.Fatal(err)
	}
	for path, v := range changes {
		at, m := strings.Split(path, "."), top
		for _, key := range at[:len(at)-1] {
			m = m[key].(map[string]any)
		}
		last := at[len(at)-1]
		switch v.(type) {
		case nil:
			delete(m, last)
		case null:
			m[last] = nil
		default:
			m[last] = v
		}
	}
	b, err := json.Marshal(top)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestOtherModelsAreRefused: the message names field, value and what runs.
func TestOtherModelsAreRefused(t *testing.T) {
	const q = "text_config.quantization_config."
	for _, c := range []struct {
		field string
		value any
		says  string
	}{
		{"model_type", "deepseek_v3", `"deepseek_v3", this engine needs "kimi_k3"`},
		{"architectures", []string{"LlamaForCausalLM"}, `["LlamaForCausalLM"], this engine needs ["KimiK3ForConditionalGeneration"]`},
		{"text_config.model_type", "llama", `"llama", this engine needs "kimi_linear"`},
		{"text_config.architectures", []string{"A", "B"}, `["A", "B"], this engine needs ["KimiLinearForCausalLM"]`},
		{"text_config.hidden_act", "silu", `"silu", this engine needs "situ"`},
		{"text_config.hidden_act", nil, `absent, this engine needs "situ"`},
		{"text_config.mla_use_nope", false, "false, this engine needs true"},
		{"text_config.mla_use_output_gate", false, "false, this engine needs true"},
		{"text_config.topk_method", "greedy", `"greedy", this engine needs "noaux_tc"`},
		{"text_config.moe_router_activation_func", "softmax", `"softmax", this engine needs "sigmoid"`},
		{"text_config.num_expert_group", 8, "8, this engine needs 1"},
		{"text_config.topk_group", 4, "4, this engine needs 1"},
		{"text_config.num_nextn_predict_layers", 1, "1, this engine needs 0"},
		{"text_config.tie_word_embeddings", true, "true, this engine needs false"},
		{"tie_word_embeddings", true, "true, this engine needs false"},
		{"text_config.attention_bias", true, "true, this engine needs false"},
		{"text_config.logit_scale", 0.5, "0.5, this engine needs absent"},
		{"text_config.linear_attn_config.use_full_rank_gate", false, "false, this engine needs true"},
		{"text_config.linear_attn_config.use_full_rank_gate", nil, "absent, this engine needs true"},
		{"text_config.num_key_value_heads", 8, "8, this engine needs num_attention_heads, 96"},
		{"text_config.dtype", "float16", `"float16", this engine needs "bfloat16" or "float32"`},
		{"text_config.routed_expert_hidden_size", 3600, "3600, this engine needs a multiple of the MXFP4 group size, 32"},
		{q + "quant_method", "fp8", `"fp8", this engine needs "compressed-tensors"`},
		{q + "format", "nvfp4-pack-quantized", `"nvfp4-pack-quantized", this engine needs "mxfp4-pack-quantized"`},
		{q + "config_groups.group_0.weights.group_size", 16, "16, this engine needs 32"},
		{q + "config_groups.group_0.weights.num_bits", 8, "8, this engine needs 4"},
		{q + "config_groups.group_0.weights.type", "int", `"int", this engine needs "float"`},
		{q + "config_groups.group_0.weights.symmetric", false, "false, this engine needs true"},
		{q + "config_groups.group_0.input_activations", map[string]any{"num_bits": 4}, "an object, this engine needs null"},
	} {
		_, err := checkpoint.ParseConfig(edited(t, map[string]any{c.field: c.value}))
		if !errors.Is(err, checkpoint.ErrUnsupported) {
			t.Errorf("%s = %v: %v is not ErrUnsupported", c.field, c.value, err)
		}
		if want := "config.json: " + c.field + " is " + c.says; err == nil || err.Error() != want {
			t.Errorf("%s = %v:\n got %v\nwant %s", c.field, c.value, err, want)
		}
	}
}

// TestBrokenConfigs: values of the right model that cannot be.
func TestBrokenConfigs(t *testing.T) {
	const la = "text_config.linear_attn_config."
	for _, c := range []struct {
		field string
		value any
		says  []string
	}{
		{"text_config", 5, []string{"text_config is 5", "an object"}},
		{"text_config.num_hidden_layers", nil, []string{"absent", "1 to 1024"}},
		{"text_config.num_hidden_layers", null{}, []string{"null"}},
		{"text_config.num_hidden_layers", 0, []string{"is 0"}},
		{"text_config.num_hidden_layers", -3, []string{"is -3"}},
		{"text_config.num_hidden_layers", 93.5, []string{"is 93.5"}},
		{"text_config.num_hidden_layers", "93", []string{`is "93"`}},
		{"text_config.num_hidden_layers", 1e30, []string{"1e+30"}},
		{"text_config.num_hidden_layers", 94, []string{la, "layer 94 in 0 places", "94, once"}},
		{"text_config.hidden_size", json.Number("99999999999999999999"), []string{"99999999999999999999"}},
		{"text_config.vocab_size", 1 << 40, []string{"1099511627776"}},
		{"text_config.num_experts_per_token", 897, []string{"897", "1 to 896"}},
		{"text_config.num_shared_experts", 0, []string{"is 0"}},
		{"text_config.rms_norm_eps", 0, []string{"is 0"}},
		{"text_config.rms_norm_eps", true, []string{"is true"}},
		{"text_config.latent_moe_use_norm", "yes", []string{`"yes"`, "true or false"}},
		{"text_config.q_lora_rank", null{}, []string{"null"}},
		{"text_config.routed_expert_hidden_size", nil, []string{"absent"}},
		{"text_config.attn_res_block_size", nil, []string{"absent"}},
		{"eos_token_id", 163840, []string{"163840", "163839"}},
		{"bos_token_id", "x", []string{`"x"`}},
		{la + "gate_lower_bound", 5, []string{"is 5"}},
		{la + "gate_lower_bound", -1e9, []string{"-80"}},
		{la + "short_conv_kernel_size", 1, []string{"is 1"}},
		{la + "full_attn_layers", "4", []string{`"4"`, "counted from 1"}},
		{la + "full_attn_layers", []int{0}, []string{"full_attn_layers[0] is 0", "from 1 to num_hidden_layers, 93"}},
		{la + "full_attn_layers", []int{4, 94}, []string{"full_attn_layers[1] is 94"}},
		{la + "full_attn_layers", []int{4, 8}, []string{"layer 12 in 0 places"}},
		{la + "kda_layers", []int{1, 4}, []string{"layer 2 in 0 places"}},
	} {
		_, err := checkpoint.ParseConfig(edited(t, map[string]any{c.field: c.value}))
		var ce *checkpoint.ConfigError
		if !errors.As(err, &ce) || ce.Unsupported {
			t.Errorf("%s = %v: %v", c.field, c.value, err)
			continue
		}
		if key := c.field[strings.LastIndex(c.field, ".")+1:]; !strings.Contains(err.Error(), key) && !strings.Contains(c.says[0], la) {
			t.Errorf("%s = %v: %v does not name the field", c.field, c.value, err)
		}
		for _, s := range c.says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%s = %v: %v does not say %q", c.field, c.value, err, s)
			}
		}
	}
}

func TestSizesThatMultiplyBeyondReason(t *testing.T) {
	_, err := checkpoint.ParseConfig(edited(t, map[string]any{
		"text_config.moe_intermediate_size": 1 << 20, "text_config.routed_expert_hidden_size": 1 << 20,
		"text_config.num_experts": 1 << 14,
	}))
	if err == nil || !strings.Contains(err.Error(), "parameters") {
		t.Errorf("%v", err)
	}
}

func TestConfigDefaultsAndForms(t *testing.T) {
	// What the public twins leave out.
	for _, key := range []string{"moe_layer_freq", "topk_method", "num_expert_group", "topk_group", "moe_renormalize",
		"routed_scaling_factor", "moe_router_activation_func", "num_nextn_predict_layers", "num_key_value_heads",
		"quantization_config", "architectures", "linear_attn_config.gate_lower_bound"} {
		c, err := checkpoint.ParseConfig(edited(t, map[string]any{"text_config." + key: nil}))
		if err != nil {
			t.Errorf("without %s: %v", key, err)
			continue
		}
		if !c.Renormalize || c.RoutedScale != 1 || c.MoEFreq != 1 {
			t.Errorf("without %s: %+v", key, c)
		}
		if c.Quantized != (key != "quantization_config") || c.HasGateLowerBound != (!strings.HasSuffix(key, "gate_lower_bound")) {
			t.Errorf("without %s: %+v", key, c)
		}
	}
	// The text config alone, and a list of stop ids.
	var top map[string]json.RawMessage
	if err := json.Unmarshal(edited(t, map[string]any{"text_config.eos_token_id": []int{7, 8}}), &top); err != nil {
		t.Fatal(err)
	}
	c, err := checkpoint.ParseConfig(top["text_config"])
	if err != nil || c.EOS != 7 || c.Vision != nil {
		t.Errorf("text config alone: %+v, %v", c, err)
	}
}

func TestConfigMustBeStrictJSON(t *testing.T) {
	for in, says := range map[string]string{
		"":                           "JSON ends where '{' must follow",
		"[]":                         "'[' where '{' must follow",
		`{"a":1}x`:                   "at byte 7",
		`{"a":1,"a":2}`:              `name "a" stands twice`,
		`{"a":{"b":1,"b":2}}`:        `name "b" stands twice`,
		"{\"a\":\"\xff\"}":           "UTF-8",
		`{"a":01}`:                   "malformed number",
		`{"a":1.}`:                   "malformed number",
		`{"a":-}`:                    "a number must follow",
		`{"a":nul}`:                  "malformed literal",
		`{"a":"\q"}`:                 "unknown escape",
		`{"a":"\ud800"}`:             `malformed \u escape`,
		`{"a" 1}`:                    "at byte 5",
		`{"a":1`:                     "JSON ends",
		"{\"a\n\":1}":                "control character",
		strings.Repeat(`{"a":`, 100): "nested deeper than 64",
		strings.Repeat(`[`, 100000):  "must follow",
	} {
		_, err := checkpoint.ParseConfig([]byte(in))
		var fe *checkpoint.FormatError
		if !errors.As(err, &fe) || fe.Offset < 0 || !strings.Contains(err.Error(), says) {
			t.Errorf("%.40q: %v, want %q", in, err, says)
		}
	}
}

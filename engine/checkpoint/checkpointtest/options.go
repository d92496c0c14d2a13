package checkpointtest

import "deltafin/engine/checkpoint"

// ALogForm is how A_log of a KDA layer is stored; the values are the same.
type ALogForm int

// The forms of A_log that occur.
const (
	Padded ALogForm = iota // [KDAHeadDim], zeros beyond the heads, as the official files do
	Bare                   // [KDAHeads]
	Nested                 // [1, 1, KDAHeads, 1]
)

// Options describe a checkpoint. The zero value of everything but Config is the
// official form.
type Options struct {
	Config checkpoint.Config       // sizes and switches; start from Small
	Format checkpoint.ExpertFormat // MXFP4, or Plain for the unquantised twins
	ALog   ALogForm
	// NoPrefix leaves "language_model." away.
	NoPrefix bool
	// Single writes one model.safetensors without an index.
	Single bool
	// Vision adds two shards with tensors of the vision tower and projector.
	Vision bool
	// Scatter puts other tensors between those of each expert.
	Scatter bool
}

// Small is a config with everything in it: five layers, MLA in the second and the
// last two of them, a dense layer 0, residual blocks of 2, two KDA heads of 32 and
// three MLA heads, top 2 of 5 experts. It makes about 300 KB.
func Small() checkpoint.Config {
	return checkpoint.Config{
		Layers: 5, Hidden: 48, Vocab: 512, MaxContext: 4096,
		DenseIntermediate: 80, FirstDense: 1, MoEFreq: 1,
		Heads: 3, QLoRA: 24, KVLoRA: 20, QKNope: 16, QKRope: 8, VHead: 12,
		KDAHeads: 2, KDAHeadDim: 32, ConvKernel: 4, GateLowerBound: -5, HasGateLowerBound: true,
		MLALayer: []bool{false, true, false, true, true},
		Experts:  5, TopK: 2, SharedExperts: 2, ExpertIntermediate: 32, Latent: 32,
		RoutedScale: 1, Renormalize: true, LatentNorm: true,
		SituBeta: 4, SituLinearBeta: 25, ResBlock: 2, Eps: 1e-5,
		BOS: 256, EOS: 258, Pad: 511, Quantized: true, DType: checkpoint.BF16,
	}
}

// Twin is Small in the manner of the public trained twins: no lower bound of
// the forget gate (softplus form), float32, one shared expert.
func Twin() checkpoint.Config {
	c := Small()
	c.HasGateLowerBound, c.GateLowerBound = false, 0
	c.DType, c.Quantized, c.SharedExperts = checkpoint.F32, false, 1
	return c
}

// tree is the config in the layout of config.json.
func tree(c *checkpoint.Config) map[string]any {
	var mla, kda []int
	for l, full := range c.MLALayer {
		if full {
			mla = append(mla, l+1)
		} else {
			kda = append(kda, l+1)
		}
	}
	linear := map[string]any{
		"num_heads": c.KDAHeads, "head_dim": c.KDAHeadDim, "short_conv_kernel_size": c.ConvKernel,
		"use_full_rank_gate": true, "full_attn_layers": mla, "kda_layers": kda,
	}
	if c.HasGateLowerBound {
		linear["gate_lower_bound"] = c.GateLowerBound
	}
	dtype := "bfloat16"
	if c.DType == checkpoint.F32 {
		dtype = "float32"
	}
	text := map[string]any{
		"architectures": []string{"KimiLinearForCausalLM"}, "model_type": "kimi_linear", "dtype": dtype,
		"num_hidden_layers": c.Layers, "hidden_size": c.Hidden, "vocab_size": c.Vocab, "max_position_embeddings": c.MaxContext,
		"intermediate_size": c.DenseIntermediate, "first_k_dense_replace": c.FirstDense, "moe_layer_freq": c.MoEFreq,
		"num_attention_heads": c.Heads, "num_key_value_heads": c.Heads, "q_lora_rank": c.QLoRA, "kv_lora_rank": c.KVLoRA,
		"qk_nope_head_dim": c.QKNope, "qk_rope_head_dim": c.QKRope, "v_head_dim": c.VHead,
		"mla_use_nope": true, "mla_use_output_gate": true, "linear_attn_config": linear,
		"num_experts": c.Experts, "num_experts_per_token": c.TopK, "num_shared_experts": c.SharedExperts,
		"moe_intermediate_size": c.ExpertIntermediate, "routed_expert_hidden_size": c.Latent,
		"latent_moe_use_norm": c.LatentNorm, "moe_renormalize": c.Renormalize, "routed_scaling_factor": c.RoutedScale,
		"moe_router_activation_func": "sigmoid", "topk_method": "noaux_tc",
		"use_grouped_topk": true, "num_expert_group": 1, "topk_group": 1, "num_nextn_predict_layers": 0,
		"hidden_act": "situ", "activation_situ_beta": c.SituBeta, "activation_situ_linear_beta": c.SituLinearBeta,
		"attn_res_block_size": c.ResBlock, "rms_norm_eps": c.Eps, "tie_word_embeddings": false,
	}
	if c.Quantized {
		text["quantization_config"] = map[string]any{
			"quant_method": "compressed-tensors", "format": "mxfp4-pack-quantized", "kv_cache_scheme": nil,
			"config_groups": map[string]any{"group_0": map[string]any{
				"format": "mxfp4-pack-quantized", "targets": []string{"Linear"}, "input_activations": nil,
				"weights": map[string]any{"num_bits": 4, "type": "float", "group_size": 32, "strategy": "group",
					"symmetric": true, "dynamic": false},
			}},
		}
	}
	return map[string]any{
		"architectures": []string{"KimiK3ForConditionalGeneration"}, "model_type": "kimi_k3", "dtype": dtype,
		"bos_token_id": c.BOS, "eos_token_id": c.EOS, "pad_token_id": c.Pad, "tie_word_embeddings": false,
		"text_config": text,
	}
}

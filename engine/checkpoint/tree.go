package checkpoint

// Tree is the config in the layout of config.json, for encoding/json: ParseConfig of
// it gives the config back, but for Vision.
func (c *Config) Tree() map[string]any {
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
	if c.DType == F32 {
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

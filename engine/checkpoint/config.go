package checkpoint

// Config holds the numbers of the text model, checked: every count is within
// sane limits, the layer lists cover every layer once, and no switch asks for
// what the engine does not have. Keys in the comments are those of config.json,
// inside text_config unless marked. Shapes are [out, in]. Spec section 1.
type Config struct {
	Layers     int // num_hidden_layers
	Hidden     int // hidden_size: width of the residual stream
	Vocab      int // vocab_size: rows of embedding and head
	MaxContext int // max_position_embeddings: positions; there is no table behind it

	DenseIntermediate int // intermediate_size: width of the dense feed-forward
	FirstDense        int // first_k_dense_replace: layers before this one are dense
	MoEFreq           int // moe_layer_freq: from FirstDense on, every MoEFreq-th layer (l mod MoEFreq == 0) has experts

	Heads  int // num_attention_heads of the MLA layers
	QLoRA  int // q_lora_rank: width of the query latent
	KVLoRA int // kv_lora_rank: width of the cached latent
	QKNope int // qk_nope_head_dim: per head, the part of q and k made from the latents
	QKRope int // qk_rope_head_dim: per head, the part shared by all keys; not rotated
	VHead  int // v_head_dim: per head, width of the values

	KDAHeads   int // linear_attn_config.num_heads
	KDAHeadDim int // linear_attn_config.head_dim: key and value channels of a head, and the rank of the forget gate
	ConvKernel int // linear_attn_config.short_conv_kernel_size: taps, the current token included

	// GateLowerBound is linear_attn_config.gate_lower_bound: log-decay =
	// GateLowerBound * sigmoid(exp(A) * (f + dt)). Without the key
	// (HasGateLowerBound false) it is -exp(A) * softplus(f + dt).
	GateLowerBound    float32
	HasGateLowerBound bool

	MLALayer []bool // [Layers] true: gated MLA, false: KDA; from full_attn_layers and kda_layers, which count from 1

	Experts            int // num_experts: routed experts of a layer
	TopK               int // num_experts_per_token
	SharedExperts      int // num_shared_experts: together one MLP of SharedExperts*ExpertIntermediate
	ExpertIntermediate int // moe_intermediate_size
	Latent             int // routed_expert_hidden_size: width that routed experts work on

	RoutedScale float32 // routed_scaling_factor: on the weights, after renormalising
	Renormalize bool    // moe_renormalize: the chosen weights sum to 1
	LatentNorm  bool    // latent_moe_use_norm: RMSNorm on the weighted sum of experts

	SituBeta       float32 // activation_situ_beta: bound of the gate's tanh
	SituLinearBeta float32 // activation_situ_linear_beta: bound of the up branch's tanh

	ResBlock int     // attn_res_block_size: layers per bank entry of the attention residuals
	Eps      float32 // rms_norm_eps: all norms but the two of the MLA latents

	BOS, EOS, Pad int // bos_token_id, eos_token_id (the first of a list), pad_token_id; outer level first; -1 if absent

	Quantized bool  // quantization_config is there: routed experts are MXFP4 (the files have the last word)
	DType     DType // dtype (or torch_dtype) of the unquantised matrices: BF16 or F32

	Vision *VisionConfig // vision_config of the outer level, nil if absent or of another form; for accounting only
}

// VisionConfig has the sizes of the vision tower and its projector. The engine
// does not run it; they explain the bytes of a full download. Spec section 2.2.
type VisionConfig struct {
	Layers, Hidden, QKV, Intermediate int // vt_num_hidden_layers, vt_hidden_size, qkv_hidden_size, vt_intermediate_size
	Patch, Height, Width              int // patch_size, init_pos_emb_height, init_pos_emb_width
	Merge                             int // product of merge_kernel_size
}

// KDAInner is the width of q, k and v of a KDA layer: all heads together.
func (c *Config) KDAInner() int { return c.KDAHeads * c.KDAHeadDim }

// MLAInner is the width of the concatenated MLA head outputs and of their gate.
func (c *Config) MLAInner() int { return c.Heads * c.VHead }

// SharedIntermediate is the width of the shared experts, fused as one MLP.
func (c *Config) SharedIntermediate() int { return c.SharedExperts * c.ExpertIntermediate }

// MoE reports whether a layer (from 0) has routed experts.
func (c *Config) MoE(layer int) bool {
	return layer >= c.FirstDense && layer%c.MoEFreq == 0
}

// MoELayers counts the layers with routed experts.
func (c *Config) MoELayers() int {
	n := 0
	for l := range c.Layers {
		if c.MoE(l) {
			n++
		}
	}
	return n
}

// MLALayers counts the layers with gated MLA; the others have KDA.
func (c *Config) MLALayers() int {
	n := 0
	for _, mla := range c.MLALayer {
		if mla {
			n++
		}
	}
	return n
}

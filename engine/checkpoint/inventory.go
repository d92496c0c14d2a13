package checkpoint

// A Class groups tensors by what they are for, as spec section 2.4 does.
type Class int

// The classes of tensors.
const (
	RoutedExperts Class = iota
	SharedExperts
	LatentProjections // down, norm and up around the routed experts
	Router            // gate and selection bias
	KDA               // mixers of the KDA layers, without their input norm
	MLA               // mixers of the MLA layers, without their input norm
	Dense             // feed-forward of the dense layers
	Embeddings
	Head
	Norms  // Hidden-wide norms and the vectors of the attention residuals
	Vision // vision tower and projector, not run
	NumClasses
)

var classNames = [NumClasses]string{"routed experts", "shared experts", "latent projections", "router",
	"KDA attention", "MLA attention", "dense", "embeddings", "head", "norms", "vision"}

// String names the class for a table.
func (c Class) String() string { return classNames[c] }

// A Spec is one tensor that the config calls for.
type Spec struct {
	Name    string // in the text model, without the wrapper prefix
	Class   Class
	Layer   int   // from 0, -1 outside the layers
	DType   DType // what the official files have, or F32 where the config's dtype is float32
	Allowed DType // set of what the engine takes
	Shape   []int
}

// Each calls visit for every tensor of the text model but the routed experts, in
// the order of a forward pass, until visit returns false. It is the one place
// that states names and shapes. Spec section 2.2.
func (c *Config) Each(visit func(Spec) bool) {
	i := inventory{c: c, visit: visit, layer: -1}
	h := c.Hidden
	i.class = Embeddings
	i.matrix("model.embed_tokens.weight", c.Vocab, h)
	for l := range c.Layers {
		i.prefix, i.layer = LayerName(l, ""), l
		i.class = Norms
		i.vector("input_layernorm.weight", h)
		i.vector("post_attention_layernorm.weight", h)
		for _, site := range []string{"self_attention", "mlp"} {
			i.vector(site+"_res_norm.weight", h)
			i.vector(site+"_res_proj.weight", 1, h)
		}
		if c.MLALayer[l] {
			i.mla()
		} else {
			i.kda()
		}
		if c.MoE(l) {
			i.moe()
		} else {
			i.class = Dense
			i.mlp("mlp.", c.DenseIntermediate)
		}
	}
	i.prefix, i.layer, i.class = "", -1, Norms
	i.vector("model.output_attn_res_norm.weight", h)
	i.vector("model.output_attn_res_proj.weight", 1, h)
	i.vector("model.norm.weight", h)
	i.class = Head
	i.matrix("lm_head.weight", c.Vocab, h)
}

// inventory carries what the tensors of a group share.
type inventory struct {
	c      *Config
	visit  func(Spec) bool
	prefix string
	layer  int
	class  Class
	done   bool
}

func (i *inventory) add(dt DType, name string, shape []int) {
	if !i.done {
		i.done = !i.visit(Spec{Name: i.prefix + name, Class: i.class, Layer: i.layer, DType: dt, Allowed: Float, Shape: shape})
	}
}

// matrix and vector have the checkpoint's dtype; exact is F32 in every one.
func (i *inventory) matrix(name string, shape ...int) { i.add(i.c.DType, name, shape) }
func (i *inventory) vector(name string, shape ...int) { i.add(i.c.DType, name, shape) }
func (i *inventory) exact(name string, shape ...int)  { i.add(F32, name, shape) }

func (i *inventory) mlp(prefix string, width int) {
	i.matrix(prefix+"gate_proj.weight", width, i.c.Hidden)
	i.matrix(prefix+"up_proj.weight", width, i.c.Hidden)
	i.matrix(prefix+"down_proj.weight", i.c.Hidden, width)
}

func (i *inventory) kda() {
	c, inner := i.c, i.c.KDAInner()
	i.class = KDA
	for _, s := range []string{"q", "k", "v"} {
		i.matrix("self_attn."+s+"_proj.weight", inner, c.Hidden)
		i.exact("self_attn."+s+"_conv1d.weight", inner, 1, c.ConvKernel)
	}
	i.matrix("self_attn.f_a_proj.weight", c.KDAHeadDim, c.Hidden)
	i.matrix("self_attn.f_b_proj.weight", inner, c.KDAHeadDim)
	i.matrix("self_attn.b_proj.weight", c.KDAHeads, c.Hidden)
	i.exact(aLog, c.aLogLength())
	i.exact("self_attn.dt_bias", inner)
	i.exact("self_attn.o_norm.weight", c.KDAHeadDim)
	i.matrix("self_attn.g_proj.weight", inner, c.Hidden)
	i.matrix("self_attn.o_proj.weight", c.Hidden, inner)
}

// aLog is the one tensor with more than one accepted shape, see ALog.
const aLog = "self_attn.A_log"

// aLogLength is the length of A_log in official files: the 96 heads are padded
// to 128. The rule behind it is not known; the head width gives that number and
// those of the demonstration model.
func (c *Config) aLogLength() int { return max(c.KDAHeads, c.KDAHeadDim) }

func (i *inventory) mla() {
	c, inner := i.c, i.c.MLAInner()
	i.class = MLA
	i.matrix("self_attn.q_a_proj.weight", c.QLoRA, c.Hidden)
	i.vector("self_attn.q_a_layernorm.weight", c.QLoRA)
	i.matrix("self_attn.q_b_proj.weight", c.Heads*(c.QKNope+c.QKRope), c.QLoRA)
	i.matrix("self_attn.kv_a_proj_with_mqa.weight", c.KVLoRA+c.QKRope, c.Hidden)
	i.vector("self_attn.kv_a_layernorm.weight", c.KVLoRA)
	i.matrix("self_attn.kv_b_proj.weight", c.Heads*(c.QKNope+c.VHead), c.KVLoRA)
	i.matrix("self_attn.g_proj.weight", inner, c.Hidden)
	i.matrix("self_attn.o_proj.weight", c.Hidden, inner)
}

func (i *inventory) moe() {
	c := i.c
	i.class = Router
	i.matrix("block_sparse_moe.gate.weight", c.Experts, c.Hidden)
	i.exact("block_sparse_moe.gate.e_score_correction_bias", c.Experts)
	i.class = LatentProjections
	i.matrix("block_sparse_moe.routed_expert_down_proj.weight", c.Latent, c.Hidden)
	if c.LatentNorm {
		i.vector("block_sparse_moe.routed_expert_norm.weight", c.Latent)
	}
	i.matrix("block_sparse_moe.routed_expert_up_proj.weight", c.Hidden, c.Latent)
	i.class = SharedExperts
	i.mlp("block_sparse_moe.shared_experts.", c.SharedIntermediate())
}

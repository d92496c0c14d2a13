package checkpoint

// A Sum counts tensors.
type Sum struct {
	Tensors int64
	Params  int64 // weights; MXFP4 scales are not parameters
	Bytes   int64 // as stored, without file headers
}

func (s *Sum) add(o Sum) {
	s.Tensors += o.Tensors
	s.Params += o.Params
	s.Bytes += o.Bytes
}

// An Account says where parameters and bytes of a model go. It follows from the
// config alone, so that it can be shown before anything is downloaded. For the
// official config it gives the figures of spec sections 2.4 and 4.
type Account struct {
	ByClass [NumClasses]Sum
	Format  ExpertFormat

	Experts         int64 // routed experts in all layers
	ExpertBytes     int64 // one of them
	ExpertsPerToken int64 // chosen per token, over all layers
	ExpertParams    int64 // weights of one

	// LayerBytes [Layers] is what stays resident of each layer: all but its
	// routed experts.
	LayerBytes []int64
	// EmbeddingRow is the one row of the embedding table that a token reads.
	EmbeddingRow int64

	State State
}

// State is what a conversation keeps between tokens, in values. The engine
// stores all of it as float32.
type State struct {
	KDA      int64 // recurrent matrices [KDA layers][heads][key][value]
	Conv     int64 // raw q, k, v of the last ConvKernel-1 tokens, KDA layers
	PerToken int64 // MLA latents and shared keys, all MLA layers, for each token
}

// Fixed is the bytes that do not grow with the conversation, as float32.
func (s State) Fixed() int64 { return 4 * (s.KDA + s.Conv) }

// Bytes is the size after n tokens, as float32.
func (s State) Bytes(n int) int64 { return s.Fixed() + 4*s.PerToken*int64(n) }

// Total is everything that a full download holds.
func (a *Account) Total() Sum {
	var t Sum
	for _, s := range a.ByClass {
		t.add(s)
	}
	return t
}

// Text is everything but vision.
func (a *Account) Text() Sum {
	t := a.Total()
	v := a.ByClass[Vision]
	return Sum{t.Tensors - v.Tensors, t.Params - v.Params, t.Bytes - v.Bytes}
}

// Trunk is the text model without its routed experts: what is used for every token.
func (a *Account) Trunk() Sum {
	t := a.Text()
	e := a.ByClass[RoutedExperts]
	return Sum{t.Tensors - e.Tensors, t.Params - e.Params, t.Bytes - e.Bytes}
}

// TrunkPerToken is the bytes of the trunk that a token reads: all but the
// embedding table, and one row of that.
func (a *Account) TrunkPerToken() int64 {
	return a.Trunk().Bytes - a.ByClass[Embeddings].Bytes + a.EmbeddingRow
}

// ExpertsBytesPerToken is the bytes of routed experts that a token reads if none
// is at hand already.
func (a *Account) ExpertsBytesPerToken() int64 { return a.ExpertsPerToken * a.ExpertBytes }

// ActiveParams is the weights that take part in a token, without the embedding table.
func (a *Account) ActiveParams() int64 {
	return a.Trunk().Params - a.ByClass[Embeddings].Params + a.ExpertsPerToken*a.ExpertParams
}

// Account counts the model that the config describes, with the official dtypes;
// experts are MXFP4 if the config is quantised.
func (c *Config) Account() Account {
	if c.Quantized {
		return c.account(MXFP4)
	}
	return c.account(Plain)
}

// Account is Config.Account with the expert format that the files have.
func (c *Checkpoint) Account() Account { return c.cfg.account(c.ExpertFormat()) }

func (c *Config) account(format ExpertFormat) Account {
	a := Account{LayerBytes: make([]int64, c.Layers), Format: format}
	c.Each(func(s Spec) bool {
		n := product(s.Shape)
		bytes := n * s.DType.Bits() / 8
		a.ByClass[s.Class].add(Sum{1, n, bytes})
		if s.Layer >= 0 {
			a.LayerBytes[s.Layer] += bytes
		}
		return true
	})
	a.EmbeddingRow = int64(c.Hidden) * c.DType.Bits() / 8
	c.countExperts(&a)
	if c.Vision != nil {
		a.ByClass[Vision] = c.Vision.sum(c.Hidden)
	}
	kda, mla := int64(c.Layers-c.MLALayers()), int64(c.MLALayers())
	a.State = State{
		KDA:      kda * product([]int{c.KDAHeads, c.KDAHeadDim, c.KDAHeadDim}),
		Conv:     kda * product([]int{3, c.KDAInner(), c.ConvKernel - 1}),
		PerToken: mla * int64(c.KVLoRA+c.QKRope),
	}
	return a
}

func (c *Config) countExperts(a *Account) {
	var one Sum
	for w := 1; w <= 3; w++ {
		rows, cols := c.expertShape(w)
		one.Params += int64(rows) * int64(cols)
		for _, p := range a.Format.parts(rows, cols) {
			dt := p.dtype
			if a.Format == Plain {
				dt = c.DType
			}
			one.Tensors++
			one.Bytes += product(p.shape) * dt.Bits() / 8
		}
	}
	moe := int64(c.MoELayers())
	a.Experts = moe * int64(c.Experts)
	a.ExpertsPerToken = moe * int64(c.TopK)
	a.ExpertBytes, a.ExpertParams = one.Bytes, one.Params
	a.ByClass[RoutedExperts] = Sum{one.Tensors * a.Experts, one.Params * a.Experts, one.Bytes * a.Experts}
}

// sum counts the vision tensors of spec section 2.2, all BF16: per block two
// attention matrices, two feed-forward matrices and two norms; patch embedding
// with its position table, final norm; a projector of two matrices and a norm.
func (v *VisionConfig) sum(hidden int) Sum {
	block := product([]int{3 * v.QKV, v.Hidden}) + product([]int{v.Hidden, v.QKV}) +
		2*product([]int{v.Intermediate, v.Hidden}) + 2*int64(v.Hidden)
	wide := v.Merge * v.Hidden
	rest := product([]int{v.Height, v.Width, v.Hidden}) + product([]int{v.Hidden, 3, v.Patch, v.Patch}) + int64(v.Hidden) +
		product([]int{wide, wide}) + product([]int{hidden, wide}) + int64(hidden)
	n := int64(v.Layers)*block + rest
	return Sum{Tensors: 6*int64(v.Layers) + 6, Params: n, Bytes: 2 * n}
}

// product cannot overflow for shapes of a Config that passed ParseConfig.
func product(shape []int) int64 {
	n := int64(1)
	for _, d := range shape {
		n *= int64(d)
	}
	return n
}

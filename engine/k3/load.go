package k3

import (
	"context"
	"fmt"
	"unsafe"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
)

// Load binds the weights of an opened checkpoint. It checks every name, type and
// shape it uses, so that a Runner never meets a wrong one. The checkpoint must
// stay open as long as the Model is used.
func Load(ck *checkpoint.Checkpoint) (*Model, error) {
	c := ck.Config()
	if c.TopK > maxTopK {
		return nil, fmt.Errorf("config: num_experts_per_token is %d, the most is %d", c.TopK, maxTopK)
	}
	l := loader{ck: ck, names: map[*byte]string{}}
	m := &Model{
		cfg:     c,
		embed:   l.matrix("model.embed_tokens.weight", c.Vocab, c.Hidden),
		head:    l.matrix("lm_head.weight", c.Vocab, c.Hidden),
		norm:    l.vector("model.norm.weight", c.Hidden),
		outRes:  l.folded("model.output_attn_res_norm.weight", "model.output_attn_res_proj.weight", c.Hidden),
		layers:  make([]layer, c.Layers),
		experts: mapped{ck},
		names:   l.names,
	}
	for i := range m.layers {
		m.layers[i] = l.layer(c, i)
	}
	if l.err != nil {
		return nil, l.err
	}
	return m, nil
}

// loader fetches tensors and keeps the first error.
type loader struct {
	ck    *checkpoint.Checkpoint
	names map[*byte]string // of matrices, by where they begin
	err   error
}

// expect returns a tensor of the shape, in BF16 or F32: the official files have
// matrices and norms in BF16 and a few vectors in F32, public twins all in F32.
func (l *loader) expect(name string, shape ...int) checkpoint.Tensor {
	if l.err != nil {
		return checkpoint.Tensor{}
	}
	t, err := l.ck.Expect(name, checkpoint.BF16|checkpoint.F32, shape...)
	if err != nil {
		l.err = err
	}
	return t
}

// matrix returns a weight [rows, cols] in place.
func (l *loader) matrix(name string, rows, cols int) kernel.Matrix {
	t := l.expect(name, rows, cols)
	if l.err != nil {
		return kernel.Matrix{}
	}
	m, err := matrixOf(t, rows, cols)
	if err != nil {
		l.err = fmt.Errorf("%s: %w", name, err)
	}
	l.names[unsafe.SliceData(t.Data)] = name
	return m
}

func matrixOf(t checkpoint.Tensor, rows, cols int) (kernel.Matrix, error) {
	f := kernel.BF16
	if t.DType == checkpoint.F32 {
		f = kernel.F32
	}
	return kernel.NewMatrix(f, rows, cols, t.Data, nil, 0)
}

// vector returns a small tensor as float32, whatever its shape, n elements.
func (l *loader) vector(name string, shape ...int) []float32 {
	t := l.expect(name, shape...)
	if l.err != nil {
		return nil
	}
	v, err := checkpoint.Float32s(t)
	if err != nil {
		l.err = err
	}
	return v
}

// folded returns norm * proj element by element: the scores of the depth mixer
// need only their product (spec 3.2, step 1).
func (l *loader) folded(norm, proj string, n int) []float32 {
	a, b := l.vector(norm, n), l.vector(proj, 1, n)
	if l.err != nil {
		return nil
	}
	for i := range a {
		a[i] *= b[i]
	}
	return a
}

func (l *loader) layer(c *checkpoint.Config, i int) layer {
	p := fmt.Sprintf("model.layers.%d.", i)
	w := layer{
		attnRes:  l.folded(p+"self_attention_res_norm.weight", p+"self_attention_res_proj.weight", c.Hidden),
		mlpRes:   l.folded(p+"mlp_res_norm.weight", p+"mlp_res_proj.weight", c.Hidden),
		attnNorm: l.vector(p+"input_layernorm.weight", c.Hidden),
		mlpNorm:  l.vector(p+"post_attention_layernorm.weight", c.Hidden),
	}
	if c.MLALayer[i] {
		w.mla = l.mla(c, p+"self_attn.")
	} else {
		w.kda = l.kda(c, i, p+"self_attn.")
	}
	if c.MoE(i) {
		w.moe = l.moe(c, p+"block_sparse_moe.")
	} else {
		w.dense = l.mlp(p+"mlp.", c.Hidden, c.DenseIntermediate)
	}
	return w
}

// mapped serves the experts from the mapped checkpoint files: right for models
// that fit in memory.
type mapped struct{ ck *checkpoint.Checkpoint }

func (m mapped) NewFeed() Feed { return &mappedFeed{ck: m.ck} }

// mappedFeed hands out everything at once, in the order in which it was named.
type mappedFeed struct {
	ck    *checkpoint.Checkpoint
	layer int
	want  []Want
	next  int
}

func (f *mappedFeed) Streams() bool { return false }

func (f *mappedFeed) Ahead(int, bool) bool { return false }

func (f *mappedFeed) Guess(int, int, bool, []Want) {}

func (f *mappedFeed) Begin(_ context.Context, layer int, want []Want) error {
	f.layer, f.want, f.next = layer, want, 0
	return nil
}

func (f *mappedFeed) Next(bool) (int, Expert, bool, error) {
	if f.next == len(f.want) {
		return 0, Expert{}, false, nil
	}
	i := f.next
	f.next++
	x, err := f.expert(int(f.want[i].Expert))
	if err != nil {
		return 0, Expert{}, false, fmt.Errorf("layer %d expert %d: %w", f.layer, f.want[i].Expert, err)
	}
	return i, x, true, nil
}

func (f *mappedFeed) Done(int) {}
func (f *mappedFeed) End()     { f.want = nil }

func (f *mappedFeed) expert(e int) (Expert, error) {
	t, err := f.ck.Expert(f.layer, e)
	if err != nil {
		return Expert{}, err
	}
	var x Expert
	if x.W1, err = expertMatrix(t.Format, &t.W1); err != nil {
		return Expert{}, err
	}
	if x.W3, err = expertMatrix(t.Format, &t.W3); err != nil {
		return Expert{}, err
	}
	x.W2, err = expertMatrix(t.Format, &t.W2)
	return x, err
}

func expertMatrix(f checkpoint.ExpertFormat, m *checkpoint.ExpertMatrix) (kernel.Matrix, error) {
	if f == checkpoint.MXFP4 {
		return kernel.NewMatrix(kernel.MXFP4, m.Rows, m.Cols, m.Weight.Data, m.Scale.Data, 0)
	}
	return matrixOf(m.Weight, m.Rows, m.Cols)
}

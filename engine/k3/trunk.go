package k3

import (
	"context"
	"fmt"
	"unsafe"

	"deltafin/engine/kernel"
)

// A Runner whose Model has a Trunk works with layers of its own: the same vectors, and
// matrices that are set to where the Trunk has them, once where they stay and for
// every pass where they do not.

// A binding is a matrix of a layer and its name in the checkpoint.
type binding struct {
	name string
	w    *kernel.Matrix
}

// trunkLayers is what a Runner has of a Model with a Trunk.
type trunkLayers struct {
	trunk  Trunk
	layers []layer
	bound  [][]binding // [Layers]: of layers that do not stay; nil for those that do
	err    error       // of a Trunk that does not have what the Model has
}

// open copies the layers and binds what stays. It gives the head's matrix.
func (t *trunkLayers) open(m *Model) kernel.Matrix {
	t.trunk, t.layers, t.bound = m.trunk, m.layers, make([][]binding, len(m.layers))
	if m.trunk == nil {
		return m.head
	}
	t.layers = make([]layer, len(m.layers))
	for i := range m.layers {
		t.layers[i] = m.layers[i].clone()
		var all []binding
		for _, w := range t.layers[i].matrices() {
			all = append(all, binding{m.names[unsafe.SliceData(w.Data)], w})
		}
		if m.trunk.Resident(i) {
			t.bind(i, all)
		} else {
			t.bound[i] = all
		}
	}
	head := m.head
	t.bind(len(m.layers), []binding{{m.names[unsafe.SliceData(head.Data)], &head}})
	return head
}

// here says that a layer's matrices are there at any time.
func (t *trunkLayers) here(i int) bool { return t.bound[i] == nil }

// take waits for a layer's weights.
func (t *trunkLayers) take(ctx context.Context, i int) (*layer, error) {
	if t.trunk == nil {
		return &t.layers[i], nil
	}
	if t.err != nil {
		return nil, t.err
	}
	if err := t.trunk.Layer(ctx, i); err != nil {
		return nil, err
	}
	t.bind(i, t.bound[i])
	return &t.layers[i], t.err
}

// done gives them back.
func (t *trunkLayers) done(i int) {
	if t.trunk != nil {
		t.trunk.Done(i)
	}
}

// bind sets matrices to where the Trunk has them.
func (t *trunkLayers) bind(i int, all []binding) {
	for _, b := range all {
		w, err := t.trunk.Matrix(i, b.name)
		if err == nil && (w.Rows != b.w.Rows || w.Cols != b.w.Cols) {
			err = fmt.Errorf("%s is %d x %d, the model has %d x %d", b.name, w.Rows, w.Cols, b.w.Rows, b.w.Cols)
		}
		if err != nil {
			t.err = err
			return
		}
		*b.w = w
	}
}

// clone copies what has matrices; vectors are shared.
func (w *layer) clone() layer {
	c := *w
	if w.kda != nil {
		c.kda = copyOf(w.kda)
	}
	if w.mla != nil {
		c.mla = copyOf(w.mla)
	}
	if w.dense != nil {
		c.dense = copyOf(w.dense)
	}
	if w.moe != nil {
		c.moe = copyOf(w.moe)
		c.moe.shared = copyOf(w.moe.shared)
	}
	return c
}

func copyOf[T any](p *T) *T {
	c := *p
	return &c
}

// matrices lists every matrix of a layer.
func (w *layer) matrices() []*kernel.Matrix {
	var all []*kernel.Matrix
	if k := w.kda; k != nil {
		all = append(all, &k.q, &k.k, &k.v, &k.g, &k.fa, &k.fb, &k.b, &k.o)
	}
	if a := w.mla; a != nil {
		all = append(all, &a.qa, &a.qb, &a.kva, &a.kvb, &a.g, &a.o)
	}
	if d := w.dense; d != nil {
		all = append(all, &d.gate, &d.up, &d.down)
	}
	if x := w.moe; x != nil {
		all = append(all, &x.router, &x.down, &x.up, &x.shared.gate, &x.shared.up, &x.shared.down)
	}
	return all
}

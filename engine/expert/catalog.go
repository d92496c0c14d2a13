package expert

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// A Catalog says of every routed expert of a checkpoint where its bytes lie and
// where its matrices lie in them. It is immutable.
type Catalog struct {
	layers, experts int
	topK            int
	format          checkpoint.ExpertFormat
	shape           [matrices][2]int      // rows and columns of w1, w3, w2
	dtype           checkpoint.DType      // of plain matrices
	first           []int                 // [layers]: index of the layer's first expert, -1 without experts
	parts           [][2 * matrices]int64 // [all experts]: where weight and scale of w1, w3, w2 begin in the object
	lengths         [2 * matrices]int64
	model           place.Model
	largest         int64
}

// matrices of an expert, in the order w1, w3, w2.
const matrices = 3

// Matrices are the weights of one routed expert: W1 (gate) and W3 (up) are
// [ExpertIntermediate, Latent], W2 (down) is [Latent, ExpertIntermediate].
type Matrices struct{ W1, W3, W2 kernel.Matrix }

// NewCatalog lists the experts of a checkpoint, layer by layer.
func NewCatalog(ck *checkpoint.Checkpoint) (*Catalog, error) {
	cfg := ck.Config()
	c := &Catalog{
		layers: cfg.Layers, experts: cfg.Experts, topK: cfg.TopK, format: ck.ExpertFormat(),
		first: make([]int, cfg.Layers),
		model: place.Model{Fingerprint: ck.Fingerprint(), Dir: ck.Path()},
	}
	for layer := range cfg.Layers {
		c.first[layer] = -1
		if !cfg.MoE(layer) {
			continue
		}
		c.first[layer] = len(c.parts)
		for e := range cfg.Experts {
			t, err := ck.Expert(layer, e)
			if err != nil {
				return nil, err
			}
			if err := c.add(ck.Path(), layer, e, &t); err != nil {
				return nil, err
			}
		}
	}
	if len(c.parts) == 0 {
		return nil, fmt.Errorf("the model has no routed experts to read from drives: open it without them")
	}
	return c, nil
}

// add states one expert. Its object is the tensors in the order in which they lie
// in the files, without what may lie between them.
func (c *Catalog) add(dir string, layer, e int, t *checkpoint.ExpertTensors) error {
	type part struct {
		index int
		t     *checkpoint.Tensor
	}
	var parts []part
	for i, m := range []*checkpoint.ExpertMatrix{&t.W1, &t.W3, &t.W2} {
		parts = append(parts, part{2 * i, &m.Weight})
		if t.Format == checkpoint.MXFP4 {
			parts = append(parts, part{2*i + 1, &m.Scale})
		}
		if len(c.parts) == 0 {
			c.shape[i], c.dtype = [2]int{m.Rows, m.Cols}, m.Weight.DType
		}
		if m.Weight.DType != t.W1.Weight.DType || m.Weight.DType != c.dtype && t.Format == checkpoint.Plain {
			return fmt.Errorf("%s is %s and other experts are %s: experts of one type are needed to read them from drives",
				m.Weight.Name, m.Weight.DType, c.dtype)
		}
	}
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.t.File, b.t.File), cmp.Compare(a.t.Offset, b.t.Offset))
	})
	o := place.Object{Key: ssdio.Key{Layer: int32(layer), Expert: int32(e)}}
	var at [2 * matrices]int64
	for _, p := range parts {
		name, err := below(dir, p.t.File)
		if err != nil {
			return err
		}
		at[p.index] = o.Size
		c.lengths[p.index] = p.t.Length
		o.Size += p.t.Length
		if n := len(o.Extents); n > 0 && o.Extents[n-1].File == name && o.Extents[n-1].Offset+o.Extents[n-1].Length == p.t.Offset {
			o.Extents[n-1].Length += p.t.Length
			continue
		}
		o.Extents = append(o.Extents, place.Extent{File: name, Offset: p.t.Offset, Length: p.t.Length})
	}
	c.parts = append(c.parts, at)
	c.model.Objects = append(c.model.Objects, o)
	c.largest = max(c.largest, o.Size)
	return nil
}

// below is the name of a shard relative to the model's folder.
func below(dir, file string) (string, error) {
	if dir == "" {
		return file, nil
	}
	rel, err := filepath.Rel(dir, file)
	if err != nil {
		return "", fmt.Errorf("shard %s: %w", file, err)
	}
	return filepath.ToSlash(rel), nil
}

// Model is the experts as package place wants them. Do not change it.
func (c *Catalog) Model() *place.Model { return &c.model }

// Experts is the number of routed experts in all layers.
func (c *Catalog) Experts() int { return len(c.parts) }

// Bytes is the size of all experts together.
func (c *Catalog) Bytes() int64 {
	n := int64(0)
	for i := range c.model.Objects {
		n += c.model.Objects[i].Size
	}
	return n
}

// Largest is the size of the largest expert, in bytes.
func (c *Catalog) Largest() int64 { return c.largest }

// MoELayers is the number of layers with routed experts.
func (c *Catalog) MoELayers() int { return len(c.parts) / c.experts }

// index numbers the experts of all layers, -1 if there is no such expert.
func (c *Catalog) index(layer, e int) int {
	if layer < 0 || layer >= c.layers || c.first[layer] < 0 || e < 0 || e >= c.experts {
		return -1
	}
	return c.first[layer] + e
}

// Matrices are windows into the bytes of an expert.
func (c *Catalog) Matrices(layer, e int, data []byte) (Matrices, error) {
	i := c.index(layer, e)
	if i < 0 || int64(len(data)) != c.model.Objects[i].Size {
		return Matrices{}, fmt.Errorf("layer %d has no expert %d of %d bytes", layer, e, len(data))
	}
	var out Matrices
	for k, m := range [matrices]*kernel.Matrix{&out.W1, &out.W3, &out.W2} {
		cut := func(part int) []byte {
			at := c.parts[i][part]
			return data[at : at+c.lengths[part]]
		}
		format, scale := kernel.BF16, []byte(nil)
		switch {
		case c.format == checkpoint.MXFP4:
			format, scale = kernel.MXFP4, cut(2*k+1)
		case c.dtype == checkpoint.F32:
			format = kernel.F32
		}
		w, err := kernel.NewMatrix(format, c.shape[k][0], c.shape[k][1], cut(2*k), scale, 0)
		if err != nil {
			return Matrices{}, fmt.Errorf("layer %d, expert %d: %w", layer, e, err)
		}
		*m = w
	}
	return out, nil
}

package checkpoint

import "fmt"

// An ExpertFormat is how the matrices of the routed experts are stored.
type ExpertFormat int

// The formats of routed experts.
const (
	// MXFP4: 4-bit floats, two per byte, with a power-of-two scale per 32
	// columns. Spec section 2.3.
	MXFP4 ExpertFormat = iota
	// Plain: one BF16 or F32 value per weight, in the unquantised twins.
	Plain
)

// String names the format for people.
func (f ExpertFormat) String() string {
	if f == MXFP4 {
		return "MXFP4"
	}
	return "unquantised"
}

// An ExpertMatrix is one of the three matrices of a routed expert, y = W x.
type ExpertMatrix struct {
	Rows, Cols int // outputs and inputs, in weights
	// Weight is U8 [Rows, Cols/2] for MXFP4, low nibble = even column;
	// BF16 or F32 [Rows, Cols] for Plain.
	Weight Tensor
	// Scale is U8 [Rows, Cols/32] for MXFP4: 2^(s-127) for 32 columns. Zero for
	// Plain.
	Scale Tensor
}

// ExpertTensors is one routed expert: y = W2 * SiTU(W1 z, W3 z), with z and y of
// Config.Latent and the middle of Config.ExpertIntermediate values.
type ExpertTensors struct {
	Format ExpertFormat
	W1     ExpertMatrix // gate [ExpertIntermediate, Latent]
	W3     ExpertMatrix // up   [ExpertIntermediate, Latent]
	W2     ExpertMatrix // down [Latent, ExpertIntermediate]
}

// ExpertFormat is how the checkpoint stores its routed experts, judged by the
// first of them: the names decide, not the config. Validate demands that all are
// alike. Without routed experts it is Plain.
func (c *Checkpoint) ExpertFormat() ExpertFormat {
	for l := range c.cfg.Layers {
		if c.cfg.MoE(l) {
			if slots := c.x.experts[l]; slots[0].part == packedPart {
				return MXFP4
			}
			return Plain
		}
	}
	return Plain
}

// slots gives the six slots of an expert, w1, w2, w3, each weight then scale.
func (c *Checkpoint) slots(layer, e int) []slot {
	if layer < 0 || layer >= len(c.x.experts) || e < 0 || (e+1)*slotsPerExpert > len(c.x.experts[layer]) {
		return nil
	}
	return c.x.experts[layer][e*slotsPerExpert : (e+1)*slotsPerExpert]
}

// Expert gives the tensors of routed expert e (from 0) of a layer (from 0),
// checked against the config. Errors are *TensorError as from Expect.
func (c *Checkpoint) Expert(layer, e int) (ExpertTensors, error) {
	slots := c.slots(layer, e)
	if slots == nil {
		return ExpertTensors{}, &TensorError{Name: c.x.prefix + LayerName(layer, fmt.Sprintf("block_sparse_moe.experts.%d", e)),
			File: c.x.file, Err: ErrMissingTensor,
			Want: fmt.Sprintf("a layer with experts below %d and an expert below %d", c.cfg.Layers, c.cfg.Experts)}
	}
	if err := c.usable(); err != nil {
		return ExpertTensors{}, &TensorError{Name: c.x.prefix + expertName(layer, e, 1, packedPart), File: c.x.file, Err: err}
	}
	out := ExpertTensors{Format: Plain}
	if slots[0].part == packedPart {
		out.Format = MXFP4
	}
	for w, m := range [...]*ExpertMatrix{1: &out.W1, 2: &out.W2, 3: &out.W3} {
		if m == nil {
			continue // matrices count from 1
		}
		m.Rows, m.Cols = c.cfg.expertShape(w)
		into := [...]*Tensor{&m.Weight, &m.Scale}
		for i, want := range out.Format.parts(m.Rows, m.Cols) {
			name, sl := expertName(layer, e, w, want.part), &slots[2*(w-1)+i]
			if sl.part != want.part {
				return ExpertTensors{}, &TensorError{Name: c.x.prefix + name, File: c.x.file, Err: ErrMissingTensor,
					Want: describe(want.dtype, want.shape)}
			}
			t := c.tensor(name, int(sl.shard), sl.dtype, []int{int(sl.rows), int(sl.cols)}, sl.off, sl.length)
			if err := t.check(want.dtype, want.shape); err != nil {
				return ExpertTensors{}, err
			}
			*into[i] = t
		}
	}
	return out, nil
}

// expertShape is [out, in] of w1, w2 or w3 in weights.
func (c *Config) expertShape(w int) (rows, cols int) {
	if w == 2 {
		return c.Latent, c.ExpertIntermediate
	}
	return c.ExpertIntermediate, c.Latent
}

// A partSpec is what one tensor of an expert's matrix must be.
type partSpec struct {
	part  part
	dtype DType
	shape []int
}

func (f ExpertFormat) parts(rows, cols int) []partSpec {
	if f == MXFP4 {
		return []partSpec{{packedPart, U8, []int{rows, cols / 2}}, {scalePart, U8, []int{rows, cols / groupSize}}}
	}
	return []partSpec{{plainPart, Float, []int{rows, cols}}}
}

// ExpertSpan is the byte range of all tensors of an expert. contiguous means that
// they lie back to back in one file, as in the official shards, so that one read
// brings the expert; then off and length are that read, in file. Otherwise, or
// if there is no such expert, the other values are zero.
func (c *Checkpoint) ExpertSpan(layer, e int) (file string, off, length int64, contiguous bool) {
	slots := c.slots(layer, e)
	if slots == nil || c.bare {
		return "", 0, 0, false
	}
	first, last := int64(-1), int64(0)
	for _, sl := range slots {
		if sl.part == noPart {
			continue
		}
		if sl.dtype == 0 || first >= 0 && sl.shard != slots[0].shard {
			return "", 0, 0, false
		}
		if first < 0 || sl.off < first {
			first = sl.off
		}
		last = max(last, sl.off+sl.length)
		length += sl.length
	}
	// Tensors of a file do not overlap, so a span of just their bytes has no
	// gap and no stranger in it.
	if length == 0 || last-first != length || slots[0].part == noPart {
		return "", 0, 0, false
	}
	return c.files.path(c.x.shards[slots[0].shard].name), first, length, true
}

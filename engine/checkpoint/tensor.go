package checkpoint

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// A Tensor is where one tensor lies and what it is.
type Tensor struct {
	Name   string // as in the files, with the wrapper prefix if they have it
	DType  DType
	Shape  []int  // row-major, [out, in] for matrices; do not change it
	File   string // path of the shard (its name inside the fs.FS for a model in memory)
	Offset int64  // bytes from the start of File
	Length int64  // bytes
	Data   []byte // File[Offset:Offset+Length], read-only, valid until Close
}

func describe(dt DType, shape []int) string { return fmt.Sprintf("%v %v", dt, shape) }

// tensor makes the public form of an extent. The capacity ends with the data, so
// that an append cannot run into the neighbour.
func (c *Checkpoint) tensor(name string, in int, dt DType, dims []int, off, length int64) Tensor {
	sh := &c.x.shards[in]
	return Tensor{Name: c.x.prefix + name, DType: dt, Shape: dims, File: c.files.path(sh.name),
		Offset: off, Length: length, Data: sh.data[off : off+length : off+length]}
}

// usable says why no tensor can be given at all.
func (c *Checkpoint) usable() error {
	switch {
	case c.closed.Load():
		return ErrClosed
	case c.bare:
		return ErrNoWeights
	}
	return nil
}

// Tensor gives a tensor of the text model by its name there, without the wrapper
// prefix: "lm_head.weight", "model.norm.weight", LayerName(3, "..."). The error
// is a *TensorError with ErrMissingTensor, ErrClosed or ErrNoWeights.
func (c *Checkpoint) Tensor(name string) (Tensor, error) {
	fail := func(err error) (Tensor, error) {
		return Tensor{}, &TensorError{Name: c.x.prefix + name, File: c.x.file, Err: err}
	}
	if err := c.usable(); err != nil {
		return fail(err)
	}
	if sl, p := c.x.slot([]byte(name)); sl != nil {
		if sl.part != p {
			return fail(ErrMissingTensor)
		}
		return c.tensor(name, int(sl.shard), sl.dtype, []int{int(sl.rows), int(sl.cols)}, sl.off, sl.length), nil
	}
	e := c.x.entries[name]
	if e == nil || e.dtype == 0 || ignored([]byte(name)) {
		return fail(ErrMissingTensor)
	}
	return c.tensor(name, int(e.shard), e.dtype, e.dims, e.off, e.length), nil
}

// Expect is Tensor with a demand: the dtype must be in the set dt (BF16|F32
// takes either) and the shape must be equal. Otherwise the error is a
// *TensorError with ErrMismatch, the file and both values.
func (c *Checkpoint) Expect(name string, dt DType, shape ...int) (Tensor, error) {
	t, err := c.Tensor(name)
	if err != nil {
		if te, ok := err.(*TensorError); ok && te.Err == ErrMissingTensor {
			te.Want = describe(dt, shape)
		}
		return Tensor{}, err
	}
	if err := t.check(dt, shape); err != nil {
		return Tensor{}, err
	}
	return t, nil
}

func (t *Tensor) check(dt DType, shape []int) error {
	if t.DType&dt != 0 && slices.Equal(t.Shape, shape) {
		return nil
	}
	return &TensorError{Name: t.Name, File: t.File, Err: ErrMismatch,
		Got: describe(t.DType, t.Shape), Want: describe(dt, shape)}
}

// Float32s decodes a BF16 or F32 tensor into new memory; meant for vectors and
// other small tensors.
func Float32s(t Tensor) ([]float32, error) {
	switch t.DType {
	case BF16:
		out := make([]float32, len(t.Data)/2)
		for i := range out {
			out[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(t.Data[2*i:])) << 16)
		}
		return out, nil
	case F32:
		out := make([]float32, len(t.Data)/4)
		for i := range out {
			out[i] = math.Float32frombits(binary.LittleEndian.Uint32(t.Data[4*i:]))
		}
		return out, nil
	}
	return nil, &TensorError{Name: t.Name, File: t.File, Err: ErrMismatch,
		Got: t.DType.String(), Want: "BF16 or F32 to decode it"}
}

// ALog gives A_log of a KDA layer, one value per head: [KDAHeads]. The official
// files pad the vector with zeros beyond the heads (spec 8.1), others do not or
// store [1, 1, KDAHeads, 1]. A tail that is not zero is refused: it would mean
// values per channel, another model.
func (c *Checkpoint) ALog(layer int) ([]float32, error) {
	t, err := c.Tensor(LayerName(layer, aLog))
	if err != nil {
		return nil, err
	}
	h := c.cfg.KDAHeads
	flat := len(t.Shape) == 1 && t.Shape[0] >= h
	if t.DType&Float == 0 || !flat && !slices.Equal(t.Shape, []int{1, 1, h, 1}) {
		return nil, &TensorError{Name: t.Name, File: t.File, Err: ErrMismatch, Got: describe(t.DType, t.Shape),
			Want: fmt.Sprintf("%v [%d], zero-padded at most, or [1 1 %d 1]", Float, h, h)}
	}
	a, err := Float32s(t)
	if err != nil {
		return nil, err
	}
	for i, v := range a[h:] {
		if v != 0 {
			return nil, &TensorError{Name: t.Name, File: t.File, Err: ErrMismatch,
				Got:  fmt.Sprintf("%v with %g at index %d", t.Shape, v, h+i),
				Want: fmt.Sprintf("zeros beyond the %d heads", h)}
		}
	}
	return a[:h:h], nil
}

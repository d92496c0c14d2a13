package trunk

import (
	"fmt"
	"math"
	"strings"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
	"deltafin/ssdio"
	"deltafin/ssdio/place"
)

// Int8Name is the name of the file with a trunk that was converted to int8.
const Int8Name = "deltafin-trunk-int8.bin"

// Int8Group is how many columns share a scale. Half as many would make the rounding
// error a tenth smaller and the file three per cent larger.
const Int8Group = 128

// An Int8 is what the header of a converted trunk says: which matrix lies where, in
// what form, and how far it is from the model's own.
type Int8 struct {
	Fingerprint string     `json:"fingerprint"` // of the model it was made from
	Group       int        `json:"group"`       // columns that share a scale
	Units       []Int8Unit `json:"units"`       // [Layers+1], the head last

	path string // of the file, "" if there is none
}

// An Int8Unit is a layer, or the head.
type Int8Unit struct {
	Offset  int64        `json:"offset"` // in the file, a multiple of 4096
	Length  int64        `json:"length"` // bytes
	Tensors []Int8Tensor `json:"tensors"`
	Sums    []byte       `json:"sums"` // CRC32C of every 256 KiB block, uint32 little-endian
}

// An Int8Tensor is a matrix in a unit: in int8 the codes row by row, and behind them
// the scales row by row, float32. An exact one has the model's own bytes.
type Int8Tensor struct {
	Name   string `json:"name"` // in the text model
	Format string `json:"format"`
	Shape  [2]int `json:"shape"`
	Offset int64  `json:"offset"` // in the unit, a multiple of 4096
	Length int64  `json:"length"` // bytes
	Why    string `json:"exact_because,omitempty"`

	MaxError float64 `json:"max_error"` // largest difference to a weight of the model
	RMSError float64 `json:"rms_error"` // root of the mean square of all differences
	RMS      float64 `json:"rms"`       // of the model's weights, for a relative error; 0 if exact

	class  checkpoint.Class
	format kernel.Format
}

// Relative is RMSError as a share of the weights' own RMS.
func (t *Int8Tensor) Relative() float64 {
	if t.RMS == 0 {
		return 0
	}
	return t.RMSError / t.RMS
}

// exactBecause says why a matrix is not converted, "" if it is. Choices of experts and
// gates turn a small error into a different path, and their matrices are small.
func exactBecause(t *named) string {
	switch {
	case t.class == checkpoint.Router:
		return "router"
	case strings.HasSuffix(t.name, ".f_a_proj.weight"), strings.HasSuffix(t.name, ".f_b_proj.weight"), strings.HasSuffix(t.name, ".b_proj.weight"):
		return "gate"
	case t.Shape[1]%int8Columns != 0:
		return fmt.Sprintf("%d columns are no multiple of %d", t.Shape[1], int8Columns)
	}
	return ""
}

// int8Columns divides the columns that the kernels take in int8 at full speed. The
// last group of a row may be short of Group.
const int8Columns = 16

// PlanInt8 is the layout of a converted trunk, without sums and errors: it follows
// from the model alone. Errors are those of checkpoint.Expect.
func PlanInt8(ck *checkpoint.Checkpoint) (*Int8, error) {
	units, err := matricesOf(ck)
	if err != nil {
		return nil, err
	}
	return planInt8(ck.Fingerprint(), units, Int8Group), nil
}

func planInt8(fingerprint string, units [][]named, group int) *Int8 {
	f := &Int8{Fingerprint: fingerprint, Group: group, Units: make([]Int8Unit, len(units))}
	at := int64(page) // the first page has the magic
	for i, tensors := range units {
		u := &f.Units[i]
		u.Offset = at
		for k := range tensors {
			t := &tensors[k]
			w := Int8Tensor{
				Name: t.name, Shape: [2]int{t.Shape[0], t.Shape[1]}, Offset: aligned(u.Length),
				Length: t.Length, Why: exactBecause(t), class: t.class, format: t.format(),
			}
			if w.Why == "" {
				w.format = kernel.Int8
				w.Length = w.codes() + w.scales(group)
			}
			w.Format = w.format.String()
			u.Tensors = append(u.Tensors, w)
			u.Length = w.Offset + w.Length
		}
		at = aligned(at + u.Length)
	}
	return f
}

// codes and scales are the bytes of the two parts of a matrix in int8.
func (t *Int8Tensor) codes() int64 { return int64(t.Shape[0]) * int64(t.Shape[1]) }

func (t *Int8Tensor) scales(group int) int64 {
	return 4 * int64(t.Shape[0]) * int64((t.Shape[1]+group-1)/group)
}

// end is where the header begins.
func (f *Int8) end() int64 {
	u := &f.Units[len(f.Units)-1]
	return aligned(u.Offset + u.Length)
}

// Bytes is the size of the matrices on the disk.
func (f *Int8) Bytes() int64 { return f.end() }

// Path is the file that was opened, "" of a plan.
func (f *Int8) Path() string { return f.path }

// Catalog lists the matrices as a Store wants them, each layer one part. Of a plan it
// has the sizes alone.
func (f *Int8) Catalog() *Catalog {
	dir, name := splitPath(f.path)
	c := &Catalog{units: make([]unit, len(f.Units)), model: place.Model{Fingerprint: f.Fingerprint, Dir: dir}}
	for i := range f.Units {
		from, u := &f.Units[i], &c.units[i]
		layer := i
		if i == len(f.Units)-1 {
			layer = -1
		}
		key := ssdio.PartKey(layer, 0)
		u.parts = []part{{key: key, size: from.Length}}
		u.weights = map[string]weight{}
		for k := range from.Tensors {
			t := &from.Tensors[k]
			w := weight{at: t.Offset, length: t.Length, format: t.format, rows: t.Shape[0], cols: t.Shape[1]}
			if w.format == kernel.Int8 {
				w.codes, w.group = t.codes(), f.Group
			}
			u.weights[t.Name] = w
		}
		u.count()
		c.model.Objects = append(c.model.Objects, place.Object{Key: key, Size: from.Length,
			Extents: []place.Extent{{File: name, Offset: from.Offset, Length: from.Length}}})
	}
	return c
}

// BlockSums are the checksums of all blocks in the order of the catalog's objects.
func (f *Int8) BlockSums() []uint32 {
	var sums []uint32
	for i := range f.Units {
		for b := range ssdio.Blocks(f.Units[i].Length) {
			sums = append(sums, f.Units[i].sum(b))
		}
	}
	return sums
}

// An Int8Class sums up the matrices of one class.
type Int8Class struct {
	Class     checkpoint.Class
	Converted int     // matrices in int8
	Exact     int     // matrices with the model's own bytes
	Bytes     int64   // of both
	MaxError  float64 // largest difference to a weight of the model
	Relative  float64 // root of the mean square difference, as a share of the weights' own
}

// Classes sums up the errors by class, for those that are there.
func (f *Int8) Classes() []Int8Class {
	var all [checkpoint.NumClasses]Int8Class
	var errs, weights [checkpoint.NumClasses]float64
	for i := range f.Units {
		for k := range f.Units[i].Tensors {
			t := &f.Units[i].Tensors[k]
			c := &all[t.class]
			c.Bytes += t.Length
			if t.format != kernel.Int8 {
				c.Exact++
				continue
			}
			c.Converted++
			c.MaxError = max(c.MaxError, t.MaxError)
			n := float64(t.codes())
			errs[t.class] += n * t.RMSError * t.RMSError
			weights[t.class] += n * t.RMS * t.RMS
		}
	}
	var out []Int8Class
	for k := range all {
		if all[k].Converted+all[k].Exact == 0 {
			continue
		}
		all[k].Class = checkpoint.Class(k)
		if weights[k] > 0 {
			all[k].Relative = math.Sqrt(errs[k] / weights[k])
		}
		out = append(out, all[k])
	}
	return out
}

// Worst is the largest relative error of a matrix.
func (f *Int8) Worst() float64 {
	worst := 0.0
	for i := range f.Units {
		for k := range f.Units[i].Tensors {
			worst = max(worst, f.Units[i].Tensors[k].Relative())
		}
	}
	return worst
}

package trunk

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

// A Catalog says where the matrices of the trunk lie, unit by unit: a unit is a
// layer, and behind the last one the head. It is immutable.
type Catalog struct {
	units []unit
	model place.Model
}

// A unit is what is read and given up together.
type unit struct {
	parts   []part
	weights map[string]weight // by the name in the text model
	bytes   int64             // of its parts
	room    int64             // that a buffer needs for it
}

// A part is a run of bytes of one file, the object of one read.
type part struct {
	key  ssdio.Key
	size int64
}

// A weight is a matrix in a part.
type weight struct {
	part       int
	at, length int64 // in the part
	format     kernel.Format
	rows, cols int
	codes      int64 // of an int8 matrix: bytes before its scales
	group      int   // of an int8 matrix: columns that share a scale
}

// page is what the start of a part is aligned by, up to its residue.
const page = 4096

// bridge is the widest gap in a file that is read along: the vectors between two
// matrices take less time to read than a second read does.
const bridge = ssdio.BlockSize

// IsMatrix says whether a tensor is a matrix of the trunk, which may be streamed. The
// others are copied or, of the embedding, used in place.
func IsMatrix(s *checkpoint.Spec) bool {
	return len(s.Shape) == 2 && s.Class != checkpoint.Norms && s.Class != checkpoint.Embeddings
}

// NewCatalog lists the trunk of an opened checkpoint. Errors are those of
// checkpoint.Expect.
func NewCatalog(ck *checkpoint.Checkpoint) (*Catalog, error) {
	tensors, err := matricesOf(ck)
	if err != nil {
		return nil, err
	}
	c := &Catalog{
		units: make([]unit, len(tensors)),
		model: place.Model{Fingerprint: ck.Fingerprint(), Dir: ck.Path()},
	}
	for i := range c.units {
		if err := c.add(i, ck.Path(), tensors[i]); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// matricesOf lists the matrices of every unit in the order of a forward pass.
func matricesOf(ck *checkpoint.Checkpoint) (units [][]named, err error) {
	cfg := ck.Config()
	units = make([][]named, cfg.Layers+1)
	cfg.Each(func(s checkpoint.Spec) bool {
		if !IsMatrix(&s) {
			return true
		}
		at := s.Layer
		if at < 0 {
			at = cfg.Layers // the head is the only matrix outside the layers
		}
		var t checkpoint.Tensor
		if t, err = ck.Expect(s.Name, checkpoint.Float, s.Shape...); err != nil {
			return false
		}
		units[at] = append(units[at], named{s.Name, s.Class, t})
		return true
	})
	return units, err
}

type named struct {
	name  string // in the text model
	class checkpoint.Class
	checkpoint.Tensor
}

// format is how the model's files have a matrix.
func (t *named) format() kernel.Format {
	if t.DType == checkpoint.F32 {
		return kernel.F32
	}
	return kernel.BF16
}

// add states a unit: its matrices in the order of the files, in as few parts as
// there are runs.
func (c *Catalog) add(i int, dir string, tensors []named) error {
	slices.SortFunc(tensors, func(a, b named) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Offset, b.Offset))
	})
	u := &c.units[i]
	u.weights = map[string]weight{}
	layer := i
	if i == len(c.units)-1 {
		layer = -1
	}
	var run *place.Extent
	for _, t := range tensors {
		file := t.File
		if dir != "" {
			rel, err := filepath.Rel(dir, t.File)
			if err != nil {
				return fmt.Errorf("shard %s: %w", t.File, err)
			}
			file = filepath.ToSlash(rel)
		}
		end := int64(0)
		if run != nil {
			end = run.Offset + run.Length
		}
		if run == nil || run.File != file || t.Offset-end > bridge {
			key := ssdio.PartKey(layer, len(u.parts))
			u.parts = append(u.parts, part{key: key})
			c.model.Objects = append(c.model.Objects, place.Object{Key: key, Extents: []place.Extent{{File: file, Offset: t.Offset}}})
			run = &c.model.Objects[len(c.model.Objects)-1].Extents[0]
		}
		run.Length = t.Offset + t.Length - run.Offset
		w := weight{
			part: len(u.parts) - 1, at: t.Offset - run.Offset, length: t.Length,
			format: t.format(), rows: t.Shape[0], cols: t.Shape[1],
		}
		u.weights[t.name] = w
		u.parts[w.part].size = run.Length
		c.model.Objects[len(c.model.Objects)-1].Size = run.Length
	}
	u.count()
	return nil
}

// count sets what follows from the parts.
func (u *unit) count() {
	for _, p := range u.parts {
		u.bytes += p.size
		u.room += aligned(p.size) + page
	}
}

// aligned is n rounded up to a page.
func aligned(n int64) int64 { return (n + page - 1) / page * page }

// Model is the trunk's matrices as package place wants them. Do not change it.
func (c *Catalog) Model() *place.Model { return &c.model }

// Head is the unit of the output matrix, the one behind the last layer.
func (c *Catalog) Head() int { return len(c.units) - 1 }

// Bytes is what a unit takes on the drives: the matrices, and the little between
// them that is read along.
func (c *Catalog) Bytes(unit int) int64 { return c.units[unit].bytes }

// Total is the size of all units.
func (c *Catalog) Total() int64 {
	n := int64(0)
	for i := range c.units {
		n += c.units[i].bytes
	}
	return n
}

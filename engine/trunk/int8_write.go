package trunk

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"sync"

	"deltafin/engine/checkpoint"
	"deltafin/engine/kernel"
	"deltafin/ssdio"
)

// The file of a converted trunk. Numbers are little-endian.
//
//	offset  bytes
//	0       8     magic "DFTRINT8", and zeros up to 4096
//	4096          units, each at a multiple of 4096, zeros between
//	        n     header, JSON, see Int8
//	        8     n
//	        4     CRC-32C of the header
//	        4     version of the format, 1
//	        8     magic again
//
// What is known last stands last, so that the file is written in one go.
const (
	int8Magic   = "DFTRINT8"
	int8Version = 1
	int8Tail    = 8 + 4 + 4 + 8
)

// chunkBytes is about how many codes are made before they are written: enough work
// for all workers, little memory, and a soon end when the work is cancelled.
const chunkBytes = 8 << 20

// WriteInt8 converts the trunk of a model and writes the whole file to w, on so many
// workers; the bytes do not depend on their number. tell may be nil. A weight that is
// infinite or no number is an error that names its matrix.
func WriteInt8(ctx context.Context, ck *checkpoint.Checkpoint, w io.Writer, workers int, tell func(Progress)) (*Int8, error) {
	units, err := matricesOf(ck)
	if err != nil {
		return nil, err
	}
	f := planInt8(ck.Fingerprint(), units, Int8Group)
	c := converter{ctx: ctx, out: int8Writer{w: w}, f: f, workers: max(workers, 1), tell: tell}
	if err := c.out.write([]byte(int8Magic)); err != nil {
		return nil, err
	}
	for i := range f.Units {
		if err := c.out.pad(f.Units[i].Offset); err != nil {
			return nil, err
		}
		c.out.begin()
		for k := range f.Units[i].Tensors {
			t := &f.Units[i].Tensors[k]
			if err := c.out.pad(f.Units[i].Offset + t.Offset); err != nil {
				return nil, err
			}
			if err := c.tensor(&units[i][k], t); err != nil {
				return nil, err
			}
		}
		f.Units[i].Sums = c.out.sums()
	}
	if err := c.out.pad(f.end()); err != nil {
		return nil, err
	}
	text, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	tail := le.AppendUint64(text, uint64(len(text)))
	tail = le.AppendUint32(tail, ssdio.Sum(text))
	tail = le.AppendUint32(tail, int8Version)
	return f, c.out.write(append(tail, int8Magic...))
}

// A converter converts matrix after matrix.
type converter struct {
	ctx     context.Context
	out     int8Writer
	f       *Int8
	workers int
	tell    func(Progress)
	codes   []byte
	scales  []byte
	errs    []rowError
}

// tensor writes one matrix and states its errors.
func (c *converter) tensor(t *named, to *Int8Tensor) error {
	if to.format != kernel.Int8 {
		return c.copy(t.Data)
	}
	w, err := kernel.NewMatrix(t.format(), t.Shape[0], t.Shape[1], t.Data, nil, 0)
	if err != nil {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	rows := max(chunkBytes/w.Cols, 1)
	stride := int(to.scales(c.f.Group)) / max(w.Rows, 1)
	c.scales = sized(c.scales, w.Rows*stride) // behind all codes: kept until then
	var worst, sum, weight float64
	for lo := 0; lo < w.Rows; lo += rows {
		hi := min(lo+rows, w.Rows)
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		c.round(&w, lo, hi, c.scales[lo*stride:hi*stride])
		for i := range hi - lo { // in the order of rows: the same sums on any number of workers
			e := &c.errs[i]
			if e.bad {
				return fmt.Errorf("%s: row %d has a weight that is infinite or no number and cannot be rounded: check the model's files", t.name, lo+i)
			}
			worst, sum, weight = max(worst, e.max), sum+e.err, weight+e.weight
		}
		if err := c.write(c.codes[:(hi-lo)*w.Cols]); err != nil {
			return err
		}
	}
	n := float64(max(to.codes(), 1))
	to.MaxError, to.RMSError, to.RMS = worst, math.Sqrt(sum/n), math.Sqrt(weight/n)
	return c.write(c.scales)
}

// round fills codes, scales and errs with rows lo to hi, each worker with its share.
func (c *converter) round(w *kernel.Matrix, lo, hi int, scales []byte) {
	n, stride := hi-lo, len(scales)/(hi-lo)
	c.codes, c.errs = sized(c.codes, n*w.Cols), sized(c.errs, n)
	var all sync.WaitGroup
	for k := range c.workers {
		all.Go(func() {
			row := make([]float32, w.Cols)
			for i := k * n / c.workers; i < (k+1)*n/c.workers; i++ {
				kernel.Row(row, w, lo+i)
				c.errs[i] = roundRow(c.codes[i*w.Cols:(i+1)*w.Cols], scales[i*stride:(i+1)*stride], row, c.f.Group)
			}
		})
	}
	all.Wait()
}

// copy writes the bytes of an exact matrix.
func (c *converter) copy(data []byte) error {
	for len(data) > 0 {
		if err := context.Cause(c.ctx); err != nil {
			return err
		}
		n := min(chunkBytes, len(data))
		if err := c.write(data[:n]); err != nil {
			return err
		}
		data = data[n:]
	}
	return nil
}

// write writes and tells.
func (c *converter) write(p []byte) error {
	if err := c.out.write(p); err != nil {
		return err
	}
	if c.tell != nil {
		c.tell(Progress{Done: c.out.at, Total: c.f.end()})
	}
	return nil
}

// sized is s with n elements, whatever they are.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// An int8Writer knows where it is, and sums the blocks of a unit.
type int8Writer struct {
	w      io.Writer
	at     int64 // in the file
	unit   bool  // in a unit
	filled int   // bytes of the block in sum
	sum    uint32
	blocks []byte
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func (w *int8Writer) write(p []byte) error {
	n, err := w.w.Write(p)
	w.at += int64(n)
	if err != nil || !w.unit {
		return err
	}
	for len(p) > 0 {
		n := min(ssdio.BlockSize-w.filled, len(p))
		w.sum = crc32.Update(w.sum, castagnoli, p[:n])
		if w.filled += n; w.filled == ssdio.BlockSize {
			w.endBlock()
		}
		p = p[n:]
	}
	return nil
}

// pad writes zeros up to an offset of less than a page.
func (w *int8Writer) pad(to int64) error { return w.write(make([]byte, to-w.at)) }

// begin starts a unit, sums ends it.
func (w *int8Writer) begin() { w.unit, w.blocks = true, nil }

func (w *int8Writer) sums() []byte {
	if w.filled > 0 {
		w.endBlock()
	}
	w.unit = false
	return w.blocks
}

func (w *int8Writer) endBlock() {
	w.blocks = binary.LittleEndian.AppendUint32(w.blocks, w.sum)
	w.sum, w.filled = 0, 0
}

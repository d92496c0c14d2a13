package kernel

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"
)

// Format says how the elements of a Matrix are stored.
type Format uint8

// The formats a weight may have. MXFP4 is the official packing (spec 2.3): two
// E2M1 codes per byte, low nibble first, one E8M0 scale per 32 columns.
const (
	F32 Format = iota
	BF16
	MXFP4
	Int8
)

// String is the name of the format in reports and errors.
func (f Format) String() string {
	switch f {
	case F32:
		return "f32"
	case BF16:
		return "bf16"
	case MXFP4:
		return "mxfp4"
	case Int8:
		return "int8"
	}
	return fmt.Sprintf("format(%d)", uint8(f))
}

// MXGroup is the number of columns that share one MXFP4 scale.
const MXGroup = 32

// A Matrix is a view of a weight W [Rows, Cols], row-major, as it lies in a file
// or an arena; y = W x. The bytes need no alignment and are never written.
type Matrix struct {
	Format     Format
	Rows, Cols int
	// Stride is the distance from row to row of Data in bytes.
	Stride int
	// Data holds the elements: float32 or bfloat16 little-endian, packed codes,
	// or int8.
	Data []byte
	// Scale holds, for MXFP4, Cols/32 E8M0 bytes per row; for Int8, one float32
	// little-endian per row and Group columns. Rows follow without gaps.
	Scale []byte
	// Group is the number of columns that share a scale; Int8 only, a multiple of 16.
	Group int
}

// RowBytes is the number of Data bytes in one row of cols elements.
func (f Format) RowBytes(cols int) int {
	switch f {
	case F32:
		return 4 * cols
	case BF16:
		return 2 * cols
	case MXFP4:
		return cols / 2
	default:
		return cols
	}
}

// NewMatrix makes a Matrix over bytes and checks that they are enough. scale is
// nil for F32 and BF16; group is used by Int8 only.
func NewMatrix(f Format, rows, cols int, data, scale []byte, group int) (Matrix, error) {
	m := Matrix{Format: f, Rows: rows, Cols: cols, Stride: f.RowBytes(cols), Data: data, Scale: scale, Group: group}
	if rows < 0 || cols <= 0 {
		return Matrix{}, fmt.Errorf("matrix of %d x %d", rows, cols)
	}
	if f == MXFP4 && cols%MXGroup != 0 {
		return Matrix{}, fmt.Errorf("mxfp4 matrix of %d columns; they come in groups of %d", cols, MXGroup)
	}
	if f == Int8 && (group <= 0 || group%lanes != 0) {
		return Matrix{}, fmt.Errorf("int8 matrix with groups of %d columns; a multiple of %d is needed", group, lanes)
	}
	if want := rows * m.Stride; len(data) < want {
		return Matrix{}, fmt.Errorf("%s matrix of %d x %d needs %d bytes, has %d", f, rows, cols, want, len(data))
	}
	if want := rows * m.scaleStride(); len(scale) < want {
		return Matrix{}, fmt.Errorf("%s matrix of %d x %d needs %d scale bytes, has %d", f, rows, cols, want, len(scale))
	}
	return m, nil
}

// F32View is the Matrix of rows x cols floats that start every stride floats in x.
func F32View(x []float32, rows, cols, stride int) Matrix {
	if rows > 0 && len(x) < (rows-1)*stride+cols {
		panic("kernel: F32View past the end of its floats")
	}
	var b []byte
	if len(x) > 0 {
		b = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
	}
	return Matrix{Format: F32, Rows: rows, Cols: cols, Stride: 4 * stride, Data: b}
}

// Slice is the view of rows lo to hi.
func (m *Matrix) Slice(lo, hi int) Matrix {
	out := *m
	out.Rows = hi - lo
	out.Data = m.Data[lo*m.Stride:]
	if s := m.scaleStride(); s > 0 {
		out.Scale = m.Scale[lo*s:]
	}
	return out
}

// scaleStride is the number of Scale bytes per row.
func (m *Matrix) scaleStride() int {
	switch m.Format {
	case MXFP4:
		return m.Cols / MXGroup
	case Int8:
		return 4 * ((m.Cols + m.Group - 1) / m.Group)
	}
	return 0
}

// scaleAt is the scale of group g of row r; Int8 only.
func (m *Matrix) scaleAt(r, g int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(m.Scale[r*m.scaleStride()+4*g:]))
}

// Bytes is the storage of the view, scales included.
func (m *Matrix) Bytes() int { return m.Rows * (m.Format.RowBytes(m.Cols) + m.scaleStride()) }

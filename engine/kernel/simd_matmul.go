package kernel

import (
	"math"
	"unsafe"
)

const (
	tile     = 8   // weight rows that are unpacked together; a multiple of tileRows
	tileCols = 512 // and columns: 16 KiB, half of a small L1
	// maxRows is the number of rows of x that pass over an unpacked tile. Their
	// lanes wait between the pieces of a row: 120 KiB of L2.
	maxRows = 240
)

var negInf = float32(math.Inf(-1))

// negZero pads x where a row does not fill the lanes: with a weight of +0 the
// product is -0, and adding that changes no number, not even a zero's sign.
var negZero = float32(math.Copysign(0, -1))

// MatMul is matMulGeneric. One row of x goes straight over the weights as they
// are stored. More rows share weights that are unpacked to float32 tile by tile.
func (s *simd) MatMul(sc *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	if lo >= hi || n <= 0 {
		return
	}
	// The primitives check nothing: what is too short must stop here.
	_, _ = y[(n-1)*ldy+hi-1], x[(n-1)*ldx+w.Cols-1]
	data := w.Data[lo*w.Stride : (hi-1)*w.Stride+w.Format.RowBytes(w.Cols)]
	ss := w.scaleStride()
	scale := w.Scale[lo*ss : hi*ss]
	if n == 1 && w.Cols%lanes == 0 {
		s.matVec(sc, y[lo:hi], w, data, scale, x[:w.Cols])
		return
	}
	for n > 0 {
		m := min(n, maxRows)
		s.matRows(sc, y, ldy, w, lo, hi, x, ldx, m)
		n -= m
		y, x = y[min(m*ldy, len(y)):], x[min(m*ldx, len(x)):]
	}
}

// matVec multiplies all rows of data with one x.
func (s *simd) matVec(sc *Scratch, y []float32, w *Matrix, data, scale []byte, x []float32) {
	blocks, rows := w.Cols/lanes, len(y)
	switch w.Format {
	case F32:
		s.matVecF32(&y[0], &data[0], w.Stride, rows, &x[0], blocks)
	case BF16:
		s.matVecBF16(&y[0], &data[0], w.Stride, rows, &x[0], blocks)
	case Int8:
		s.matVecInt8(&y[0], &data[0], w.Stride, rows, &x[0], blocks, &scale[0], w.scaleStride(), w.Group/lanes)
	case MXFP4:
		if s.permute != nil {
			p := sc.floats(len(x))
			s.permute(&p[0], &x[0], blocks)
			x = p
		}
		s.matVecMX(&y[0], &data[0], w.Stride, rows, &x[0], w.Cols/MXGroup, &scale[0], s.mx)
	}
}

// matRows is the product for up to maxRows rows of x.
func (s *simd) matRows(sc *Scratch, y []float32, ldy int, w *Matrix, lo, hi int, x []float32, ldx, n int) {
	rest := w.Cols % lanes
	full := w.Cols - rest
	// Scratch: the unpacked tile, the lanes, the padded ends of x, and a place for
	// the results of a last tile that is not full.
	buf := sc.floats(tile*tileCols + n*tile*lanes + n*lanes + n*tile)
	wt, buf := buf[:tile*tileCols], buf[tile*tileCols:]
	acc, buf := buf[:n*tile*lanes], buf[n*tile*lanes:]
	ends, short := buf[:n*lanes], buf[n*lanes:]
	if rest > 0 {
		for i := range n {
			e := ends[i*lanes : (i+1)*lanes]
			copy(e, x[i*ldx+full:i*ldx+w.Cols])
			for j := rest; j < lanes; j++ {
				e[j] = negZero
			}
		}
	}
	for r := lo; r < hi; r += tile {
		g := gemm{s: s, y: y[r:], ldy: ldy, acc: acc, n: n, mode: 1}
		rows := min(tile, hi-r)
		if rows < tile {
			g.y, g.ldy = short, tile
		}
		for c := 0; c < full; c += tileCols {
			cols := min(tileCols, full-c)
			if c+cols == w.Cols {
				g.mode |= 2
			}
			if w.Format == F32 && rows == tile {
				g.w, g.stride = (*float32)(unsafe.Pointer(&w.Data[r*w.Stride+4*c])), w.Stride
			} else {
				for t := range rows {
					s.unpack(wt[t*cols:(t+1)*cols], w, r+t, c)
				}
				clear(wt[rows*cols : tile*cols])
				g.w, g.stride = &wt[0], 4*cols
			}
			g.piece(x[c:], ldx, cols/lanes)
			g.mode = 0
		}
		if rest > 0 {
			clear(wt[:tile*lanes])
			for t := range rows {
				decodeEnd(wt[t*lanes:t*lanes+rest], w, r+t, full)
			}
			g.w, g.stride = &wt[0], 4*lanes
			g.mode |= 2
			g.piece(ends, lanes, 1)
		}
		if rows < tile {
			for i := range n {
				copy(y[i*ldy+r:i*ldy+hi], short[i*tile:])
			}
		}
	}
}

// decodeEnd decodes the columns from full to the end of a row. Only formats
// whose rows may end anywhere come here, and those decode from any column.
func decodeEnd(dst []float32, w *Matrix, r, full int) { decodeRow(dst, w, r, full) }

// gemm is one tile of weights on its way over all rows of x.
type gemm struct {
	s      *simd
	y      []float32
	ldy    int
	acc    []float32
	w      *float32
	stride int // bytes
	n      int
	mode   int
}

// piece multiplies the tile, blocks blocks wide, with n rows of x, three at a
// time; the last four rows as two and two, since one alone leaves the pipes idle.
func (g *gemm) piece(x []float32, ldx, blocks int) {
	s := g.s
	for i := 0; i < g.n; {
		f, k := s.gemm3, 3
		switch left := g.n - i; {
		case left == 1:
			f, k = s.gemm1, 1
		case left == 2 || left == 4:
			f, k = s.gemm2, 2
		}
		f(&g.y[i*g.ldy], 4*g.ldy, &g.acc[i*tile*lanes], g.w, g.stride, tile/s.tileRows,
			&x[i*ldx], 4*ldx, blocks, g.mode)
		i += k
	}
}

// unpack writes columns [from, from+len(dst)) of row r as float32. from and
// len(dst) are multiples of 16, for MXFP4 of 32.
func (s *simd) unpack(dst []float32, w *Matrix, r, from int) {
	blocks := len(dst) / lanes
	switch w.Format {
	case F32:
		row := w.Data[r*w.Stride+4*from:]
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&dst[0])), 4*len(dst)), row)
	case BF16:
		s.unpackBF16(&dst[0], &w.Data[r*w.Stride+2*from], blocks)
	case MXFP4:
		s.unpackMX(&dst[0], &w.Data[r*w.Stride+from/2], len(dst)/MXGroup, &w.Scale[r*w.scaleStride()+from/MXGroup], s.mx)
	case Int8:
		for len(dst) > 0 {
			g := from / w.Group
			n := min(len(dst), (g+1)*w.Group-from)
			s.unpackInt8(&dst[0], &w.Data[r*w.Stride+from], n/lanes, &w.Scale[r*w.scaleStride()+4*g])
			dst, from = dst[n:], from+n
		}
	}
}
